import { setTimeout as sleep } from 'node:timers/promises';
import type { CallEvent } from '../cli/api-client.ts';
import type { Conversation } from './conversation.ts';
import type { Screen } from './screen.ts';

/** The sentences recognised so far. */
export interface AwaitedWords {
  readonly conversation: Conversation;
  take(event: CallEvent): void;
  /** How many sentences are recognised or skipped. */
  understood(): number;
  /** No transcript will come. */
  readonly failed: boolean;
}

/** A recogniser may end a sentence before its last, quiet part. */
const END_TOLERANCE_MS = 1_200;
/** Enough for a slow machine; then the demo reports what is missing. */
const PATIENCE_MS = 60_000;
const BAR_WIDTH = 30;

export function awaitWords(conversation: Conversation): AwaitedWords {
  const recognisedUntilMs = { agent: 0, customer: 0 };
  let failed = false;
  return {
    conversation,
    take({ event, leg, transcript }) {
      if (event === 'transcript.failed') failed = true;
      if (transcript === null || (leg !== 'agent' && leg !== 'customer')) return;
      recognisedUntilMs[leg] = Math.max(recognisedUntilMs[leg], transcript.end * 1_000);
    },
    understood: () =>
      conversation.sentences.filter(({ speaker, endMs }) => recognisedUntilMs[speaker] >= endMs - END_TOLERANCE_MS)
        .length,
    get failed() {
      return failed;
    },
  };
}

/** Shows who speaks, then how many sentences are missing. Resolves when there is nothing left to wait for. */
export async function talkProgress(screen: Screen, words: AwaitedWords): Promise<void> {
  const { sentences, durationMs, farewell } = words.conversation;
  const startedAt = performance.now();
  for (let ms = 0; ms < durationMs; ms = performance.now() - startedAt) {
    const done = Math.round((ms / durationMs) * BAR_WIDTH);
    const speaker = sentences.find(({ startMs, endMs }) => startMs <= ms && ms < endMs)?.speaker;
    const isFarewell = farewell !== null && ms >= farewell.startMs;
    const silence = isFarewell ? 'the customer says goodbye in the voice of the platform' : 'a pause';
    const what = speaker === undefined ? silence : `the ${speaker} speaks`;
    screen.progress(`talking ${'█'.repeat(done)}${'░'.repeat(BAR_WIDTH - done)} ${(ms / 1000).toFixed(1)} s, ${what}`);
    await sleep(100);
  }
  while (!words.failed && words.understood() < sentences.length) {
    const waitedMs = performance.now() - startedAt - durationMs;
    if (waitedMs > PATIENCE_MS) return;
    const seconds = (waitedMs / 1000).toFixed(1);
    screen.progress(
      `waiting for the recogniser, ${words.understood()} of ${sentences.length} sentences … ${seconds} s`,
    );
    await sleep(100);
  }
}
