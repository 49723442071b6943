import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * Calls that are judged by one rubric, a few at a time, by whoever has taken the batch. It is `judging` them until none
 * is left, and is then stored as completed (`ending`). A reason that holds for all of them, such as an empty wallet,
 * stops it: then it is stored as stopped, with what was judged so far. What may be better later, such as a model that
 * cannot be reached, is tried again after a wait that doubles (`waiting`); so often in a row that nothing went on
 * meanwhile, it is a reason to stop too. Storing how it ended is tried until storage is there. Released at any time, by
 * a server that closes or one that is no longer its owner, it is left as it is for whoever takes it next.
 */
export const judgeBatchMachine = setup({
  types: {} as {
    context: JudgeBatchContext;
    input: JudgeBatchInput;
    events: { type: 'batch.released' };
    output: JudgeBatchOutcome;
  },
  actors: {
    /** Judges the next few of those that are left, each once. Rejects when nobody can tell what became of them. */
    judgeSome: fromPromise<JudgedSome, JudgeBatchInput>(notProvided('judgeSome')),
    /** Idempotent. */
    end: fromPromise<void, JudgeBatchInput & { stopReason: string | null }>(notProvided('end')),
  },
  guards: {
    hasMore: (_, { kind }: JudgedSome) => kind === 'went_on',
    isStopped: (_, { kind }: JudgedSome) => kind === 'stop',
    isDelayed: (_, { kind }: JudgedSome) => kind === 'held_up',
    isLastFailure: ({ context }) => context.failures + 1 >= MOST_FAILURES,
    isLastWithoutProgress: ({ context }, judged: JudgedSome) =>
      judged.kind === 'held_up' && !judged.wentOn && context.failures + 1 >= MOST_FAILURES,
    wasStopped: ({ context }) => context.stopReason !== null,
  },
  delays: {
    backoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    resetFailures: assign({ failures: 0 }),
    storeDelay: assign(({ context }, judged: JudgedSome) => ({
      failures: judged.kind === 'held_up' && judged.wentOn ? 1 : context.failures + 1,
    })),
    countFailure: assign(({ context }) => ({ failures: context.failures + 1 })),
    stop: assign((_, { reason }: { reason: string }) => ({ stopReason: reason, failures: 0 })),
  },
}).createMachine({
  id: 'judge-batch',
  context: ({ input }) => ({ ...input, failures: 0, stopReason: null }),
  initial: 'judging',
  on: { 'batch.released': '.released' },
  output: ({ event }) => (event as unknown as { output: JudgeBatchOutcome }).output,
  states: {
    judging: {
      invoke: {
        src: 'judgeSome',
        input: ({ context: { batchId } }) => ({ batchId }),
        onDone: [
          {
            guard: { type: 'hasMore', params: ({ event }) => event.output },
            target: 'judging',
            reenter: true,
            actions: 'resetFailures',
          },
          {
            guard: { type: 'isStopped', params: ({ event }) => event.output },
            target: 'ending',
            actions: { type: 'stop', params: ({ event }) => ({ reason: reasonOf(event.output) }) },
          },
          {
            guard: { type: 'isLastWithoutProgress', params: ({ event }) => event.output },
            target: 'ending',
            actions: { type: 'stop', params: ({ event }) => ({ reason: reasonOf(event.output) }) },
          },
          {
            guard: { type: 'isDelayed', params: ({ event }) => event.output },
            target: 'waiting',
            actions: { type: 'storeDelay', params: ({ event }) => event.output },
          },
          { target: 'ending', actions: 'resetFailures' },
        ],
        onError: [
          {
            guard: 'isLastFailure',
            target: 'ending',
            actions: { type: 'stop', params: { reason: 'INTERNAL' } },
          },
          { target: 'waiting', actions: 'countFailure' },
        ],
      },
    },
    waiting: { after: { backoff: 'judging' } },
    ending: {
      invoke: {
        src: 'end',
        input: ({ context: { batchId, stopReason } }) => ({ batchId, stopReason }),
        onDone: [{ guard: 'wasStopped', target: 'stopped' }, { target: 'completed' }],
        onError: { target: 'waitingToEnd', actions: 'countFailure' },
      },
    },
    waitingToEnd: { after: { backoff: 'ending' } },
    completed: { type: 'final', output: 'completed' as const },
    stopped: { type: 'final', output: 'stopped' as const },
    released: { type: 'final', output: 'released' as const },
  },
});

/** With the waits between them some twenty minutes. */
const MOST_FAILURES = 12;
const LONGEST_BACKOFF_MS = 300_000;

export interface JudgeBatchInput {
  batchId: string;
}

interface JudgeBatchContext extends JudgeBatchInput {
  /** In a row. */
  failures: number;
  /** A code. */
  stopReason: string | null;
}

export type JudgedSome =
  | { kind: 'went_on' }
  | { kind: 'none_left' }
  /** No call after this could be judged either. */
  | { kind: 'stop'; reason: string }
  /** Some are left that may be judged later; `wentOn`: others were. */
  | { kind: 'held_up'; reason: string; wentOn: boolean };

export type JudgeBatchOutcome = 'completed' | 'stopped' | 'released';

function reasonOf(judged: JudgedSome): string {
  return 'reason' in judged ? judged.reason : 'INTERNAL';
}
