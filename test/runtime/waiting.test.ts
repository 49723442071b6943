import { getEventListeners } from 'node:events';
import { setImmediate as settled } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SimulatedClock } from 'xstate';
import { LATE, pause, raceAbort, repeat, within } from '../../runtime/waiting.ts';

const gone = new Error('gone');

describe('raceAbort', () => {
  it('resolves with the result of the work', async () => {
    const { signal } = new AbortController();
    expect(await raceAbort(Promise.resolve(7), signal)).toBe(7);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('rejects with the abort reason if the signal aborts first', async () => {
    const owner = new AbortController();
    const work = Promise.withResolvers<void>();
    const raced = raceAbort(work.promise, owner.signal);
    owner.abort(gone);
    await expect(raced).rejects.toBe(gone);
    expect(getEventListeners(owner.signal, 'abort')).toEqual([]);
  });

  it('rejects at once if the signal has already aborted', async () => {
    await expect(raceAbort(Promise.withResolvers<void>().promise, AbortSignal.abort(gone))).rejects.toBe(gone);
  });

  it('ignores a failure after the abort', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    const work = Promise.withResolvers<void>();
    await expect(raceAbort(work.promise, AbortSignal.abort(gone))).rejects.toBe(gone);
    work.reject(new Error('too late'));
    // Node.js reports unhandled rejections after the microtasks of a macrotask.
    await settled();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('within', () => {
  it('resolves with the result of the work and clears its timer', async () => {
    const clock = new CountingClock();
    expect(await within(Promise.resolve('done'), { ms: 100, clock })).toBe('done');
    expect(clock.pending.size).toBe(0);
  });

  it('resolves with LATE at the timeout', async () => {
    const clock = new SimulatedClock();
    const waited = within(Promise.withResolvers<void>().promise, { ms: 100, clock });
    clock.increment(100);
    expect(await waited).toBe(LATE);
  });

  it('rejects with the error of the work and clears its timer', async () => {
    const clock = new CountingClock();
    await expect(within(Promise.reject(gone), { ms: 100, clock })).rejects.toBe(gone);
    expect(clock.pending.size).toBe(0);
  });

  it('rejects with the abort reason and clears its timer', async () => {
    const clock = new CountingClock();
    const owner = new AbortController();
    const waited = within(Promise.withResolvers<void>().promise, { ms: 100, clock, signal: owner.signal });
    owner.abort(gone);
    await expect(waited).rejects.toBe(gone);
    expect(clock.pending.size).toBe(0);
  });

  it('sets no timer without a timeout', async () => {
    const clock = new CountingClock();
    const work = Promise.withResolvers<string>();
    const waited = within(work.promise, { ms: Infinity, clock });
    expect(clock.pending.size).toBe(0);
    work.resolve('done');
    expect(await waited).toBe('done');
  });
});

describe('pause', () => {
  it('resolves at the timeout', async () => {
    const clock = new SimulatedClock();
    const paused = pause(100, { clock, signal: new AbortController().signal });
    clock.increment(100);
    await expect(paused).resolves.toBeUndefined();
  });

  it('ends as soon as the signal aborts', async () => {
    const clock = new CountingClock();
    const owner = new AbortController();
    const paused = pause(100, { clock, signal: owner.signal });
    owner.abort(gone);
    await expect(paused).rejects.toBe(gone);
    expect(clock.pending.size).toBe(0);
  });
});

describe('repeat', () => {
  it('runs at once and after each pause, until the signal aborts', async () => {
    const clock = new SimulatedClock();
    const owner = new AbortController();
    const runs: PromiseWithResolvers<void>[] = [];
    const work = () => {
      runs.push(Promise.withResolvers<void>());
      return runs.at(-1)!.promise;
    };
    const ended = repeat(work, { everyMs: 100, clock, signal: owner.signal });
    clock.increment(1000);
    expect(runs.length).toBe(1);
    runs[0]!.resolve();
    await settled();
    clock.increment(99);
    await settled();
    expect(runs.length).toBe(1);
    clock.increment(1);
    await settled();
    expect(runs.length).toBe(2);
    owner.abort();
    runs[1]!.resolve();
    await ended;
    clock.increment(1000);
    await settled();
    expect(runs.length).toBe(2);
  });

  it('rejects with the error of the work', async () => {
    const work = () => Promise.reject(gone);
    await expect(repeat(work, { everyMs: 1, signal: new AbortController().signal })).rejects.toBe(gone);
  });
});

/** Timers that never fire. */
class CountingClock {
  readonly pending = new Set<object>();
  now = () => 0;
  setTimeout = () => {
    const handle = {};
    this.pending.add(handle);
    return handle;
  };
  clearTimeout = (handle: unknown) => {
    this.pending.delete(handle as object);
  };
}
