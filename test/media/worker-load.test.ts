import { describe, expect, it } from 'vitest';
import { FULL, IDLE, LoadMeter, loadOf, WorkerLoad, type WorkerLoadReading } from '../../media/worker-load.ts';
import * as fc from '../properties.ts';

const reading = (fields: Partial<WorkerLoadReading>): WorkerLoadReading => ({ ...IDLE, measuredAtMs: 1000, ...fields });

describe('the load of a media worker', () => {
  it('grows with what the thread has to do, and is full before the thread is', () => {
    const at = (utilization: number): number => loadOf(reading({ utilization, packetsPerSecond: 5000 }), 50, 2000);
    expect(at(0.1)).toBeLessThan(at(0.4));
    expect(at(0.4)).toBeLessThan(at(0.8));
    expect(at(0.8)).toBeLessThan(FULL);
    expect(at(0.85)).toBe(FULL);
  });

  it('counts calls that ring as if they talked', () => {
    // 400 calls talk and keep the thread half busy; the others will too.
    const talking = reading({ utilization: 0.5, packetsPerSecond: 40_000 });
    expect(loadOf(talking, 400, 2000)).toBeLessThan(0.6);
    expect(loadOf(talking, 600, 2000)).toBeLessThan(FULL);
    expect(loadOf(talking, 700, 2000)).toBe(FULL);
  });

  it('does not conclude from a few calls, which wake the thread for every packet, on many', () => {
    const few = reading({ utilization: 0.05, packetsPerSecond: 500 });
    expect(loadOf(few, 200, 2000)).toBeLessThan(0.3);
    expect(loadOf(IDLE, 900, 2000)).toBe(FULL);
    // On a fast machine, nine hundred calls that all talk are little work.
    expect(loadOf(reading({ utilization: 0.2, packetsPerSecond: 90_000 }), 900, 2000)).toBeLessThan(0.3);
  });

  it('is full while timers are late because of the work, but not because of the machine', () => {
    expect(loadOf(reading({ latenessMs: 60, utilization: 0.6 }), 20, 2000)).toBe(FULL);
    expect(loadOf(reading({ latenessMs: 60, utilization: 0.2 }), 20, 2000)).toBeLessThan(FULL);
  });

  it('is full when the worker does not get to measure itself', () => {
    expect(loadOf(reading({}), 20, 5900)).toBeLessThan(FULL);
    expect(loadOf(reading({}), 20, 6100)).toBe(FULL);
  });

  it('leaves room for a few sessions whatever was measured, and is never above full', () => {
    fc.assert(
      fc.property(
        fc.record({
          utilization: fc.double({ min: 0, max: 1, noNaN: true }),
          latenessMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
          packetsPerSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
          measuredAtMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
        }),
        fc.integer({ min: 0, max: 5000 }),
        (measured, sessions) => {
          const load = loadOf(measured, sessions, 1e6);
          expect(load).toBeGreaterThanOrEqual(0);
          expect(load).toBeLessThanOrEqual(FULL);
          if (sessions < 10) expect(load).toBeLessThan(FULL);
        },
      ),
    );
  });
});

describe('the load meter', () => {
  it('writes once a second what another thread reads: packets, lateness, and how busy the thread was', () => {
    const load = new WorkerLoad(new SharedArrayBuffer(WorkerLoad.BYTES));
    let nowMs = 500;
    let packets = 1000;
    const meter = new LoadMeter({ load, tickMs: 25, packets: () => packets, nowMs: () => nowMs });
    for (let ticks = 0; ticks < 37; ticks++) {
      nowMs += 25;
      packets += 50;
      meter.tick();
      expect(load.read()).toEqual(IDLE);
    }
    nowMs += 75;
    meter.tick();
    const { utilization, ...measured } = load.read();
    expect(measured).toEqual({ latenessMs: 50, packetsPerSecond: 1850, measuredAtMs: 1500 });
    expect(utilization).toBeGreaterThanOrEqual(0);
    expect(utilization).toBeLessThanOrEqual(1);
    for (let ticks = 0; ticks < 40; ticks++) {
      nowMs += 25;
      meter.tick();
    }
    expect(load.read()).toMatchObject({ latenessMs: 0, packetsPerSecond: 0, measuredAtMs: 2500 });
  });
});
