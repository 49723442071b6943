import { describe, expect, it } from 'vitest';
import { QualitySampler } from '../../media/relay/quality-sampler.ts';

function open() {
  const reception = { packetsReceived: 0, packetsLost: 0, packetsExpected: 0, jitterMs: 0 };
  const rtcp: { roundTripMs: number | null } = { roundTripMs: null };
  return { reception, rtcp, sampler: new QualitySampler({ reception, rtcp }) };
}

describe('leg quality sampler', () => {
  it('returns nothing before the first packet and during pauses', () => {
    const { reception, sampler } = open();
    expect(sampler.take()).toBeNull();
    Object.assign(reception, { packetsReceived: 10, packetsExpected: 10 });
    expect(sampler.take()).toMatchObject({ packetsReceived: 10, packetsLost: 0 });
    expect(sampler.take()).toBeNull();
  });

  it('covers the interval since the last sample only', () => {
    const { reception, rtcp, sampler } = open();
    Object.assign(reception, { packetsReceived: 200, packetsLost: 50, packetsExpected: 250, jitterMs: 1.2345 });
    rtcp.roundTripMs = 40.126;
    const bad = sampler.take()!;
    expect(bad).toMatchObject({ packetsReceived: 200, packetsLost: 50, jitterMs: 1.23, roundTripMs: 40.13 });
    Object.assign(reception, { packetsReceived: 450, packetsExpected: 500 });
    const good = sampler.take()!;
    expect(good).toMatchObject({ packetsReceived: 250, packetsLost: 0 });
    expect(bad.mos!).toBeLessThan(3);
    expect(good.mos!).toBeGreaterThan(4);
  });

  it('reports no negative loss after late packets, and no MOS for total loss', () => {
    const { reception, sampler } = open();
    Object.assign(reception, { packetsReceived: 98, packetsLost: 2, packetsExpected: 100 });
    sampler.take();
    Object.assign(reception, { packetsReceived: 100, packetsLost: 0 });
    expect(sampler.take()).toMatchObject({ packetsReceived: 2, packetsLost: 0 });
    Object.assign(reception, { packetsLost: 5, packetsExpected: 105 });
    expect(sampler.take()).toMatchObject({ packetsReceived: 0, packetsLost: 5, mos: null });
  });
});
