import { describe, expect, it } from 'vitest';
import { LiveLoad } from '../../../speech/recognition/live-load.ts';
import type { EngineName } from '../../../speech/recognizer.ts';
import * as fc from '../../properties.ts';
import { createFakeEngine } from '../fake-engine.ts';
import { DeskFixture } from './spoken-to-desk.ts';

const HOUR_MS = 3_600_000;

/** A load meter with engines of given real-time factors, on a fake clock. */
function meter({ processes = 2, factor = null as number | null, factors = {} as Record<string, number> } = {}) {
  const clock = { nowMs: 0 };
  const realTimeFactorOf = (engine: EngineName) => factors[engine] ?? factor;
  return { clock, load: new LiveLoad({ processes, realTimeFactorOf, nowMs: () => clock.nowMs }) };
}

/** Opens streams until there is no room, and returns their number. */
function fill(load: LiveLoad, engine: EngineName = 'pocketsphinx'): number {
  for (let streams = 0; streams < 10_000; streams += 1) {
    if (!load.hasRoomFor(engine)) return streams;
    load.open(streams, engine);
  }
  return 10_000;
}

describe('load of live streams', () => {
  it('allows as many streams as the recognizers can process in real time', () => {
    expect(fill(meter({ factor: 0.1 }).load)).toBe(28);
    expect(fill(meter({ factor: 0.5 }).load)).toBe(5);
    expect(fill(meter({ factor: 0.5, processes: 8 }).load)).toBe(22);
  });

  it('never exceeds the number of processes', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 3, noNaN: true }),
        fc.integer({ min: 1, max: 64 }),
        (factor, processes) => {
          const { load } = meter({ factor, processes });
          const streams = fill(load);
          if (streams > 2) expect(streams * factor * 0.6).toBeLessThan(processes);
          expect(streams).toBeGreaterThanOrEqual(2);
        },
      ),
    );
  });

  it('adapts to the share of time with speech', () => {
    const { load, clock } = meter({ factor: 0.5 });
    load.open(0, 'pocketsphinx');
    clock.nowMs = HOUR_MS / 4;
    load.speak(0, HOUR_MS / 4);
    load.close(0);
    expect(fill(load)).toBe(3);
    const silent = meter({ factor: 0.5 });
    silent.load.open(0, 'pocketsphinx');
    silent.clock.nowMs = HOUR_MS;
    silent.load.close(0);
    expect(fill(silent.load)).toBeGreaterThan(20);
  });

  it('reports no room while a stream lags', () => {
    const { load } = meter({ factor: 0.1 });
    for (const streamKey of [0, 1]) load.open(streamKey, 'pocketsphinx');
    expect(load.hasRoomFor('pocketsphinx')).toBe(true);
    load.setBehind(1, true);
    expect(load.hasRoomFor('pocketsphinx')).toBe(false);
    expect(load.read().load).toBe(1);
    load.setBehind(1, false);
    expect(load.hasRoomFor('pocketsphinx')).toBe(true);
  });

  it('excludes upstream servers, which use no local resources', () => {
    const { load } = meter({ factors: { pocketsphinx: 0.5, openai: 30 } });
    fill(load);
    expect(load.hasRoomFor('openai')).toBe(true);
    const before = load.read();
    load.open(10_001, 'openai');
    expect(load.read()).toEqual(before);
  });

  it('reports room again when a stream closes', () => {
    const { load } = meter({ factor: 0.5 });
    fill(load);
    load.close(3);
    expect(load.hasRoomFor('pocketsphinx')).toBe(true);
  });
});

describe('fully loaded desk', () => {
  it('rejects another live stream, but not admitted ones and files', async () => {
    const loads: number[] = [];
    await using fixture = new DeskFixture([createFakeEngine()], {
      processes: 1,
      nowMs: () => 0,
      onLoad: ({ load }) => loads.push(load),
    });
    const first = await fixture.open('live');
    await fixture.open('live');
    await expect(fixture.open('live')).rejects.toMatchObject({ code: 'STT_OVERLOADED', status: 503 });
    expect(fixture.desk.streams).toBe(2);
    await fixture.open('batch');
    await fixture.open('live', {}, { isPromised: true });
    expect(loads.at(-1)).toBeGreaterThan(1);
    fixture.desk.close(first.key);
    await expect(fixture.open('live')).rejects.toMatchObject({ code: 'STT_OVERLOADED' });
  });
});
