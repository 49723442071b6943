import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { InstancePool } from '../../../speech/synthesis/instance-pool.ts';
import type { SynthesisEngine } from '../../../speech/synthesizer.ts';

const NEVER = new AbortController().signal;
let running = 0;

const engine: SynthesisEngine = {
  name: 'espeak-ng',
  controlsPitch: true,
  maxInstances: 4,
  voices: async () => [],
  problem: async () => null,
  async start() {
    running += 1;
    return {
      sampleRateHz: 8000,
      async *speak() {},
      async close() {
        running -= 1;
      },
    };
  },
};

beforeEach(() => {
  running = 0;
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const lease = (pool: InstancePool, isFirst = false): ReturnType<InstancePool['lease']> =>
  pool.lease({ engine, model: 'm', isFresh: false, isFirst, signal: NEVER });

describe('instance pool', () => {
  it('closes idle instances and starts another on demand', async () => {
    const pool = new InstancePool({ processes: 3, idleMs: 1000 });
    const leases = await Promise.all([lease(pool), lease(pool), lease(pool)]);
    expect(running).toBe(3);
    for (const each of leases) each.release({ broken: null });
    await vi.advanceTimersByTimeAsync(999);
    expect(running).toBe(3);
    await vi.advanceTimersByTimeAsync(1);
    expect(running).toBe(0);
    (await lease(pool)).release({ broken: null });
    expect(running).toBe(1);
    await pool.close();
    expect(running).toBe(0);
  });

  it('keeps an idle instance for 15 minutes', async () => {
    const pool = new InstancePool({ processes: 3 });
    (await lease(pool)).release({ broken: null });
    await vi.advanceTimersByTimeAsync(15 * 60_000 - 1);
    expect(running).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(running).toBe(0);
    await pool.close();
  });

  it('serves starting texts before earlier requests', async () => {
    const pool = new InstancePool({ processes: 1 });
    const first = await lease(pool);
    const served: string[] = [];
    const waiting = [
      lease(pool).then((each) => ({ each, name: 'middle' })),
      lease(pool, true).then((each) => ({ each, name: 'beginning' })),
      lease(pool).then((each) => ({ each, name: 'other middle' })),
    ].map(async (asked) => {
      const { each, name } = await asked;
      served.push(name);
      each.release({ broken: null });
    });
    first.release({ broken: null });
    await Promise.all(waiting);
    expect(served).toEqual(['beginning', 'middle', 'other middle']);
    await pool.close();
  });

  it('also serves continued texts however many start', async () => {
    const pool = new InstancePool({ processes: 1 });
    const first = await lease(pool);
    let isServed = false;
    const middle = lease(pool).then((each) => {
      isServed = true;
      each.release({ broken: null });
    });
    const beginning = async (): Promise<void> => {
      const each = await lease(pool, true);
      await vi.advanceTimersByTimeAsync(500);
      // The next request arrives before this one is served.
      if (!isServed) beginning().catch(() => {});
      each.release({ broken: null });
    };
    for (let count = 0; count < 2; count++) beginning().catch(() => {});
    first.release({ broken: null });
    await middle;
    expect(isServed).toBe(true);
    await pool.close();
  });

  it('closes an idle instance while another one works', async () => {
    const pool = new InstancePool({ processes: 2, idleMs: 1000 });
    (await lease(pool)).release({ broken: null });
    await vi.advanceTimersByTimeAsync(999);
    const other = await pool.lease({ engine, model: 'n', isFresh: false, isFirst: false, signal: NEVER });
    expect(running).toBe(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(running).toBe(1);
    other.release({ broken: null });
    await pool.close();
  });

  it('starts another instance once idle ones have closed, even if that takes long', async () => {
    const closed = Promise.withResolvers<void>();
    const slow: SynthesisEngine = {
      ...engine,
      start: async () => ({ ...(await engine.start({ model: '', signal: NEVER })), close: () => closed.promise }),
    };
    const pool = new InstancePool({ processes: 2, idleMs: 1000 });
    const leaseSlow = () => pool.lease({ engine: slow, model: 'm', isFresh: false, isFirst: false, signal: NEVER });
    for (const each of await Promise.all([leaseSlow(), leaseSlow()])) each.release({ broken: null });
    await vi.advanceTimersByTimeAsync(1000);
    const next = leaseSlow();
    expect(running).toBe(2);
    closed.resolve();
    (await next).release({ broken: null });
    // Instances of this engine never count as closed.
    expect(running).toBe(3);
    await pool.close();
  });
});
