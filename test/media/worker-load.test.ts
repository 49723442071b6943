import { describe, expect, it } from 'vitest';
import { FULL, IDLE, LoadMeter, loadOf, WorkerLoad, type WorkerLoadReading } from '../../media/worker-load.ts';
import * as fc from '../properties.ts';

const reading = (fields: Partial<WorkerLoadReading>): WorkerLoadReading => ({ ...IDLE, measuredAtMs: 1000, ...fields });

describe('media worker load', () => {
  it('grows with the work and reaches full before the thread saturates', () => {
    const at = (utilization: number): number => loadOf(reading({ utilization, packetsPerSecond: 5000 }), 50, 2000);
    expect(at(0.1)).toBeLessThan(at(0.4));
    expect(at(0.4)).toBeLessThan(at(0.8));
    expect(at(0.8)).toBeLessThan(FULL);
    expect(at(0.85)).toBe(FULL);
  });

  it('counts ringing calls as if they talked', () => {
    // 400 calls talk and use half the thread; the others will follow.
    const talking = reading({ utilization: 0.5, packetsPerSecond: 40_000 });
    expect(loadOf(talking, 400, 2000)).toBeLessThan(0.6);
    expect(loadOf(talking, 600, 2000)).toBeLessThan(FULL);
    expect(loadOf(talking, 700, 2000)).toBe(FULL);
  });

  it('does not extrapolate from few calls, which wake the thread for every packet', () => {
    const few = reading({ utilization: 0.05, packetsPerSecond: 500 });
    expect(loadOf(few, 200, 2000)).toBeLessThan(0.6);
    expect(loadOf(IDLE, 400, 2000)).toBe(FULL);
    // 900 talking calls are little work on a fast machine.
    expect(loadOf(reading({ utilization: 0.2, packetsPerSecond: 90_000 }), 900, 2000)).toBeLessThan(0.3);
  });

  it('estimates ringing calls by the measured cost per call', () => {
    const known = reading({ utilization: 0.02, packetsPerSecond: 500, utilizationOfACall: 0.005 });
    expect(loadOf(known, 100, 2000)).toBeLessThan(FULL);
    expect(loadOf(known, 180, 2000)).toBe(FULL);
    expect(loadOf(reading({ utilizationOfACall: 0.0005 }), 900, 2000)).toBeLessThan(0.6);
  });

  it('rejects calls before the thread is overloaded, for any cost and ring time', () => {
    fc.assert(
      fc.property(
        fc.record({
          ofACall: fc.double({ min: 0.0003, max: 0.0025, noNaN: true }),
          /** Wake-up cost per packet of the first calls. */
          ofWaking: fc.double({ min: 0, max: 0.15, noNaN: true }),
          ringsForS: fc.integer({ min: 0, max: 30 }),
          callsPerS: fc.integer({ min: 1, max: 60 }),
        }),
        (machine) => {
          const { accepted, refused } = placeForever(machine);
          expect(refused).toBeGreaterThan(0);
          expect(accepted * machine.ofACall).toBeLessThan(1);
          // Once measured, calls are not rejected far too early either.
          const isMeasured = machine.ringsForS * machine.callsPerS < 100;
          if (isMeasured) expect(accepted * machine.ofACall + machine.ofWaking).toBeGreaterThan(0.5);
        },
      ),
    );
  });

  it('reaches full for timer delays caused by its own work, not by the machine', () => {
    expect(loadOf(reading({ latenessMs: 60, utilization: 0.6 }), 20, 2000)).toBe(FULL);
    expect(loadOf(reading({ latenessMs: 60, utilization: 0.2 }), 20, 2000)).toBeLessThan(FULL);
  });

  it('reaches full when the worker stops measuring', () => {
    expect(loadOf(reading({}), 20, 5900)).toBeLessThan(FULL);
    expect(loadOf(reading({}), 20, 6100)).toBe(FULL);
  });

  it('admits a few sessions for any measurement and never exceeds full', () => {
    fc.assert(
      fc.property(
        fc.record({
          utilization: fc.double({ min: 0, max: 1, noNaN: true }),
          latenessMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
          packetsPerSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
          utilizationOfACall: fc.double({ min: 0, max: 1, noNaN: true }),
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

/** Places calls at a constant rate on one worker; they ring, then talk until the end. Measures every second. */
function placeForever(machine: { ofACall: number; ofWaking: number; ringsForS: number; callsPerS: number }) {
  const load = new WorkerLoad(new SharedArrayBuffer(WorkerLoad.BYTES));
  const acceptedIn: number[] = [];
  let accepted = 0;
  let refused = 0;
  let before = { utilization: 0, talking: 0 };
  for (let second = 0; second < 3_500 && refused < 10 * machine.callsPerS; second += 1) {
    const nowMs = 1000 * (second + 1);
    acceptedIn[second] = 0;
    for (let each = 0; each < machine.callsPerS; each += 1) {
      if (loadOf(load.read(), accepted, nowMs) < FULL) {
        accepted += 1;
        acceptedIn[second]! += 1;
      } else refused += 1;
    }
    const talking = acceptedIn
      .slice(0, Math.max(0, second + 1 - machine.ringsForS))
      .reduce((sum, calls) => sum + calls, 0);
    const waking = machine.ofWaking * Math.min(1, talking / 20);
    const utilization = Math.min(1, talking * machine.ofACall + waking);
    load.write(
      reading({
        utilization: (utilization + before.utilization) / 2,
        packetsPerSecond: 50 * (talking + before.talking),
        measuredAtMs: nowMs,
      }),
    );
    before = { utilization, talking };
  }
  return { accepted, refused };
}

describe('load meter', () => {
  it('shares packet rate, lateness and utilization once per second', () => {
    const load = new WorkerLoad(new SharedArrayBuffer(WorkerLoad.BYTES));
    let nowMs = 500;
    let packets = 1000;
    const meter = new LoadMeter({
      load,
      tickMs: 25,
      packets: () => packets,
      nowMs: () => nowMs,
      activeMs: () => nowMs / 2,
    });
    for (let ticks = 0; ticks < 37; ticks++) {
      nowMs += 25;
      packets += 50;
      meter.tick();
      expect(load.read()).toEqual(IDLE);
    }
    nowMs += 75;
    meter.tick();
    expect(load.read()).toEqual({
      utilization: 0.25,
      latenessMs: 50,
      packetsPerSecond: 925,
      utilizationOfACall: 0,
      measuredAtMs: 1500,
    });
    for (let ticks = 0; ticks < 40; ticks++) {
      nowMs += 25;
      meter.tick();
    }
    expect(load.read()).toMatchObject({ latenessMs: 0, packetsPerSecond: 925, measuredAtMs: 2500 });
  });

  it('remembers the cost per call at high load when load is low', () => {
    const load = new WorkerLoad(new SharedArrayBuffer(WorkerLoad.BYTES));
    let [nowMs, packets, activeMs] = [0, 0, 0];
    const options = { load, tickMs: 1000, packets: () => packets, nowMs: () => nowMs, activeMs: () => activeMs };
    const meter = new LoadMeter(options);
    const passSecond = (calls: number, busyMs: number): number => {
      nowMs += 1000;
      packets += 100 * calls;
      activeMs += busyMs;
      meter.tick();
      return load.read().utilizationOfACall;
    };
    expect(passSecond(190, 400)).toBe(0);
    expect(passSecond(210, 400)).toBeCloseTo(0.002);
    // One busy second changes it only slightly.
    expect(passSecond(200, 1000)).toBeLessThan(0.0025);
    passSecond(0, 0);
    const known = load.read().utilizationOfACall;
    expect(passSecond(5, 900)).toBe(known);
    expect(passSecond(0, 0)).toBe(known);
  });
});
