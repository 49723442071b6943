import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DrainSchedule } from '../../media/datagrams/drain-schedule.ts';

/** A schedule with a fake clock and a simulated packet queue. */
class Bench {
  packets = 0;
  /** Times of drains that found packets. */
  readonly turnsAtMs: number[] = [];
  isAsleep = false;
  mostPerTurn = 10_000;
  #onWoken: () => void = () => {};
  readonly schedule = new DrainSchedule({
    nowMs: () => Date.now(),
    drain: () => {
      const drained = Math.min(this.packets, this.mostPerTurn);
      this.packets -= drained;
      if (drained > 0) this.turnsAtMs.push(Date.now());
      return drained;
    },
    hasMore: () => this.packets > 0,
    startWaking: (onWoken) => {
      this.#onWoken = onWoken;
      this.isAsleep = true;
    },
    stopWaking: () => {
      this.isAsleep = false;
    },
  });

  arrive(packets: number): void {
    this.packets += packets;
    if (this.isAsleep) this.#onWoken();
  }

  async arriveFor(ms: number, packetsPerMs: number): Promise<void> {
    let owed = 0;
    for (let i = 0; i < ms; i++) {
      owed += packetsPerMs;
      this.arrive(Math.floor(owed));
      owed -= Math.floor(owed);
      await vi.advanceTimersByTimeAsync(1);
    }
  }
}

describe('drain schedule', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('sleeps at low load and drains each packet at once', async () => {
    const bench = new Bench();
    bench.schedule.start();
    for (let i = 0; i < 20; i++) {
      await vi.advanceTimersByTimeAsync(10);
      bench.arrive(1);
      await vi.advanceTimersByTimeAsync(0);
      expect(bench.packets).toBe(0);
    }
    expect(bench.isAsleep).toBe(true);
    bench.schedule.stop();
  });

  it('polls every 1 ms at high load and every 2 ms at very high load, and sleeps again afterwards', async () => {
    const bench = new Bench();
    bench.schedule.start();
    await bench.arriveFor(300, 3);
    expect(bench.isAsleep).toBe(false);
    expect(gapsOf(bench.turnsAtMs.slice(-20))).toEqual([1]);
    await bench.arriveFor(300, 30);
    expect(gapsOf(bench.turnsAtMs.slice(-20))).toEqual([2]);
    await bench.arriveFor(300, 3);
    expect(gapsOf(bench.turnsAtMs.slice(-20))).toEqual([1]);
    await bench.arriveFor(300, 0.1);
    expect(bench.isAsleep).toBe(true);
    bench.schedule.stop();
  });

  it('lets timers run between the turns of a backlog', async () => {
    const bench = new Bench();
    bench.mostPerTurn = 100;
    bench.schedule.start();
    await vi.advanceTimersByTimeAsync(5);
    const order: string[] = [];
    const before = bench.turnsAtMs.length;
    bench.arrive(1000);
    setImmediate(() => order.push(`after ${bench.turnsAtMs.length - before} turns`));
    await vi.advanceTimersByTimeAsync(0);
    await vi.advanceTimersByTimeAsync(5);
    expect(bench.packets).toBe(0);
    expect(bench.turnsAtMs.length - before).toBe(10);
    expect(order).toEqual(['after 1 turns']);
    bench.schedule.stop();
  });

  it('drains nothing after stop, and continues after start', async () => {
    const bench = new Bench();
    bench.schedule.start();
    await bench.arriveFor(200, 3);
    bench.schedule.stop();
    bench.packets = 5;
    await vi.advanceTimersByTimeAsync(100);
    expect(bench.packets).toBe(5);
    expect(vi.getTimerCount()).toBe(0);
    bench.schedule.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(bench.packets).toBe(0);
    bench.schedule.stop();
  });
});

function gapsOf(times: readonly number[]): number[] {
  return [...new Set(times.slice(1).map((time, index) => time - times[index]!))];
}
