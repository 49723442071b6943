import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * Creation of a voice. It is `pending` while it waits for samples; a cloned voice has them from the start. Then it is
 * `processing`: `shaping` analyses them and returns the voice, or why they are unusable; `concluding` stores the result
 * and the webhook events in one transaction. Then it is `ready` or `failed`. A failure on our side is retried after a
 * wait that doubles. Shaping has limited attempts, after which the voice fails with an internal reason; concluding has
 * none. A voice stored as failed accepts other samples, which may arrive before `concluding` ends; they are analysed too.
 * Deletion makes it `deleted` in every state and stops the work.
 */
export const voiceMachine = setup({
  types: {} as {
    context: VoiceContext;
    input: VoiceInput;
    events: { type: 'samples.completed' } | { type: 'voice.deleted' };
    output: VoiceOutcome;
  },
  actors: {
    /** Rejects only for temporary failures. */
    shape: fromPromise<ShapedVoice, VoiceInput>(notProvided('shape')),
    /** Idempotent: a concluded or deleted voice stays unchanged. */
    conclude: fromPromise<void, VoiceInput & { shaped: ShapedVoice }>(notProvided('conclude')),
  },
  guards: {
    hasSamples: ({ context }) => context.hasSamples,
    isLastAttempt: ({ context }) => context.failures + 1 >= MOST_FAILURES,
    isUsable: ({ context }) => context.shaped?.isUsable === true,
  },
  delays: {
    backoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    storeShape: assign((_, shaped: ShapedVoice) => ({ shaped, failures: 0 })),
    discardShape: assign({ shaped: null, failures: 0 }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    giveUp: assign(() => ({ shaped: GIVEN_UP, failures: 0 })),
  },
}).createMachine({
  id: 'voice',
  context: ({ input }) => ({ ...input, shaped: null, failures: 0 }),
  initial: 'arriving',
  on: { 'voice.deleted': '.deleted' },
  output: ({ event }) => (event as unknown as { output: VoiceOutcome }).output,
  states: {
    arriving: { always: [{ guard: 'hasSamples', target: 'processing' }, { target: 'pending' }] },
    pending: { on: { 'samples.completed': 'processing' } },
    processing: {
      initial: 'shaping',
      states: {
        shaping: {
          invoke: {
            src: 'shape',
            input: ({ context: { voiceId, hasSamples } }) => ({ voiceId, hasSamples }),
            onDone: {
              target: 'concluding',
              actions: { type: 'storeShape', params: ({ event }) => event.output },
            },
            onError: [
              { guard: 'isLastAttempt', target: 'concluding', actions: 'giveUp' },
              { target: 'waitingToShape', actions: 'countFailure' },
            ],
          },
        },
        waitingToShape: { after: { backoff: 'shaping' } },
        concluding: {
          on: { 'samples.completed': { target: 'shaping', actions: 'discardShape' } },
          invoke: {
            src: 'conclude',
            input: ({ context: { voiceId, hasSamples, shaped } }) => ({ voiceId, hasSamples, shaped: shaped! }),
            onDone: [{ guard: 'isUsable', target: '#voice.ready' }, { target: '#voice.failed' }],
            onError: { target: 'waitingToConclude', actions: 'countFailure' },
          },
        },
        waitingToConclude: {
          on: { 'samples.completed': { target: 'shaping', actions: 'discardShape' } },
          after: { backoff: 'concluding' },
        },
      },
    },
    ready: { type: 'final', output: 'ready' as const },
    failed: { type: 'final', output: 'failed' as const },
    deleted: { type: 'final', output: 'deleted' as const },
  },
});

/** About four minutes including the waits. */
const MOST_FAILURES = 9;
const LONGEST_BACKOFF_MS = 60_000;

const GIVEN_UP: ShapedVoice = {
  isUsable: false,
  errorCode: 'INTERNAL',
  error: 'Voice creation failed for an internal reason, not because of the samples. Send them again.',
};

export interface VoiceInput {
  voiceId: string;
  hasSamples: boolean;
}

interface VoiceContext extends VoiceInput {
  shaped: ShapedVoice | null;
  /** In a row. */
  failures: number;
}

/** Result of shaping. `recipe` and `measures` are plain data, which only the shaping port interprets. */
export type ShapedVoice =
  | { isUsable: true; recipe: object; measures: object | null; approximate: boolean }
  | { isUsable: false; errorCode: 'VOICE_SAMPLE_UNUSABLE' | 'INTERNAL'; error: string };

export type VoiceOutcome = 'ready' | 'failed' | 'deleted';
