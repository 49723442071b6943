import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * A text on its way to a listener. It is `charging` first: a text that is not paid for is `refused` before anything is
 * said. Then it is `speaking`, clause by clause, as fast as the listener takes them, and `completed` when all is said.
 * A listener who leaves makes it `abandoned`; what was charged stays charged, for it was spoken for them. When the
 * engine fails, the listener left before anything was said, or was made to, the charge is given back (`refunding`, again
 * and again until that is stored) and the text has `failed`.
 */
export const ttsStreamMachine = setup({
  types: {} as {
    context: TtsStreamContext;
    input: TtsStreamInput;
    /** `owes`: of their own accord, and having heard something. */
    events: { type: 'listener.left'; owes: boolean };
    output: TtsStreamOutcome;
  },
  actors: {
    /** Rejects with what the client is told. */
    charge: fromPromise<void, TtsStreamInput>(notProvided('charge')),
    /** Resolves when the listener has taken all. */
    speak: fromPromise<void, TtsStreamInput>(notProvided('speak')),
    refund: fromPromise<void, TtsStreamInput>(notProvided('refund')),
  },
  guards: {
    hasLeft: ({ context }) => context.hasLeft,
    owes: (_, { owes }: { owes: boolean }) => owes,
  },
  delays: {
    refundBackoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.refundFailures, 20)),
  },
  actions: {
    noteLeaving: assign({ hasLeft: true }),
    noteRefundFailure: assign({ refundFailures: ({ context }) => context.refundFailures + 1 }),
  },
}).createMachine({
  id: 'tts-stream',
  context: ({ input }) => ({ ...input, hasLeft: false, refundFailures: 0 }),
  initial: 'charging',
  output: ({ event }) => (event as unknown as { output: TtsStreamOutcome }).output,
  states: {
    charging: {
      invoke: {
        src: 'charge',
        input: ({ context: { streamId } }) => ({ streamId }),
        onDone: [{ guard: 'hasLeft', target: 'refunding' }, { target: 'speaking' }],
        onError: 'refused',
      },
      // Whether the charge is stored is not known yet: what comes of it is waited for.
      on: { 'listener.left': { actions: 'noteLeaving' } },
    },
    speaking: {
      invoke: {
        src: 'speak',
        input: ({ context: { streamId } }) => ({ streamId }),
        onDone: 'completed',
        onError: 'refunding',
      },
      on: {
        'listener.left': [
          { guard: { type: 'owes', params: ({ event }) => event }, target: 'abandoned' },
          { target: 'refunding' },
        ],
      },
    },
    refunding: {
      invoke: {
        src: 'refund',
        input: ({ context: { streamId } }) => ({ streamId }),
        onDone: 'failed',
        onError: { target: 'refundLater', actions: 'noteRefundFailure' },
      },
    },
    refundLater: { after: { refundBackoff: 'refunding' } },
    refused: { type: 'final', output: 'refused' as const },
    completed: { type: 'final', output: 'completed' as const },
    abandoned: { type: 'final', output: 'abandoned' as const },
    failed: { type: 'final', output: 'failed' as const },
  },
});

const LONGEST_BACKOFF_MS = 60_000;

export interface TtsStreamInput {
  streamId: string;
}

interface TtsStreamContext extends TtsStreamInput {
  hasLeft: boolean;
  refundFailures: number;
}

export type TtsStreamOutcome = 'refused' | 'completed' | 'abandoned' | 'failed';
