import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownMediaUrl } from '../../console/app/media-url.ts';
import type { CallEvent } from '../../console/call/call-data.ts';
import { lanesOf } from '../../console/call/overview/lanes.ts';
import { alignedSamples, summaryOf } from '../../console/call/quality/samples.ts';
import { channelsOf } from '../../console/call/recording/peaks.ts';
import { transferTargetOf } from '../../console/call/transfers.ts';
import { filtersOf, readingsOf } from '../../console/calls/filters.ts';
import { viewerTimeZone } from '../../console/parts/time-zone.ts';
import { EVENT_TEXT } from '../../console/text/call-words.ts';

const MACHINES = join(import.meta.dirname, '../../machines');

describe('the words for events', () => {
  it('describes every event that a call emits, so that a page listens for it', async () => {
    const files = (await readdir(MACHINES)).filter((name) => name.endsWith('.ts'));
    const sources = await Promise.all(files.map((name) => readFile(join(MACHINES, name), 'utf8')));
    const emitted = sources.flatMap((source) =>
      [...source.matchAll(/\bevent: '([a-z]+\.[a-z_]+)'/g)].map((m) => m[1]!),
    );
    expect(emitted.length).toBeGreaterThan(30);
    expect(Object.keys(EVENT_TEXT)).toEqual(expect.arrayContaining(emitted));
  });
});

describe('the lanes of a call', () => {
  it('shows when each leg was dialed, rang, talked and was held, until the call ended', () => {
    const events = [
      event(0, 'call.initiated'),
      event(1, 'agent.ringing'),
      event(2, 'agent.answered'),
      event(3, 'customer.dialing'),
      event(5, 'call.bridged'),
      event(7, 'call.held', { leg: 'customer' }),
      event(9, 'call.resumed', { leg: 'customer' }),
      event(12, 'call.completed', { state: 'completed' }),
    ];
    const lanes = lanesOf({ events, legs: [], nowMs: 99_000 });
    const spans = lanes.map(({ leg, spans: of }) => [leg, ...of.map(({ state, toMs }) => `${state} ${toMs / 1000}`)]);
    expect(spans).toEqual([
      ['agent', 'dialing 1', 'ringing 2', 'connected 12'],
      ['customer', 'dialing 5', 'connected 7', 'held 9', 'connected 12'],
    ]);
  });

  it('ends the lanes of a live call now, and those of a leg that left when it left', () => {
    const events = [
      event(0, 'call.initiated'),
      event(1, 'leg.dialing', { data: { leg_id: 'leg_3' } }),
      event(4, 'leg.failed', { data: { leg_id: 'leg_3' } }),
    ];
    const lanes = lanesOf({ events, legs: [{ leg_id: 'leg_3', role: 'supervisor' }], nowMs: 9_000 });
    expect(lanes.map(({ role, spans }) => [role, spans.at(-1)?.toMs])).toEqual([
      ['agent', 9_000],
      ['supervisor', 4_000],
    ]);
  });
});

describe('a transfer', () => {
  it('names the target of a transfer from its start to its end', () => {
    const started = event(0, 'transfer.started', { data: { leg_id: 'leg_3' } });
    expect(transferTargetOf([started])).toBe('leg_3');
    expect(transferTargetOf([started, event(1, 'transfer.failed', { data: { leg_id: 'leg_3' } })])).toBeNull();
  });
});

