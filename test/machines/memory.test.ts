import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { MOST_MEMORY_ATTEMPTS, memoryBackoffMs, memoryMachine } from '../../machines/memory.machine.ts';

const MEMORY_ID = 'memory-1';

const HAPPENINGS = [
  'due',
  'done',
  'attempt failed',
  'last attempt failed',
  'wait passed',
  'retried',
  'deleted',
] as const;
type Happening = (typeof HAPPENINGS)[number];

const PATHS = {
  pending: [],
  extracting: ['due'],
  chunking: ['due', 'done'],
  embedding: ['due', 'done', 'done'],
  indexing: ['due', 'done', 'done', 'done'],
  waiting: ['due', 'attempt failed'],
  failing: ['due', 'last attempt failed'],
  waitingToFail: ['due', 'last attempt failed', 'attempt failed'],
  failed: ['due', 'last attempt failed', 'done'],
  ready: ['due', 'done', 'done', 'done', 'done'],
  deleted: ['deleted'],
} as const satisfies Record<string, Happening[]>;

const BREAKS = { 'attempt failed': 'waiting', 'last attempt failed': 'failing', deleted: 'deleted' } as const;

/** State x event. An absent cell means no change. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  pending: { due: 'extracting', deleted: 'deleted' },
  extracting: { done: 'chunking', ...BREAKS },
  chunking: { done: 'embedding', ...BREAKS },
  embedding: { done: 'indexing', ...BREAKS },
  indexing: { done: 'ready', ...BREAKS },
  waiting: { due: 'extracting', 'wait passed': 'extracting', deleted: 'deleted' },
  failing: {
    done: 'failed',
    'attempt failed': 'waitingToFail',
    'last attempt failed': 'waitingToFail',
    deleted: 'deleted',
  },
  waitingToFail: { 'wait passed': 'failing', deleted: 'deleted' },
  failed: { retried: 'pending', deleted: 'deleted' },
  ready: { deleted: 'deleted' },
  deleted: {},
};

describe('memory machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const happening of HAPPENINGS) {
      const cell = TABLE[state][happening];
      it(`in ${state}, "${happening}" ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, async () => {
        const path: readonly Happening[] = PATHS[state];
        // The last attempt follows all others.
        const last: Happening = 'last attempt failed';
        const isLast = path.includes(last) || (happening === last && !path.includes('attempt failed'));
        const memory = startMemory(isLast ? { attempts: MOST_MEMORY_ATTEMPTS - 1 } : {});
        for (const step of path) await memory.take(step);
        const expected = isLast && state === 'pending' ? 'waiting' : state;
        expect(memory.state()).toBe(expected);
        await memory.take(happening);
        expect(memory.state()).toBe(cell ?? expected);
      });
    }
  }
});

describe('memory', () => {
  it('doubles the delay after each failed attempt, and fails after the last one', async () => {
    const memory = startMemory();
    await memory.take('due');
    const waits: number[] = [];
    for (let attempt = 1; attempt < MOST_MEMORY_ATTEMPTS; attempt += 1) {
      await memory.take('attempt failed');
      expect(memory.state()).toBe('waiting');
      waits.push(await memory.waitMs());
    }
    expect(waits.slice(0, 4)).toEqual([2_000, 4_000, 8_000, 16_000]);
    expect(waits.at(-1)).toBe(600_000);
    expect(waits).toEqual(waits.map((_, index) => memoryBackoffMs(index + 1)));
    await memory.take('attempt failed');
    expect([memory.state(), memory.attempts()]).toEqual(['failing', MOST_MEMORY_ATTEMPTS]);
    expect(memory.failureCodes).toEqual(['MEMORY_UNREACHABLE']);
  });

  it('waits for its next attempt after a restart', () => {
    expect(startMemory({ attempts: 3 }).state()).toBe('waiting');
  });

  it('fails without processing when restored with no attempt left', () => {
    const memory = startMemory({ attempts: MOST_MEMORY_ATTEMPTS });
    expect([memory.state(), memory.started, memory.failureCodes]).toEqual(['failing', ['giveUp'], ['INTERNAL']]);
  });

  it('gets all attempts again when retried after a failure', async () => {
    const memory = startMemory({ attempts: MOST_MEMORY_ATTEMPTS - 1 });
    for (const step of ['due', 'attempt failed', 'done', 'retried', 'due', 'attempt failed'] as const)
      await memory.take(step);
    expect([memory.state(), memory.attempts()]).toEqual(['waiting', 1]);
  });

  it('fails as soon as storage returns, without further processing', async () => {
    const memory = startMemory({ attempts: MOST_MEMORY_ATTEMPTS - 1 });
    for (const step of ['due', 'attempt failed'] as const) await memory.take(step);
    for (let failure = 0; failure < 20; failure += 1) {
      await memory.take('attempt failed');
      await memory.waitMs();
    }
    await memory.take('done');
    expect(memory.state()).toBe('failed');
    expect(memory.started.filter((port) => port !== 'giveUp')).toEqual(['extract']);
  });

  it('cancels its current attempt when deleted', async () => {
    const memory = startMemory();
    await memory.take('due');
    await memory.take('deleted');
    expect(memory.aborted()).toBe(true);
  });

  it('keeps only a valid error code of an error', async () => {
    for (const [thrown, code] of [
      [{ code: 'MEMORY_UNREACHABLE' }, 'MEMORY_UNREACHABLE'],
      [{ code: 'the text was: my secret' }, 'INTERNAL'],
      [null, 'INTERNAL'],
      [{ code: 42 }, 'INTERNAL'],
    ] as const) {
      const memory = startMemory({ attempts: MOST_MEMORY_ATTEMPTS - 1 });
      await memory.take('due');
      await memory.breakWith(thrown);
      expect(memory.failureCodes).toEqual([code]);
    }
  });
});

function startMemory({ attempts = 0 } = {}) {
  const clock = new SimulatedClock();
  const started: string[] = [];
  const failureCodes: string[] = [];
  let current: { resolve: () => void; reject: (error: unknown) => void; signal: AbortSignal } | null = null;
  function begin(name: string, memoryId: string, signal: AbortSignal): Promise<void> {
    expect(memoryId).toBe(MEMORY_ID);
    started.push(name);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    current = { resolve, reject, signal };
    return promise;
  }
  const port = (name: string) =>
    fromPromise<void, { memoryId: string }>(({ input, signal }) => begin(name, input.memoryId, signal));
  const actor = createActor(
    memoryMachine.provide({
      actors: {
        extract: port('extract'),
        chunk: port('chunk'),
        embed: port('embed'),
        index: port('index'),
        giveUp: fromPromise(({ input, signal }) => {
          failureCodes.push(input.error.code);
          return begin('giveUp', input.memoryId, signal);
        }),
      },
    }),
    { input: { memoryId: MEMORY_ID, attempts }, clock },
  );
  actor.start();

  const state = (): string => {
    const { value } = actor.getSnapshot();
    return typeof value === 'string' ? value : (Object.values(value)[0] as string);
  };
  const breakWith = async (error: unknown) => {
    current?.reject(error);
    await settled();
  };
  async function waitMs(): Promise<number> {
    const before = clock.now();
    const from = state();
    while (state() === from && clock.now() - before < 3_600_000) clock.increment(500);
    await settled();
    return clock.now() - before;
  }
  return {
    state,
    started,
    failureCodes,
    waitMs,
    breakWith,
    attempts: () => actor.getSnapshot().context.attempts,
    aborted: () => current?.signal.aborted,
    async take(happening: Happening): Promise<void> {
      if (happening === 'due') actor.send({ type: 'memory.due' });
      if (happening === 'retried') actor.send({ type: 'memory.retried' });
      if (happening === 'deleted') actor.send({ type: 'memory.deleted' });
      if (happening === 'done') current?.resolve();
      if (happening.endsWith('attempt failed')) current?.reject({ code: 'MEMORY_UNREACHABLE' });
      if (happening === 'wait passed') clock.increment(600_000);
      await settled();
    },
  };
}

/** Lets promises of ports settle and reach the machine. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}
