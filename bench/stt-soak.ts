import { setTimeout as sleep } from 'node:timers/promises';
import { beginningFor } from './stt-load.ts';
import { type Answer, type Line, type SessionOptions, speak, speakBriefly } from './stt-session.ts';
import { type Slope, slopeOf, usageNow } from './stt-usage.ts';

/** Memory growth during long sessions, and over many short ones. */

export interface SoakOptions extends SessionOptions {
  line: Line;
  sessions: number;
  durationMs: number;
  onProgress: (phase: 'long' | 'brief', elapsedMs: number) => void;
}

export interface SoakFigures {
  long: { answers: Answer[]; perHour: MemorySlopes };
  brief: { sessions: number; perSession: MemorySlopes };
  mainRssBytes: number;
  engineRssBytes: number;
  engineProcesses: number;
}

/** In bytes; null if there were too few points. */
export interface MemorySlopes {
  main: Slope | null;
  engine: Slope | null;
}

export async function soak(options: SoakOptions): Promise<SoakFigures> {
  const halfMs = options.durationMs / 2;
  const answers: Answer[] = [];
  const perHour = await during(
    { ...options, phase: 'long', durationMs: halfMs, x: hoursNow },
    async (signal, index) => {
      const spoken = await speak({
        ...options,
        beginAt: beginningFor(options.line, index),
        onEvent: () => {},
        stop: signal,
      });
      if (spoken.failure !== null) throw new Error(spoken.failure);
      answers.push(...spoken.answers);
    },
  );
  const octets = shortestOf(options.line);
  let sessions = 0;
  const perSession = await during(
    { ...options, phase: 'brief', durationMs: halfMs, x: () => sessions },
    async (signal) => {
      while (!signal.aborted) {
        await speakBriefly({ ...options, octets });
        sessions += 1;
      }
    },
  );
  const { mainRssBytes, engineRssBytes, engineProcesses } = usageNow();
  return { long: { answers, perHour }, brief: { sessions, perSession }, mainRssBytes, engineRssBytes, engineProcesses };
}

export function shortestOf({ samples }: Line): Uint8Array<ArrayBuffer> {
  return samples.toSorted((a, b) => a.durationMs - b.durationMs)[0]!.bytes;
}

/** The first part is warm-up. */
const WARM_SHARE = 0.2;
const POINTS = 200;
const SHORTEST_INTERVAL_MS = 100;
const LONGEST_INTERVAL_MS = 5_000;

/** Runs the work in parallel for this time and measures memory over `x`. */
async function during(
  { phase, durationMs, sessions, onProgress, x }: SoakOptions & { phase: 'long' | 'brief'; x: () => number },
  work: (signal: AbortSignal, index: number) => Promise<void>,
): Promise<MemorySlopes> {
  const stop = new AbortController();
  const working = Promise.all(Array.from({ length: sessions }, (_, index) => work(stop.signal, index)));
  const intervalMs = Math.min(LONGEST_INTERVAL_MS, Math.max(SHORTEST_INTERVAL_MS, durationMs / POINTS));
  const points: { x: number; main: number; engine: number }[] = [];
  const beganAtMs = performance.now();
  try {
    for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = performance.now() - beganAtMs) {
      if (elapsedMs > WARM_SHARE * durationMs) {
        const { mainRssBytes, engineRssBytes } = usageNow();
        points.push({ x: x(), main: mainRssBytes, engine: engineRssBytes });
      }
      onProgress(phase, elapsedMs);
      // Work that ends by itself has failed.
      await Promise.race([sleep(Math.min(intervalMs, durationMs - elapsedMs)), working]);
    }
  } finally {
    stop.abort();
  }
  await working;
  return {
    main: slopeOf(points.map(({ x: at, main }) => [at, main])),
    engine: slopeOf(points.map(({ x: at, engine }) => [at, engine])),
  };
}

function hoursNow(): number {
  return performance.now() / 3_600_000;
}
