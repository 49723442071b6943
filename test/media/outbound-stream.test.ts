import { describe, expect, it } from 'vitest';
import { OutboundStream } from '../../media/relay/outbound-stream.ts';
import { emptyRtpHeader } from '../../media/rtp/packet.ts';

const opened = () => new OutboundStream({ ssrc: 1, timestamp: 0, sequence: 0 });

function frameAt(stream: OutboundStream, nowMs: number): number {
  stream.admitGenerated(nowMs);
  return stream.timestamp;
}

describe('timestamps of generated frames', () => {
  it('advance by 20 ms each, regardless of thread delays', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    expect([20, 95, 96, 97].map((nowMs) => frameAt(stream, nowMs) - first)).toEqual([160, 320, 480, 640]);
  });

  it('include frames that were not made up for after a stall', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    expect([400, 420].map((nowMs) => frameAt(stream, nowMs) - first)).toEqual([400 * 8, 420 * 8]);
    // Several short stalls.
    expect([500, 520, 600].map((nowMs) => frameAt(stream, nowMs) - first)).toEqual([440 * 8, 460 * 8, 600 * 8]);
  });

  it('keep the distance of two sounds', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    expect(frameAt(stream, 5_000) - first).toBe(5_000 * 8);
    expect(stream.marker).toBe(true);
    expect(frameAt(stream, 5_020) - first).toBe(5_020 * 8);
  });

  it('follow time through a pause that sends nothing, regardless of thread delays', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    for (let frame = 1; frame < 500; frame++) {
      stream.admitGenerated(20 * frame + (frame % 2 === 0 ? 0 : 4));
      stream.suppress();
    }
    expect(frameAt(stream, 10_000) - first).toBe(10_000 * 8);
    expect(stream.marker).toBe(true);
    expect(stream.sequence).toBe(1);
  });

  it.each([20, 40, 60])('do not use the time of a relayed packet of %i ms again', (packetMs) => {
    const stream = opened();
    const header = { ...emptyRtpHeader(), ssrc: 7, payloadBytes: 8 * packetMs };
    stream.admit(header, 0, false);
    const relayed = stream.timestamp;
    stream.switchSource();
    expect(frameAt(stream, 10) - relayed).toBe(packetMs * 8);
    expect(frameAt(stream, 30) - relayed).toBe((packetMs + 20) * 8);
  });

  it('include the duration of a preceding telephone event', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    for (const nowMs of [20, 40, 60]) stream.admitEvent(nowMs, nowMs === 20, 4);
    expect(stream.timestamp - first).toBe(160);
    expect(frameAt(stream, 80) - first).toBe(80 * 8);
    expect(frameAt(stream, 100) - first).toBe(100 * 8);
  });
});

describe('relayed telephone events', () => {
  const eventAt = (stream: OutboundStream, nowMs: number, sequence: number, timestamp: number): number | null => {
    const header = { ...emptyRtpHeader(), ssrc: 7, sequence, timestamp, payloadBytes: 4 };
    return stream.admit(header, nowMs, true) ? stream.timestamp : null;
  };

  it('do not come back after a later one, whatever is sent between them', () => {
    const stream = opened();
    frameAt(stream, 0);
    const first = eventAt(stream, 20, 65_530, 1000);
    frameAt(stream, 40);
    const second = eventAt(stream, 60, 65_535, 2000);
    expect(second).not.toBe(first);
    frameAt(stream, 80);
    expect(eventAt(stream, 90, 65_532, 1000)).toBe(null);
    expect(eventAt(stream, 100, 65_534, 2000)).toBe(second);
    expect(eventAt(stream, 110, 0, 2000)).toBe(second);
    // A peer that restarts its numbering.
    expect(eventAt(stream, 500, 40_000, 500)).not.toBe(null);
  });

  it('pass whatever their sequence numbers, long after the one before', () => {
    const stream = opened();
    eventAt(stream, 0, 0, 0);
    const laterBy = 65_530;
    for (let i = 1; i < laterBy; i++) {
      const audio = { ...emptyRtpHeader(), ssrc: 7, sequence: i, timestamp: 160 * i, payloadBytes: 160 };
      stream.admit(audio, 20 * i, false);
    }
    const first = eventAt(stream, 20 * laterBy, laterBy, 160 * laterBy);
    expect(first).not.toBe(null);
    expect(eventAt(stream, 20 * laterBy + 20, laterBy + 1, 160 * laterBy)).toBe(first);
  });

  it('do not come back after a later one, long after the first of all', () => {
    const stream = opened();
    eventAt(stream, 0, 0, 0);
    eventAt(stream, 800_000, 40_000, 6_400_000);
    const next = eventAt(stream, 800_400, 40_010, 6_403_200);
    expect(eventAt(stream, 800_410, 40_009, 6_400_000)).toBe(null);
    expect(eventAt(stream, 800_420, 40_011, 6_403_200)).toBe(next);
  });
});

describe('relayed packets', () => {
  /** More than half of all sequence numbers, 13 minutes of 20 ms packets. */
  const LATER = 40_000;
  const isRelayed = (stream: OutboundStream, sequence: number): boolean => {
    const header = { ...emptyRtpHeader(), ssrc: 7, sequence, timestamp: 160 * sequence, payloadBytes: 160 };
    return stream.admit(header, 20 * sequence, false);
  };

  it('may overtake each other in a long call', () => {
    const stream = opened();
    for (let sequence = 0; sequence <= LATER; sequence++) isRelayed(stream, sequence);
    expect([LATER + 2, LATER + 1].map((sequence) => isRelayed(stream, sequence))).toEqual([true, true]);
  });

  it('may overtake each other after a long time on the fast path', () => {
    const stream = opened();
    isRelayed(stream, 0);
    for (let sequence = 10; sequence <= LATER; sequence += 10) {
      const last = { sequence, timestamp: 160 * sequence, nowMs: 20 * sequence };
      stream.addInOrder({ ...last, packets: 10, octets: 1600, lastTicks: 160 });
    }
    expect([LATER + 2, LATER + 1].map((sequence) => isRelayed(stream, sequence))).toEqual([true, true]);
  });
});
