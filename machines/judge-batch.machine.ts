import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * Calls judged by one rubric, a few at a time, on the server that owns the batch.
 *
 * - `judging` judges calls until none are left.
 * - `waiting` precedes a retry after a temporary failure, such as an unreachable model. The wait doubles each time.
 *   Too many failures in a row without progress stop the batch.
 * - `ending` stores the batch as completed or stopped, and retries until it succeeds. A reason for all calls, such as
 *   an empty wallet, stops the batch and keeps the results so far.
 *
 * A server that shuts down or loses ownership releases the batch, and the next owner continues it.
 */
export const judgeBatchMachine = setup({
  types: {} as {
    context: JudgeBatchContext;
    input: JudgeBatchInput;
    events: { type: 'batch.released' };
    output: JudgeBatchOutcome;
  },
  actors: {
    /** Judges the next few unjudged calls, each once. Rejects if the result is unknown. */
    judgeSome: fromPromise<JudgedSome, JudgeBatchInput>(notProvided('judgeSome')),
    /** Idempotent. */
    end: fromPromise<void, JudgeBatchInput & { stopReason: string | null }>(notProvided('end')),
  },
  guards: {
    hasMore: (_, { kind }: JudgedSome) => kind === 'progressed',
    isStopped: (_, { kind }: JudgedSome) => kind === 'stop',
    isDelayed: (_, { kind }: JudgedSome) => kind === 'delayed',
    isLastFailure: ({ context }) => context.failures + 1 >= MOST_FAILURES,
    isLastWithoutProgress: ({ context }, judged: JudgedSome) =>
      judged.kind === 'delayed' && !judged.hasProgressed && context.failures + 1 >= MOST_FAILURES,
    wasStopped: ({ context }) => context.stopReason !== null,
  },
  delays: {
    backoff: ({ context }) => Math.min(LONGEST_BACKOFF_MS, 500 * 2 ** Math.min(context.failures, 20)),
  },
  actions: {
    resetFailures: assign({ failures: 0 }),
    storeDelay: assign(({ context }, judged: JudgedSome) => ({
      failures: judged.kind === 'delayed' && judged.hasProgressed ? 1 : context.failures + 1,
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

/** About twenty minutes including the waits. */
const MOST_FAILURES = 12;
const LONGEST_BACKOFF_MS = 300_000;

export interface JudgeBatchInput {
  batchId: string;
}

interface JudgeBatchContext extends JudgeBatchInput {
  /** In a row. */
  failures: number;
  /** An error code. */
  stopReason: string | null;
}

export type JudgedSome =
  | { kind: 'progressed' }
  | { kind: 'none_left' }
  /** The reason applies to all remaining calls. */
  | { kind: 'stop'; reason: string }
  /** Some calls failed temporarily. `hasProgressed`: others were judged. */
  | { kind: 'delayed'; reason: string; hasProgressed: boolean };

export type JudgeBatchOutcome = 'completed' | 'stopped' | 'released';

function reasonOf(judged: JudgedSome): string {
  return 'reason' in judged ? judged.reason : 'INTERNAL';
}
