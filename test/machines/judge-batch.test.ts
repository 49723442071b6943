import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { type JudgedSome, judgeBatchMachine } from '../../machines/judge-batch.machine.ts';

const BATCH_ID = 'batch-1';

type Happening =
  | 'progressed'
  | 'none left'
  | 'wallet ran dry'
  | 'model away'
  | 'judging failed'
  | 'stored'
  | 'storing failed'
  | 'backoff passed'
  | 'released';
const HAPPENINGS: Happening[] = [
  'progressed',
  'none left',
  'wallet ran dry',
  'model away',
  'judging failed',
  'stored',
  'storing failed',
  'backoff passed',
  'released',
];

const PATHS = {
  judging: [],
  waiting: ['model away'],
  ending: ['none left'],
  waitingToEnd: ['none left', 'storing failed'],
  stopping: ['wallet ran dry'],
  completed: ['none left', 'stored'],
  stopped: ['wallet ran dry', 'stored'],
  released: ['released'],
} as const satisfies Record<string, Happening[]>;

/** State x event. An absent cell means no change. `stopping` is `ending` with a reason. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  judging: {
    progressed: 'judging',
    'none left': 'ending',
    'wallet ran dry': 'ending',
    'model away': 'waiting',
    'judging failed': 'waiting',
    released: 'released',
  },
  waiting: { 'backoff passed': 'judging', released: 'released' },
  ending: { stored: 'completed', 'storing failed': 'waitingToEnd', released: 'released' },
  waitingToEnd: { 'backoff passed': 'ending', released: 'released' },
  stopping: { stored: 'stopped', 'storing failed': 'waitingToEnd', released: 'released' },
  completed: {},
  stopped: {},
  released: {},
};

describe('judge batch machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const happening of HAPPENINGS) {
      const cell = TABLE[state][happening];
      it(`in ${state}, "${happening}" ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, async () => {
        const batch = startBatch();
        for (const step of PATHS[state]) await batch.take(step);
        const here = state === 'stopping' ? 'ending' : state;
        expect(batch.state()).toBe(here);
        await batch.take(happening);
        expect(batch.state()).toBe(cell ?? here);
      });
    }
  }
});

describe('judge batch', () => {
  it('continues until no call remains, and stores its end once', async () => {
    const batch = startBatch();
    for (let round = 1; round <= 3; round++) await batch.take('progressed');
    await batch.take('none left');
    await batch.take('stored');
    expect([batch.judgings.length, batch.ended, batch.output()]).toEqual([4, [null], 'completed']);
  });

  it('retries storing its stop reason until storage returns', async () => {
    const batch = startBatch();
    await batch.take('wallet ran dry');
    for (let failure = 1; failure <= 20; failure++) {
      await batch.take('storing failed');
      await batch.waitMs();
    }
    await batch.take('stored');
    expect(new Set(batch.ended)).toEqual(new Set(['INSUFFICIENT_CREDITS']));
    expect([batch.ended.length, batch.output()]).toEqual([21, 'stopped']);
  });

  it.each([
    ['model away', 'LLM_UNAVAILABLE'],
    ['judging failed', 'INTERNAL'],
  ] as const)('doubles the delay after each "%s", and stops after the twelfth in a row', async (happening, reason) => {
    const batch = startBatch();
    const waits: number[] = [];
    for (let failure = 1; failure < 12; failure++) {
      await batch.take(happening);
      waits.push(await batch.waitMs());
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((s) => s * 1000));
    await batch.take(happening);
    await batch.take('stored');
    expect([batch.ended, batch.output()]).toEqual([[reason], 'stopped']);
  });

  it('resets the failure count after any progress', async () => {
    const batch = startBatch();
    for (let round = 1; round <= 30; round++) {
      await batch.take('partly progressed');
      expect(batch.state()).toBe('waiting');
      expect(await batch.waitMs()).toBe(1_000);
    }
    for (let failure = 1; failure <= 3; failure++) {
      await batch.take('model away');
      await batch.waitMs();
    }
    await batch.take('progressed');
    await batch.take('model away');
    expect(await batch.waitMs()).toBe(1_000);
  });

  it('cancels the current work without a result when released', async () => {
    const batch = startBatch();
    await batch.take('released');
    expect(batch.judgings.map(({ aborted }) => aborted)).toEqual([true]);
    expect([batch.ended, batch.output()]).toEqual([[], 'released']);
  });
});

const OUTCOMES: Partial<Record<Happening | 'partly progressed', JudgedSome>> = {
  progressed: { kind: 'progressed' },
  'none left': { kind: 'none_left' },
  'wallet ran dry': { kind: 'stop', reason: 'INSUFFICIENT_CREDITS' },
  'model away': { kind: 'delayed', reason: 'LLM_UNAVAILABLE', hasProgressed: false },
  'partly progressed': { kind: 'delayed', reason: 'LLM_UNAVAILABLE', hasProgressed: true },
};

function startBatch() {
  const clock = new SimulatedClock();
  const judgings: AbortSignal[] = [];
  const ended: (string | null)[] = [];
  let judging = deferred<JudgedSome>();
  let ending = deferred<void>();
  const machine = judgeBatchMachine.provide({
    actors: {
      judgeSome: fromPromise(({ input, signal }) => {
        expect(input.batchId).toBe(BATCH_ID);
        judgings.push(signal);
        judging = deferred();
        return judging.promise;
      }),
      end: fromPromise(({ input: { stopReason } }) => {
        ended.push(stopReason);
        ending = deferred();
        return ending.promise;
      }),
    },
  });
  const actor = createActor(machine, { input: { batchId: BATCH_ID }, clock });
  actor.start();
  const state = () => actor.getSnapshot().value;
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    judgings,
    ended,
    state,
    output: () => actor.getSnapshot().output,
    async take(happening: Happening | 'partly progressed') {
      const outcome = OUTCOMES[happening];
      if (outcome !== undefined) judging.resolve(outcome);
      if (happening === 'judging failed') judging.reject(new Error('the database is gone'));
      if (happening === 'stored') ending.resolve();
      if (happening === 'storing failed') ending.reject(new Error('the database is gone'));
      if (happening === 'backoff passed') clock.increment(300_000);
      if (happening === 'released') actor.send({ type: 'batch.released' });
      await settle();
    },
    /** Lets the delay pass, and returns it. */
    async waitMs() {
      const from = clock.now();
      const waiting = state();
      while (state() === waiting) clock.increment(500);
      await settle();
      return clock.now() - from;
    },
  };
}

/** Avoids unhandled rejections. */
function deferred<T>() {
  const made = Promise.withResolvers<T>();
  made.promise.catch(() => undefined);
  return made;
}