describe('samples of media quality', () => {
  const sample = (second: number, mos: number | null) => {
    const at = new Date(second * 1000).toISOString();
    return { at, mos, packets_received: 90, packets_lost: 10, loss_percent: 10, jitter_ms: 2, round_trip_ms: null };
  };
  const legs = [
    {
      ...{ leg_id: 'agent', role: 'agent' as const },
      samples: [sample(5, 4), sample(15, 3), sample(35, 2)],
    },
    { leg_id: 'customer', role: 'customer' as const, samples: [sample(10, null)] },
  ];

  it('puts legs that are sampled at different moments onto one row of times, and marks gaps', () => {
    const { times, valuesOf } = alignedSamples({ interval_s: 5, legs });
    expect(times.map((time) => time - times[0]!)).toEqual([0, 5, 10, 20, 30]);
    expect(valuesOf(legs[0]!, 'mos')).toEqual([4, undefined, 3, null, 2]);
    expect(valuesOf(legs[1]!, 'loss_percent')).toEqual([undefined, 10, undefined, undefined, undefined]);
  });

  it('sums up a leg, also one without scores', () => {
    expect(summaryOf(legs[0]!)).toMatchObject({ mos: 3, worstMos: 2, loss: 0.1, jitterMs: 2, roundTripMs: null });
    expect(summaryOf(legs[1]!)).toMatchObject({ mos: null, worstMos: null });
  });
});

describe('peaks', () => {
  it('takes the greater of both ends for each channel', () => {
    const [agent, customer] = channelsOf({ channels: 2, bits: 8, length: 2, data: [-64, 3, 0, 0, -1, 32, -128, 127] });
    expect([...agent!]).toEqual([0.5, 0.25]);
    expect([...customer!]).toEqual([0, 1]);
  });
});

describe('the URL of a recording', () => {
  it('leads to the server of the page, or to a bucket of any name', () => {
    const origin = 'https://voice.example';
    const path = '/media/recordings/one.wav';
    const own = `${path}?expires=1&signature=abc`;
    expect(ownMediaUrl(`http://10.0.0.7:8080${own}`, origin)).toBe(`${origin}${own}`);
    const inBucket = `https://objects.example${path}?X-Amz-Expires=300&X-Amz-Signature=abc`;
    expect(ownMediaUrl(inBucket, origin)).toBe(inBucket);
  });
});

describe('the filters of the list of calls', () => {
  const now = new Date(2026, 4, 20, 13, 30);

  it('takes what filters can be, and ignores everything else of an address', () => {
    const search = { q: ' 9811 ', state: 'completed', direction: 'sideways', period: 'tomorrow', tab: 'x' };
    expect(filtersOf(search, now)).toEqual({ q: '9811', state: 'completed' });
  });

  it('counts periods from midnight of the viewer, and includes the last day of a custom one', () => {
    expect(filtersOf({ period: '7d' }, now)).toEqual({ from: new Date(2026, 4, 14).toISOString() });
    expect(filtersOf({ from: '2026-05-01', to: '2026-05-02' }, now)).toEqual({
      from: new Date(2026, 4, 1).toISOString(),
      to: new Date(2026, 4, 3).toISOString(),
    });
    expect(filtersOf({ from: '2026-99-99', to: '<img>' }, now)).not.toHaveProperty('to');
  });
});

describe('the readings of a search text', () => {
  it('have as many characters of the metadata as the server accepts, and whole emoji', () => {
    const characters = (q: string) => [...readingsOf({ q }).at(-1)!.metadata!];
    expect(characters('😀')).toEqual(['😀', ' ']);
    expect(characters(`a${'😀'.repeat(200)}`)).toEqual(['a', ...Array(199).fill('😀')]);
  });
});

function event(second: number, name: string, fields: Partial<CallEvent> = {}): CallEvent {
  const at = new Date(second * 1000).toISOString();
  return { sequence: second, event: name, state: 'bridged', leg: null, data: null, at, ...fields } as CallEvent;
}

describe('viewerTimeZone', () => {
  it.each([
    ['Asia/Kolkata', 'Asia/Kolkata'],
    ['Etc/GMT+5', 'Etc/GMT+5'],
    ['Etc/Unknown', 'UTC'],
    ['+05:30', 'UTC'],
    ['', 'UTC'],
  ])('turns %j into %s', (reported, expected) => {
    expect(viewerTimeZone(reported)).toBe(expected);
  });
});
