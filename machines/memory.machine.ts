import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * Processing of a memory until it can be recalled.
 *
 * A memory is `pending` until its turn, then `processing` in stages: `extracting` facts from its text, `chunking` the
 * text, `embedding` both, and `indexing`, which stores the results in one transaction. Then it is `ready`.
 *
 * A failure of a stage is ours. The memory is `waiting`, with a wait that doubles, and restarts at the first stage.
 * `memory.due` ends the wait early. After the last attempt it is `failing` until the failure and the refund are stored,
 * and then `failed`. Only `memory.retried` makes it `pending` again, with all its attempts. A restored memory without
 * attempts left, because each one ended the process, fails at once. Deletion makes it `deleted` in every state and
 * stops the work.
 */
export const memoryMachine = setup({
  types: {} as {
    context: MemoryContext;
    input: MemoryInput;
    events: MemoryEvent;
  },
  actors: {
    extract: fromPromise<void, MemoryRef>(notProvided('extract')),
    chunk: fromPromise<void, MemoryRef>(notProvided('chunk')),
    embed: fromPromise<void, MemoryRef>(notProvided('embed')),
    /** Idempotent. */
    index: fromPromise<void, MemoryRef>(notProvided('index')),
    /** Stores the failure and refunds the charge. Idempotent. */
    giveUp: fromPromise<void, MemoryRef & { error: MemoryFault }>(notProvided('giveUp')),
  },
  guards: {
    wasStarted: ({ context }) => context.attempts > 0,
    isLastAttempt: ({ context }) => context.attempts >= MOST_MEMORY_ATTEMPTS,
  },
  delays: {
    backoff: ({ context }) => memoryBackoffMs(context.attempts),
    giveUpBackoff: ({ context }) => memoryBackoffMs(context.giveUps),
  },
  actions: {
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    storeFault: assign((_, { error }: { error: unknown }) => ({ fault: faultOf(error) })),
    countGiveUp: assign({ giveUps: ({ context }) => context.giveUps + 1 }),
    resetAttempts: assign({ attempts: 0, giveUps: 0, fault: null }),
  },
}).createMachine({
  id: 'memory',
  context: ({ input }) => ({ ...input, fault: null, giveUps: 0 }),
  initial: 'arriving',
  on: { 'memory.deleted': '.deleted' },
  states: {
    arriving: {
      always: [
        { guard: 'isLastAttempt', target: 'failing' },
        { guard: 'wasStarted', target: 'waiting' },
        { target: 'pending' },
      ],
    },
    pending: { on: { 'memory.due': 'processing' } },
    processing: {
      entry: 'countAttempt',
      initial: 'extracting',
      states: {
        extracting: stage('extract', 'chunking'),
        chunking: stage('chunk', 'embedding'),
        embedding: stage('embed', 'indexing'),
        indexing: stage('index', '#memory.ready'),
      },
    },
    waiting: {
      on: { 'memory.due': 'processing' },
      after: { backoff: 'processing' },
    },
    failing: {
      invoke: {
        src: 'giveUp',
        input: ({ context: { memoryId, fault } }) => ({ memoryId, error: fault ?? UNKNOWN_FAULT }),
        onDone: 'failed',
        onError: { target: 'waitingToFail', actions: 'countGiveUp' },
      },
    },
    waitingToFail: { after: { giveUpBackoff: 'failing' } },
    failed: { on: { 'memory.retried': { target: 'pending', actions: 'resetAttempts' } } },
    ready: {},
    deleted: { type: 'final' },
  },
});

function stage<Src extends 'extract' | 'chunk' | 'embed' | 'index', Target extends string>(src: Src, next: Target) {
  const storeFault = {
    type: 'storeFault',
    params: ({ event }: { event: { error: unknown } }) => ({ error: event.error }),
  } as const;
  return {
    invoke: {
      src,
      input: ({ context: { memoryId } }: { context: MemoryContext }) => ({ memoryId }),
      onDone: next,
      onError: [
        { guard: 'isLastAttempt' as const, target: '#memory.failing', actions: storeFault },
        { target: '#memory.waiting', actions: storeFault },
      ],
    },
  };
}

/** About forty minutes including the waits. */
export const MOST_MEMORY_ATTEMPTS = 12;
const FIRST_BACKOFF_MS = 2_000;
const LONGEST_BACKOFF_MS = 600_000;

/** Wait after this number of failed attempts. */
export function memoryBackoffMs(attempts: number): number {
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(20, Math.max(0, attempts - 1)));
}

/** The code of the error, if any. The message is dropped, because it may quote the text. */
function faultOf(error: unknown): MemoryFault {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? { code } : UNKNOWN_FAULT;
}

const UNKNOWN_FAULT: MemoryFault = { code: 'INTERNAL' };

export interface MemoryFault {
  code: string;
}

export interface MemoryRef {
  memoryId: string;
}

export interface MemoryInput extends MemoryRef {
  attempts: number;
}

interface MemoryContext extends MemoryInput {
  /** Error of the last attempt. */
  fault: MemoryFault | null;
  /** Failed attempts in a row to store the failure. */
  giveUps: number;
}

export type MemoryEvent = { type: 'memory.due' } | { type: 'memory.retried' } | { type: 'memory.deleted' };
