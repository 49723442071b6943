import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SessionTicker } from '../../media/session-ticker.ts';

const PERIOD_MS = 250;

describe('the ticks of sessions', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function open(sessions: number) {
    const ticker = new SessionTicker(PERIOD_MS);
    const tickedAtMs: number[][] = Array.from({ length: sessions }, () => []);
    const ticked = tickedAtMs.map((times) => ({ tick: () => void times.push(Date.now()) }));
    for (const session of ticked) ticker.add(session);
    return { ticker, tickedAtMs, ticked };
  }

  it.each([1, 50, 51, 1000])('comes once per period to each of %i sessions', (sessions) => {
    const { tickedAtMs } = open(sessions);
    vi.advanceTimersByTime(4 * PERIOD_MS);
    expect(new Set(tickedAtMs.map((times) => times.length))).toEqual(new Set([4]));
    for (const times of tickedAtMs) expect(times[3]! - times[0]!).toBe(3 * PERIOD_MS);
  });

  it.each([1, 1000])('report a stall until the waiting packets are read, with %i sessions', (sessions) => {
    let lateByMs = 0;
    const ticker = new SessionTicker(PERIOD_MS, () => Date.now() + lateByMs);
    const read: { atMs: number; untilMs: number }[] = [];
    const tick = (untilMs: number) => void read.push({ atMs: Date.now() + lateByMs, untilMs });
    for (let session = 0; session < sessions; session++) ticker.add({ tick });
    vi.advanceTimersByTime(2 * PERIOD_MS);
    expect(read.every(({ atMs, untilMs }) => atMs === untilMs)).toBe(true);
    const stalledAtMs = Date.now();
    lateByMs = 120;
    read.length = 0;
    vi.advanceTimersByTime(PERIOD_MS);
    expect(read).toHaveLength(sessions);
    expect(read.every(({ untilMs }) => untilMs === stalledAtMs)).toBe(true);
    read.length = 0;
    vi.advanceTimersByTime(PERIOD_MS);
    expect(read.every(({ atMs, untilMs }) => atMs === untilMs)).toBe(true);
  });

  it('serves at most a fiftieth of a thousand sessions at once', () => {
    const { tickedAtMs } = open(1000);
    vi.advanceTimersByTime(PERIOD_MS);
    const inOneTurn = Object.values(Object.groupBy(tickedAtMs.flat(), String)).map((times) => times!.length);
    expect(inOneTurn).toEqual(Array(50).fill(20));
  });

  it('ends for a session that is removed, even by a tick of its own', () => {
    const { ticker, tickedAtMs, ticked } = open(3);
    const once = { tick: vi.fn(() => ticker.remove(once)) };
    ticker.add(once);
    ticker.remove(ticked[1]!);
    ticker.remove(ticked[1]!);
    vi.advanceTimersByTime(3 * PERIOD_MS);
    expect(once.tick).toHaveBeenCalledTimes(1);
    expect(tickedAtMs.map((times) => times.length)).toEqual([3, 0, 3]);
  });

  it('keeps no timer without sessions', () => {
    const { ticker, ticked } = open(2);
    expect(vi.getTimerCount()).toBe(1);
    for (const session of ticked) ticker.remove(session);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on while the number of sessions rises and falls', () => {
    const { ticker, tickedAtMs } = open(50);
    const more = { tick: vi.fn() };
    for (let turn = 0; turn < 8; turn++) {
      if (turn % 2 === 0) ticker.add(more);
      else ticker.remove(more);
      vi.advanceTimersByTime(PERIOD_MS);
    }
    for (const times of tickedAtMs) expect(times.length).toBeGreaterThanOrEqual(7);
  });
});
