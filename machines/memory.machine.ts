import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * A memory on its way into what can be recalled. It is `pending` until it is its turn, and then `processing`, in stages:
 * `extracting` the facts that its text states, `chunking` the text, `embedding` both, and `indexing`, which stores what
 * came of it, all or nothing. Then it is `ready`.
 *
 * Whatever a stage breaks on is ours, and tried again from the first stage: the memory is `waiting`, twice as long after
 * each attempt, and `memory.due` cuts the wait short. After the last attempt it is `failing`, until that and what is paid
 * back are stored, and has then `failed`. Only `memory.retried` makes it `pending` again, with all attempts before it.
 * A memory that comes back with no attempt left, because something ended the process each time, fails at once. Deleted at
 * any time, it is `deleted`, and what was under way stops.
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
    /** Stores that it failed, and pays it back. Idempotent. */
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

/** With the waits between them some forty minutes. */
export const MOST_MEMORY_ATTEMPTS = 12;
const FIRST_BACKOFF_MS = 2_000;
const LONGEST_BACKOFF_MS = 600_000;

/** How long to wait after so many attempts have failed. */
export function memoryBackoffMs(attempts: number): number {
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(20, Math.max(0, attempts - 1)));
}

/** A code where the error has one; what it says may quote the text, and stays behind. */
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
  /** That were begun already. */
  attempts: number;
}

interface MemoryContext extends MemoryInput {
  /** Of the last attempt. */
  fault: MemoryFault | null;
  /** Attempts to store that it failed, in a row. */
  giveUps: number;
}

export type MemoryEvent = { type: 'memory.due' } | { type: 'memory.retried' } | { type: 'memory.deleted' };
