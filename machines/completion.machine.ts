import { assign, fromPromise, setup } from 'xstate';
import { TandemError } from './errors.ts';
import { notProvided } from './not-provided.ts';

/**
 * Something a language model is asked. It is `admitting` first: what it may cost is set aside, and what was said before
 * is put in front. What is refused then has failed, and nothing is stored of it; when nobody can tell whether it was
 * admitted, it is taken for admitted and has failed. Then it is `generating`, no faster than the listener takes it. When
 * the model is done, or its time is over, it has completed. A listener who leaves of their own accord abandons it, and
 * so does one whose credentials end: the model stops, and what was produced is owed. When the model fails, or the
 * listener is made to leave, it has failed, and nothing is owed. How it ended is stored with the money and what was said
 * (`concluding`), again and again until that has succeeded; then it is `completed`, `abandoned` or `failed`.
 */
export const completionMachine = setup({
  types: {} as {
    context: CompletionContext;
    input: CompletionInput & { limitMs: number };
    events: ListenerLeft;
    output: CompletionEnding | null;
  },
  actors: {
    /** Rejects with what the client is told: a `TandemError` where certainly nothing was set aside. */
    admit: fromPromise<void, CompletionInput>(notProvided('admit')),
    /** Resolves when the model is done and the listener has taken all. */
    generate: fromPromise<void, CompletionInput>(notProvided('generate')),
    /** Stores how it ended, all or nothing with the money and the chat. Idempotent. */
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
            // Whoever left meanwhile is told nothing any more.
            actions: { type: 'setEnding', params: null },
          },
          { target: 'concluding', actions: { type: 'setEnding', params: { outcome: 'failed', owes: false } } },
        ],
      },
      // Whether the hold is stored is not known yet: what comes of it is waited for. The model was not asked.
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
  /** Whether what was produced is charged. */
  owes: boolean;
}

interface CompletionContext extends CompletionInput {
  /** So long may it generate. */
  limitMs: number;
  /** Null while it is generated, and when it was refused. */
  ending: CompletionEnding | null;
  /** To store how it ended. */
  failures: number;
}

interface ListenerLeft {
  type: 'listener.left';
  /** Nobody made them leave. */
  ofOwnAccord: boolean;
}

function endingOf({ ofOwnAccord }: ListenerLeft): CompletionEnding {
  return ofOwnAccord ? { outcome: 'abandoned', owes: true } : { outcome: 'failed', owes: false };
}
