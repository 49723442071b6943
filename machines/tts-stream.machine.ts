import { assign, fromPromise, setup } from 'xstate';
import { TandemError } from './errors.ts';
import { notProvided } from './not-provided.ts';

/**
 * A text on its way to a listener. It is `charging` first: a text that is not paid for is `refused` before anything is
 * said; when nobody can tell whether the charge was stored, it is taken for charged and has failed. Then it is
 * `speaking`, part by part, as fast as the listener takes them. When all was taken it has completed. A listener who
 * leaves of their own accord abandons it; what was charged stays charged if they heard something, for it was spoken for
 * them. So does one whose credentials end. When the engine fails, or the listener is made to leave, it has failed, and
 * the charge is given back. How it ended is stored with the money and what webhooks are told of it (`settling`), again
 * and again until that has succeeded; then it is `settled`.
 */
export const ttsStreamMachine = setup({
  types: {} as {
    context: TtsStreamContext;
    input: TtsStreamInput;
    events: ListenerLeft;
    output: TtsStreamEnding | null;
  },
  actors: {
    /** Rejects with what the client is told: a `TandemError` where certainly nothing was charged. */
    charge: fromPromise<void, TtsStreamInput>(notProvided('charge')),
    /** Resolves when the listener has taken all. */
    speak: fromPromise<void, TtsStreamInput>(notProvided('speak')),
    /** Stores how it ended, both or neither with the refund and what webhooks are told. Idempotent. */
    settle: fromPromise<void, SettleInput>(notProvided('settle')),
  },
  guards: {
    isRefusal: (_, { error }: { error: unknown }) => error instanceof TandemError,
    hasLeft: ({ context }) => context.ending !== null,
  },
  delays: {
    settleBackoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    setEnding: assign((_, ending: TtsStreamEnding) => ({ ending })),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
  },
}).createMachine({
  id: 'tts-stream',
  context: ({ input }) => ({ ...input, ending: null, failures: 0 }),
  initial: 'charging',
  output: ({ context }) => context.ending,
  states: {
    charging: {
      invoke: {
        src: 'charge',
        input: ({ context: { streamId } }) => ({ streamId }),
        onDone: [{ guard: 'hasLeft', target: 'settling' }, { target: 'speaking' }],
        onError: [
          { guard: { type: 'isRefusal', params: ({ event }) => event }, target: 'refused' },
          { target: 'settling', actions: { type: 'setEnding', params: { outcome: 'failed', owes: false } } },
        ],
      },
      // Whether the charge is stored is not known yet: what comes of it is waited for.
      on: { 'listener.left': { actions: { type: 'setEnding', params: ({ event }) => endingOf(event) } } },
    },
    speaking: {
      invoke: {
        src: 'speak',
        input: ({ context: { streamId } }) => ({ streamId }),
        onDone: { target: 'settling', actions: { type: 'setEnding', params: { outcome: 'completed', owes: true } } },
        onError: { target: 'settling', actions: { type: 'setEnding', params: { outcome: 'failed', owes: false } } },
      },
      on: {
        'listener.left': { target: 'settling', actions: { type: 'setEnding', params: ({ event }) => endingOf(event) } },
      },
    },
    settling: {
      invoke: {
        src: 'settle',
        input: ({ context: { streamId, ending } }) => ({ streamId, ending: ending! }),
        onDone: 'settled',
        onError: { target: 'waitingToSettle', actions: 'countFailure' },
      },
    },
    waitingToSettle: { after: { settleBackoff: 'settling' } },
    // Whoever left meanwhile is told nothing any more.
    refused: { type: 'final', entry: assign({ ending: null }) },
    settled: { type: 'final' },
  },
});

const LONGEST_BACKOFF_MS = 60_000;

export interface TtsStreamInput {
  streamId: string;
}

export interface SettleInput extends TtsStreamInput {
  ending: TtsStreamEnding;
}

export interface TtsStreamEnding {
  outcome: 'completed' | 'failed' | 'abandoned';
  /** Whether the charge stays. */
  owes: boolean;
}

interface TtsStreamContext extends TtsStreamInput {
  /** Null while it is spoken, and when it was refused. */
  ending: TtsStreamEnding | null;
  /** To store how it ended. */
  failures: number;
}

interface ListenerLeft {
  type: 'listener.left';
  /** Nobody made them leave. */
  ofOwnAccord: boolean;
  heardSomething: boolean;
}

function endingOf({ ofOwnAccord, heardSomething }: ListenerLeft): TtsStreamEnding {
  return ofOwnAccord ? { outcome: 'abandoned', owes: heardSomething } : { outcome: 'failed', owes: false };
}
