import { setTimeout as sleep } from 'node:timers/promises';
import type { RecognitionEvent } from '../machines/utterances.ts';
import { type Answer, type Line, type SessionOptions, type Spoken, speak, UTTERANCE_END_MS } from './stt-session.ts';
import { usageNow } from './stt-usage.ts';

/** Adds live sessions side by side, until finals come late. */

/** Limit of a final's delay beyond `utterance_end_ms`. */
export const LATE_FROM_MS = 700;
/** Numbers of sessions to try, in order. */
export const LADDER = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

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
  /** CPU of this process's threads, and of the engine's processes. */
  mainCpuMs: number;
  engineCpuMs: number;
  latestFrameMs: number;
}

export interface Step {
  sessions: number;
  /** Answers during this step. */
  answers: Answer[];
  /** A session fell so far behind that interims were dropped. */
  isShedding: boolean;
  /** Longest delay from the detected end of an utterance to its final. */
  latestFinalMs: number;
  /** Why a session ended by itself; null if none did. */
  failure: string | null;
}

/** All finals came in time, without dropping interims. */
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
      // A session that ends before it is stopped has failed.
      await Promise.race([sleep(stepMs), ...speaking]);
      if (!isHeld(steps.at(-1)!)) break;
    }
  } finally {
    stop.abort();
  }
  const spoken = await Promise.all(speaking);
  const after = usageNow();
  for (const answer of spoken.flatMap(({ answers }) => answers)) {
    const finalAtMs = answer.speechEndedAtMs + (answer.afterMs ?? 0);
    steps.findLast(({ fromMs }) => fromMs <= finalAtMs)!.answers.push(answer);
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

/** Sessions start at different places, so that they neither speak the same nor start together. */
export function beginningFor({ beginnings }: Line, session: number): number {
  const sample = (FIRST_SAMPLE + session * SAMPLES_APART) % beginnings.length;
  return beginnings[sample]! + ((session * FRAMES_APART) % FRAMES_OF_SILENCE);
}

/** A short utterance, so that even a single session soon has finals. */
const FIRST_SAMPLE = 6;
const SAMPLES_APART = 5;
const FRAMES_APART = 7;
/** Before each utterance there are 1.5 s of silence. */
const FRAMES_OF_SILENCE = 25;

function note(step: Step, event: RecognitionEvent): void {
  if ('summary' in event) step.latestFinalMs = Math.max(step.latestFinalMs, event.lagMs - UTTERANCE_END_MS);
  if (event.type === 'recognition.lagging') step.isShedding ||= event.isShedding;
}
