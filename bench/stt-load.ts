import { setTimeout as sleep } from 'node:timers/promises';
import type { RecognitionEvent } from '../machines/utterances.ts';
import { type Answer, type Line, type SessionOptions, type Spoken, speak, UTTERANCE_END_MS } from './stt-session.ts';
import { usageNow } from './stt-usage.ts';

/** More and more live sessions side by side, until finals come late. */

/** What a session that is held may expect of its latest final, beyond `utterance_end_ms`. */
const LATE_FROM_MS = 700;
/** Numbers of sessions that are tried, one after the other. */
const LADDER = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

export interface LoadOptions extends SessionOptions {
  line: Line;
  most: number;
  stepMs: number;
  onStep: (sessions: number) => void;
}

export interface LoadFigures {
  steps: Step[];
  audioMs: number;
  speechMs: number;
  /** Of the threads of this process, and of the engine's processes. */
  mainCpuMs: number;
  engineCpuMs: number;
  latestFrameMs: number;
}

export interface Step {
  sessions: number;
  /** That were told at this step. */
  answers: Answer[];
  /** A session fell so far behind that interims were left out. */
  isShedding: boolean;
  /** From the end of an utterance, as it was heard, to its final, at most. */
  latestFinalMs: number;
  /** Why a session ended by itself; null when none did. */
  failure: string | null;
}

/** All finals came in time, and interims were not left out to get there. */
export function isHeld({ latestFinalMs, isShedding, failure }: Step): boolean {
  return failure === null && !isShedding && latestFinalMs <= LATE_FROM_MS;
}

export async function raiseSessions(options: LoadOptions): Promise<LoadFigures> {
  const { line, most, stepMs, onStep } = options;
  const stop = new AbortController();
  const steps: (Step & { fromMs: number })[] = [];
  const speaking: Promise<Spoken>[] = [];
  const begin = async (): Promise<Spoken> => {
    const beginAt = beginningFor(line, speaking.length);
    const spoken = await speak({
      ...options,
      beginAt,
      onEvent: (event) => note(steps.at(-1)!, event),
      stop: stop.signal,
    });
    steps.at(-1)!.failure ??= spoken.failure;
    return spoken;
  };
  const before = usageNow();
  try {
    for (const sessions of [...LADDER.filter((rung) => rung < most), most]) {
      onStep(sessions);
      const fromMs = performance.now();
      steps.push({ sessions, fromMs, answers: [], isShedding: false, latestFinalMs: 0, failure: null });
      while (speaking.length < sessions) speaking.push(begin());
      // One that ends before it is stopped has failed.
      await Promise.race([sleep(stepMs), ...speaking]);
      if (!isHeld(steps.at(-1)!)) break;
    }
  } finally {
    stop.abort();
  }
  const spoken = await Promise.all(speaking);
  const after = usageNow();
  for (const answer of spoken.flatMap(({ answers }) => answers)) {
    const toldAtMs = answer.speechEndedAtMs + (answer.afterMs ?? 0);
    steps.findLast(({ fromMs }) => fromMs <= toldAtMs)!.answers.push(answer);
  }
  return {
    steps,
    audioMs: spoken.reduce((sum, { audioMs }) => sum + audioMs, 0),
    speechMs: spoken.reduce((sum, { speechMs }) => sum + speechMs, 0),
    mainCpuMs: after.mainCpuMs - before.mainCpuMs,
    engineCpuMs: after.engineCpuMs - before.engineCpuMs,
    latestFrameMs: Math.max(...spoken.map(({ latestFrameMs }) => latestFrameMs)),
  };
}

/** Everybody says something else, and not all begin at once. */
export function beginningFor({ beginnings }: Line, session: number): number {
  const sample = (FIRST_SAMPLE + session * SAMPLES_APART) % beginnings.length;
  return beginnings[sample]! + ((session * FRAMES_APART) % FRAMES_OF_SILENCE);
}

/** A short one, so that even one session alone has finals soon. */
const FIRST_SAMPLE = 6;
const SAMPLES_APART = 5;
const FRAMES_APART = 7;
/** Before each utterance there are 1.5 s of silence. */
const FRAMES_OF_SILENCE = 25;

function note(step: Step, event: RecognitionEvent): void {
  if ('summary' in event) step.latestFinalMs = Math.max(step.latestFinalMs, event.lagMs - UTTERANCE_END_MS);
  if (event.type === 'recognition.lagging') step.isShedding ||= event.isShedding;
}
