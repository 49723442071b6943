import { setImmediate as settled } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Gate, GateFullError } from '../../runtime/gate.ts';
import * as fc from '../properties.ts';

describe('Gate.run', () => {
  it('runs a limited number of tasks at a time, and the waiting ones in order', async () => {
    const gate = new Gate({ inAll: 2 });
    const all = [work(), work(), work(), work()];
    const runs = all.map(({ run }) => gate.run(run));
    await settled();
    expect(all.map(({ isRunning }) => isRunning())).toEqual([true, true, false, false]);
    all[1]!.end();
    await settled();
    expect(all.map(({ isRunning }) => isRunning())).toEqual([true, false, true, false]);
    for (const { end } of all) end();
    await Promise.all(runs);
    await gate.idle();
  });

  it('passes the turn of a waiter that leaves to the next', async () => {
    const gate = new Gate({ inAll: 1 });
    const [first, gone, last] = [work(), work(), work()];
    const leaving = new AbortController();
    const running = gate.run(() => {
      const going = first.run();
      void going.then(() => leaving.abort(new Error('left')));
      return going;
    });
    const left = gate.run(gone.run, { signal: leaving.signal });
    const waited = gate.run(last.run);
    first.end();
    await running;
    await expect(left).rejects.toThrow('left');
    await settled();
    expect([gone.isRunning(), last.isRunning()]).toEqual([false, true]);
    last.end();
    await waited;
  });

  it('passes the turn of a waiter that aborts at the same moment to the next', async () => {
    const gate = new Gate({ inAll: 1 });
    const release = await gate.enter();
    const leaving = new AbortController();
    const left = gate.run(async () => 'ran', { signal: leaving.signal });
    const next = gate.enter();
    release();
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    (await next)();
    expect(gate.counts).toEqual({ running: 0, waiting: 0, lanes: 0 });
  });

  it('never lets a newcomer overtake a waiter', async () => {
    const gate = new Gate({ inAll: 1 });
    const [first, second, third] = [work(), work(), work()];
    const running = gate.run(first.run);
    const waiting = gate.run(second.run);
    const coming = running.then(() => gate.run(third.run));
    first.end();
    await settled();
    expect([second.isRunning(), third.isRunning()]).toEqual([true, false]);
    second.end();
    third.end();
    await Promise.all([waiting, coming]);
  });

  it('releases the pass of a task that fails', async () => {
    const gate = new Gate({ inAll: 1 });
    await expect(gate.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await gate.run(async () => 'next')).toBe('next');
  });

  it('runs nothing if the signal has already aborted', async () => {
    const gate = new Gate({ inAll: 1 });
    await expect(gate.run(async () => {}, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
  });
});

describe('Gate.enter', () => {
  it('releases a pass once despite repeated calls', async () => {
    const gate = new Gate({ inAll: 1 });
    const release = await gate.enter();
    const [second, third] = [gate.enter(), gate.enter()];
    release();
    release();
    const releaseSecond = await second;
    expect(gate.counts).toEqual({ running: 1, waiting: 1, lanes: 1 });
    releaseSecond();
    (await third)();
  });

  it('serves lanes round robin', async () => {
    const gate = new Gate({ inAll: 1 });
    const release = await gate.enter({ lane: 'a' });
    const order: string[] = [];
    const runs = ['a1', 'a2', 'b1', 'a3', 'b2', 'c1'].map((name) =>
      gate.run(async () => void order.push(name), { lane: name.charAt(0) }),
    );
    release();
    await Promise.all(runs);
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('rejects a waiter whose patience ends, and keeps its pass for the next one', async () => {
    const gate = new Gate({ inAll: 1 });
    const release = await gate.enter({ patienceMs: 1 });
    await expect(gate.enter({ patienceMs: 1 })).rejects.toThrow(GateFullError);
    const next = gate.enter({ patienceMs: 60_000 });
    release();
    (await next)();
    expect(gate.counts).toEqual({ running: 0, waiting: 0, lanes: 0 });
  });

  it('rejects newcomers of a lane with too many waiters', async () => {
    const gate = new Gate({ inAll: 1, waitingPerLane: 1 });
    const release = await gate.enter({ lane: 'a' });
    const waiting = gate.enter({ lane: 'a' });
    expect([gate.outlook('a'), gate.outlook('b')]).toEqual(['full', 'wait']);
    await expect(gate.enter({ lane: 'a' })).rejects.toThrow(GateFullError);
    release();
    (await waiting)();
    expect(gate.outlook('a')).toBe('free');
  });

  it('takes room from the longest lane, and rejects newcomers of that lane', async () => {
    const gate = new Gate({ inAll: 1, waiting: 3 });
    const release = await gate.enter({ lane: 'a' });
    const greedy = ['a', 'a', 'a'].map((lane) => gate.run(async () => 'ran', { lane }).catch(() => 'turned away'));
    await expect(gate.enter({ lane: 'a' })).rejects.toThrow(GateFullError);
    const modest = gate.run(async () => 'ran', { lane: 'b' });
    release();
    expect(await Promise.all([...greedy, modest])).toEqual(['ran', 'ran', 'turned away', 'ran']);
  });
});

type Step = { type: 'enter'; lane: 'a' | 'b' | 'c' } | { type: 'release' | 'abort'; which: number };

describe('Gate under random operations', () => {
  const which = fc.nat({ max: 30 });
  const step = fc.oneof(
    fc.record({ type: fc.constant('enter' as const), lane: fc.constantFrom('a' as const, 'b' as const, 'c' as const) }),
    fc.record({ type: fc.constantFrom('release' as const, 'abort' as const), which }),
  );
  // Steps of a burst happen at the same moment.
  const bursts = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 40 });
  const limits = fc.record({
    inAll: fc.integer({ min: 1, max: 4 }),
    perLane: fc.integer({ min: 1, max: 4 }),
    waiting: fc.integer({ min: 1, max: 8 }),
    waitingPerLane: fc.integer({ min: 1, max: 6 }),
  });

  it('respects its limits, serves each lane in FIFO order, and loses neither a pass nor a waiter', async () => {
    await fc.assert(
      fc.asyncProperty(limits, bursts, async (given, run) => {
        const visitors = new Visitors(new Gate(given));
        for (const burst of run) {
          for (const each of burst) {
            visitors.do(each);
            const { inside } = visitors;
            expect(visitors.gate.counts.running).toBeLessThanOrEqual(given.inAll);
            expect(visitors.gate.counts.waiting).toBeLessThanOrEqual(given.waiting);
            expect(inside.length).toBeLessThanOrEqual(given.inAll);
            for (const lane of ['a', 'b', 'c']) {
              expect(inside.filter((one) => one.lane === lane).length).toBeLessThanOrEqual(given.perLane);
            }
          }
          await settled();
          expect(visitors.gate.counts).toMatchObject({
            running: visitors.inside.length,
            waiting: visitors.outside.length,
          });
          for (const lane of ['a', 'b', 'c']) {
            const entered = visitors.entered.filter((one) => one.lane === lane).map(({ number }) => number);
            expect(entered).toEqual(entered.toSorted((a, b) => a - b));
            // A free pass has no waiters.
            const doesWait = visitors.outside.some((one) => one.lane === lane);
            if (doesWait) expect(visitors.gate.outlook(lane)).not.toBe('free');
          }
        }
        for (; visitors.inside.length > 0; await settled()) visitors.do({ type: 'release', which: 0 });
        expect(visitors.outside).toEqual([]);
        expect(visitors.gate.counts).toEqual({ running: 0, waiting: 0, lanes: 0 });
        await visitors.gate.idle();
      }),
      { numRuns: 200 },
    );
  });
});

interface Visitor {
  number: number;
  lane: string;
  state: 'outside' | 'inside' | 'gone';
  leaving: AbortController;
  release: () => void;
}

class Visitors {
  readonly gate: Gate;
  readonly #all: Visitor[] = [];
  readonly entered: Visitor[] = [];

  constructor(gate: Gate) {
    this.gate = gate;
  }

  get inside(): Visitor[] {
    return this.#all.filter(({ state }) => state === 'inside');
  }

  get outside(): Visitor[] {
    return this.#all.filter(({ state }) => state === 'outside');
  }

  do(step: Step): void {
    if (step.type === 'enter') this.#enter(step.lane);
    else {
      const among = step.type === 'release' ? this.inside : this.outside;
      const visitor = among[step.which % among.length];
      if (visitor === undefined) return;
      if (step.type === 'abort') visitor.leaving.abort(new Error('left'));
      else {
        visitor.state = 'gone';
        visitor.release();
      }
    }
  }

  #enter(lane: string): void {
    const leaving = new AbortController();
    const visitor: Visitor = { number: this.#all.length, lane, state: 'outside', leaving, release: () => {} };
    this.#all.push(visitor);
    this.gate.enter({ lane, signal: leaving.signal }).then(
      (release) => {
        Object.assign(visitor, { state: 'inside', release });
        this.entered.push(visitor);
      },
      () => {
        visitor.state = 'gone';
      },
    );
  }
}

function work() {
  const ended = Promise.withResolvers<void>();
  let isRunning = false;
  return {
    end: ended.resolve,
    isRunning: () => isRunning,
    async run() {
      isRunning = true;
      await ended.promise;
      isRunning = false;
    },
  };
}
