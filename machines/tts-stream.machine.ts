import { assign, fromPromise, setup } from 'xstate';
import { TandemError } from './errors.ts';
import { notProvided } from './not-provided.ts';

/**
 * A synthesis request that streams to a listener.
 *
 * - `charging` takes the charge. An unpaid request is `refused`. One with an unknown result counts as charged and
 *   failed.
 * - `speaking` sends the audio in chunks, at the pace of the listener, and has completed when all were received. A
 *   listener who leaves on their own, or whose credentials end, abandons it; the charge stays if they received audio.
 *   If the engine fails, or the platform disconnects the listener, it has failed and the charge is refunded.
 * - `settling` stores the ending, the refund and the webhook events in one transaction, and retries until it
 *   succeeds. Then it is `settled`.
 */
export const ttsStreamMachine = setup({
  types: {} as {
    context: TtsStreamContext;
    input: TtsStreamInput;
    events: ListenerLeft;
    output: TtsStreamEnding | null;
  },
  actors: {
    /** Rejects with the client's error: a `TandemError` if certainly nothing was charged. */
    charge: fromPromise<void, TtsStreamInput>(notProvided('charge')),
    /** Resolves when the listener has received everything. */
    speak: fromPromise<void, TtsStreamInput>(notProvided('speak')),
    /** Stores the ending, the refund and the webhook events in one transaction. Idempotent. */
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
      // It is unknown yet whether the charge is stored, so wait for the result.
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
    // A listener who left meanwhile receives no error.
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
  owes: boolean;
}

interface TtsStreamContext extends TtsStreamInput {
  /** Null while it streams, and after a refusal. */
  ending: TtsStreamEnding | null;
  /** Failed attempts to store the ending. */
  failures: number;
}

interface ListenerLeft {
  type: 'listener.left';
  ofOwnAccord: boolean;
  hasReceivedAudio: boolean;
}

function endingOf({ ofOwnAccord, hasReceivedAudio }: ListenerLeft): TtsStreamEnding {
  return ofOwnAccord ? { outcome: 'abandoned', owes: hasReceivedAudio } : { outcome: 'failed', owes: false };
}
