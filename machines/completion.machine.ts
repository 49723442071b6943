import { assign, fromPromise, setup } from 'xstate';
import { TandemError } from './errors.ts';
import { notProvided } from './not-provided.ts';

/**
 * A request to a language model.
 *
 * - `admitting` reserves the highest cost and adds earlier messages of the chat. A refused request has `failed` and
 *   is not stored. One with an unknown result counts as admitted and failed.
 * - `generating` streams at the pace of the listener, until the model is done or the time limit is reached: it has
 *   completed. A listener who leaves on their own, or whose credentials end, abandons it: the model stops, and the
 *   output so far is charged. If the model fails, or the platform disconnects the listener, it has failed and nothing
 *   is charged.
 * - `concluding` stores the ending, the charge and the messages, and retries until it succeeds. Then the request is
 *   `completed`, `abandoned` or `failed`.
 */
export const completionMachine = setup({
  types: {} as {
    context: CompletionContext;
    input: CompletionInput & { limitMs: number };
    events: ListenerLeft;
    output: CompletionEnding | null;
  },
  actors: {
    /** Rejects with the client's error: a `TandemError` if certainly nothing was reserved. */
    admit: fromPromise<void, CompletionInput>(notProvided('admit')),
    /** Resolves when the model is done and the listener has received everything. */
    generate: fromPromise<void, CompletionInput>(notProvided('generate')),
    /** Stores the ending, the charge and the chat in one transaction. Idempotent. */
    conclude: fromPromise<void, ConcludeInput>(notProvided('conclude')),
  },
  guards: {
    isRefusal: (_, { error }: { error: unknown }) => error instanceof TandemError,
    hasLeft: ({ context }) => context.ending !== null,
    is: ({ context }, outcome: CompletionEnding['outcome']) => context.ending?.outcome === outcome,
  },
  delays: {
    limit: ({ context }) => context.limitMs,
    backoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    setEnding: assign((_, ending: CompletionEnding | null) => ({ ending })),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
  },
}).createMachine({
  id: 'completion',
  context: ({ input }) => ({ ...input, ending: null, failures: 0 }),
  initial: 'admitting',
  output: ({ context }) => context.ending,
  states: {
    admitting: {
      invoke: {
        src: 'admit',
        input: ({ context: { completionId } }) => ({ completionId }),
        onDone: [{ guard: 'hasLeft', target: 'concluding' }, { target: 'generating' }],
        onError: [
          {
            guard: { type: 'isRefusal', params: ({ event }) => event },
            target: 'failed',
            // A listener who left meanwhile receives no error.
            actions: { type: 'setEnding', params: null },
          },
          { target: 'concluding', actions: { type: 'setEnding', params: { outcome: 'failed', owes: false } } },
        ],
      },
      // It is unknown yet whether the hold is stored, so wait for the result. The model was not called.
      on: {
        'listener.left': {
          actions: { type: 'setEnding', params: ({ event }) => ({ ...endingOf(event), owes: false }) },
        },
      },
    },
    generating: {
      invoke: {
        src: 'generate',
        input: ({ context: { completionId } }) => ({ completionId }),
        onDone: { target: 'concluding', actions: { type: 'setEnding', params: { outcome: 'completed', owes: true } } },
        onError: { target: 'concluding', actions: { type: 'setEnding', params: { outcome: 'failed', owes: false } } },
      },
      on: {
        'listener.left': {
          target: 'concluding',
          actions: { type: 'setEnding', params: ({ event }) => endingOf(event) },
        },
      },
      after: {
        limit: { target: 'concluding', actions: { type: 'setEnding', params: { outcome: 'completed', owes: true } } },
      },
    },
    concluding: {
      invoke: {
        src: 'conclude',
        input: ({ context: { completionId, ending } }) => ({ completionId, ending: ending! }),
        onDone: [
          { guard: { type: 'is', params: 'completed' }, target: 'completed' },
          { guard: { type: 'is', params: 'abandoned' }, target: 'abandoned' },
          { target: 'failed' },
        ],
        onError: { target: 'waitingToConclude', actions: 'countFailure' },
      },
    },
    waitingToConclude: { after: { backoff: 'concluding' } },
    completed: { type: 'final' },
    abandoned: { type: 'final' },
    failed: { type: 'final' },
  },
});

const LONGEST_BACKOFF_MS = 60_000;

export interface CompletionInput {
  completionId: string;
}

export interface ConcludeInput extends CompletionInput {
  ending: CompletionEnding;
}

export interface CompletionEnding {
  outcome: 'completed' | 'failed' | 'abandoned';
  owes: boolean;
}

interface CompletionContext extends CompletionInput {
  /** Time limit of the generation. */
  limitMs: number;
  /** Null during generation, and after a refusal. */
  ending: CompletionEnding | null;
  /** Failed attempts to store the ending. */
  failures: number;
}

interface ListenerLeft {
  type: 'listener.left';
  ofOwnAccord: boolean;
}

function endingOf({ ofOwnAccord }: ListenerLeft): CompletionEnding {
  return ofOwnAccord ? { outcome: 'abandoned', owes: true } : { outcome: 'failed', owes: false };
}
