import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DrainSchedule } from '../../media/datagrams/drain-schedule.ts';

/** A schedule under a clock that the test moves, and packets that arrive when the test says so. */
class Bench {
  /** Not yet drained. */
  packets = 0;
  /** When packets were drained. */
  readonly turnsAtMs: number[] = [];
  isAsleep = false;
  /** Packets that a turn handles at most. */
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

  /** As many packets in each millisecond. */
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

describe('the drain schedule', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('sleeps while few packets arrive, and drains each at once', async () => {
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

  it('looks every millisecond when many arrive, every two when very many do, and sleeps again afterwards', async () => {
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

  it('lets timers run between the turns that a backlog takes', async () => {
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

  it('drains nothing once it is stopped, and goes on when it is started again', async () => {
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

/** The different distances between neighbours. */
function gapsOf(times: readonly number[]): number[] {
  return [...new Set(times.slice(1).map((time, index) => time - times[index]!))];
}
