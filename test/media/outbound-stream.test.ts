import { describe, expect, it } from 'vitest';
import { OutboundStream } from '../../media/relay/outbound-stream.ts';

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

  it('include the duration of a preceding telephone event', () => {
    const stream = opened();
    const first = frameAt(stream, 0);
    for (const nowMs of [20, 40, 60]) stream.admitEvent(nowMs, nowMs === 20, 4);
    expect(stream.timestamp - first).toBe(160);
    expect(frameAt(stream, 80) - first).toBe(80 * 8);
    expect(frameAt(stream, 100) - first).toBe(100 * 8);
  });
});
