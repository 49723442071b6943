import { describe, expect, it } from 'vitest';
import { buildRtpPacket, emptyRtpHeader, parseRtp } from '../../media/rtp/packet.ts';
import { extendSequence, ReceiverStatistics, sequenceDelta } from '../../media/rtp/receiver-statistics.ts';
import { buildRtcpReport, ntpMiddle, ntpTime, parseRtcp } from '../../media/rtp/rtcp.ts';
import {
  digitOfEvent,
  emptyTelephoneEvent,
  eventOfDigit,
  KeyPressDetector,
  parseTelephoneEvent,
  telephoneEventPayload,
} from '../../media/rtp/telephone-event.ts';
import * as fc from '../properties.ts';

const uint16 = fc.integer({ min: 0, max: 0xffff });
const uint32 = fc.integer({ min: 0, max: 0xffffffff });
const payloadType = fc.oneof(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 96, max: 127 }));
const datagram = fc.uint8Array({ maxLength: 1500 });

describe('RTP packets', () => {
  it('parses its own packets', () => {
    const fields = fc.record({ payloadType, sequence: uint16, timestamp: uint32, ssrc: uint32, marker: fc.boolean() });
    fc.assert(
      fc.property(fields, fc.uint8Array({ maxLength: 400 }), (written, payload) => {
        const packet = buildRtpPacket(written, payload);
        const header = emptyRtpHeader();
        expect(parseRtp(packet, header)).toBe(true);
        expect(header).toEqual({ ...written, payloadOffset: 12, payloadBytes: payload.length });
        expect(packet.subarray(12)).toEqual(Buffer.from(payload));
      }),
    );
  });

  it('finds the payload behind CSRCs and header extension and before padding', () => {
    const csrcs = Buffer.alloc(8, 1);
    const extension = Buffer.from([0xbe, 0xde, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    const padding = Buffer.from([0, 0, 3]);
    const packet = Buffer.concat([Buffer.alloc(12), csrcs, extension, Buffer.alloc(160, 9), padding]);
    packet[0] = 0x80 | 0x20 | 0x10 | 2;
    const header = emptyRtpHeader();
    expect(parseRtp(packet, header)).toBe(true);
    expect(header).toMatchObject({ payloadOffset: 12 + 8 + 12, payloadBytes: 160 });
  });

  it('accepts only offsets inside a hostile datagram', () => {
    fc.assert(
      fc.property(datagram, fc.boolean(), (bytes, isVersion2) => {
        if (isVersion2 && bytes.length > 0) bytes[0] = 0x80 | (bytes[0]! & 0x3f);
        const header = emptyRtpHeader();
        if (!parseRtp(bytes, header)) return;
        expect(header.payloadOffset).toBeGreaterThanOrEqual(12);
        expect(header.payloadBytes).toBeGreaterThanOrEqual(0);
        expect(header.payloadOffset + header.payloadBytes).toBeLessThanOrEqual(bytes.length);
      }),
      { numRuns: 1000 },
    );
  });

  it('rejects other versions, truncation, impossible padding and RTCP', () => {
    const valid = buildRtpPacket({ payloadType: 0, sequence: 1, timestamp: 1, ssrc: 1 }, new Uint8Array(4));
    const withByte = (index: number, value: number): Buffer => Buffer.from(valid.with(index, value));
    const header = emptyRtpHeader();
    const refused = [
      withByte(0, 0x40),
      valid.subarray(0, 11),
      withByte(0, 0x8f),
      Buffer.from(withByte(0, 0xa0).with(15, 0)),
      Buffer.from(withByte(0, 0xa0).with(15, 5)),
      withByte(1, 200),
      withByte(1, 201),
    ];
    expect(refused.map((bytes) => parseRtp(bytes, header))).toEqual(refused.map(() => false));
    expect(parseRtp(valid, header)).toBe(true);
  });
});

describe('sequence numbers', () => {
  it('extend to the number nearest to the reference', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 70_000, max: 1e9 }),
        fc.integer({ min: -32768, max: 32767 }),
        (reference, distance) => {
          expect(extendSequence((reference + distance) & 0xffff, reference)).toBe(reference + distance);
        },
      ),
    );
    expect(sequenceDelta(2, 65_535)).toBe(3);
    expect(sequenceDelta(65_535, 2)).toBe(-3);
  });
});

describe('reception statistics', () => {
  const receive = (sequences: number[]): ReceiverStatistics => {
    const statistics = new ReceiverStatistics();
    for (const [index, sequence] of sequences.entries()) {
      statistics.count(7, sequence & 0xffff, index * 160, index * 20, true);
    }
    return statistics;
  };

  it('count loss across sequence number wraps', () => {
    const statistics = receive([65_533, 65_534, 65_537, 65_538]);
    expect(statistics).toMatchObject({ packetsReceived: 4, packetsLost: 2, packetsExpected: 6 });
    expect(statistics.extendedHighestSequence).toBe(65_538);
  });

  it('do not count reordering as loss', () => {
    expect(receive([10, 12, 11, 13]).packetsLost).toBe(0);
    expect(receive([10, 12, 11, 13]).packetsLate).toBe(1);
  });

  it('match a direct count for any loss pattern', () => {
    fc.assert(
      fc.property(uint16, fc.array(fc.boolean(), { minLength: 1, maxLength: 400 }), (first, isKept) => {
        const kept = isKept.map((keep, index) => (keep ? first + index : -1)).filter((sequence) => sequence >= 0);
        if (kept.length === 0) return;
        expect(receive(kept).packetsLost).toBe(kept.at(-1)! - kept[0]! + 1 - kept.length);
      }),
    );
  });

  it('report the fraction lost since the last report', () => {
    const statistics = new ReceiverStatistics();
    for (const sequence of [0, 1, 2, 4]) statistics.count(7, sequence, 0, 0, false);
    expect(statistics.takeFractionLost()).toBe(Math.floor(256 / 5));
    for (const sequence of [5, 6, 7]) statistics.count(7, sequence, 0, 0, false);
    expect(statistics.takeFractionLost()).toBe(0);
  });

  it('continue across SSRC changes and restarts without false loss', () => {
    const statistics = receive([1, 2, 4]);
    statistics.count(8, 40_000, 0, 0, true);
    statistics.count(8, 100, 0, 0, true);
    expect(statistics).toMatchObject({ packetsReceived: 5, packetsLost: 1, restarts: 2 });
  });

  it('do not count a loss for packets that arrive seconds late among newer ones', () => {
    const statistics = receive([0, ...Array.from({ length: 300 }, (_, index) => index + 4)]);
    expect(statistics.packetsLost).toBe(3);
    for (const sequence of [1, 304, 2, 305, 3, 306]) statistics.count(7, sequence, 0, 0, false);
    expect(statistics).toMatchObject({ packetsReceived: 307, packetsLost: 0, packetsLate: 3, restarts: 0 });
  });

  it('restart when lower numbers follow each other', () => {
    const statistics = receive([1000, 1001, 1002, 500, 501, 502, 504]);
    expect(statistics).toMatchObject({ packetsReceived: 7, packetsLost: 1, restarts: 1 });
  });

  it('measure jitter as in the RFC and ignore timestamp jumps', () => {
    const steady = receive(Array.from({ length: 100 }, (_, index) => index));
    expect(steady.jitterMs).toBeCloseTo(0, 5);
    const uneven = new ReceiverStatistics();
    for (let i = 0; i < 400; i++) uneven.count(7, i, i * 160, i * 20 + (i % 2) * 10, true);
    expect(uneven.jitterMs).toBeCloseTo(10, 0);
    uneven.count(7, 400, 0x7fff_0000, 8000, true);
    expect(uneven.jitterMs).toBeLessThan(11);
  });

  it('stay bounded for hostile numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(uint32, uint16, uint32), { maxLength: 200 }), (packets) => {
        const statistics = new ReceiverStatistics();
        for (const [index, [ssrc, sequence, timestamp]] of packets.entries()) {
          statistics.count(ssrc & 1, sequence, timestamp, index, true);
        }
        expect(statistics.packetsLost).toBeGreaterThanOrEqual(0);
        expect(statistics.packetsLost).toBeLessThanOrEqual(3001 * packets.length);
        expect(statistics.takeFractionLost()).toBeLessThanOrEqual(255);
        expect(statistics.jitterMs).toBeGreaterThanOrEqual(0);
        expect(statistics.jitterMs).toBeLessThanOrEqual(2000);
      }),
    );
  });
});

describe('telephone events', () => {
  it('parse their own payloads', () => {
    const event = fc.record({ event: fc.nat(255), isEnd: fc.boolean(), volume: fc.nat(63), durationUnits: uint16 });
    fc.assert(
      fc.property(event, (written) => {
        const read = emptyTelephoneEvent();
        expect(parseTelephoneEvent(telephoneEventPayload(written), 0, 4, read)).toBe(true);
        expect(read).toEqual(written);
      }),
    );
    expect(parseTelephoneEvent(new Uint8Array(3), 0, 3, emptyTelephoneEvent())).toBe(false);
  });

  it('map the sixteen digits both ways and nothing else', () => {
    for (const digit of '0123456789*#ABCD') expect(digitOfEvent(eventOfDigit(digit))).toBe(digit);
    expect([digitOfEvent(16), eventOfDigit('x'), eventOfDigit('')]).toEqual([null, -1, -1]);
  });

  describe('detected as key presses', () => {
    const KEY_5 = 5;
    /** Units of 125 us. */
    const MS = 8;

    function detector() {
      const presses: string[] = [];
      const keys = new KeyPressDetector((digit, durationMs) => presses.push(`${digit} ${durationMs}`));
      return {
        presses,
        judge: (nowMs: number) => keys.judge(nowMs),
        see(timestamp: number, { event = KEY_5, ms = 100, isEnd = false, nowMs = 0, ssrc = 1 } = {}) {
          keys.add(ssrc, timestamp, { event, isEnd, volume: 10, durationUnits: ms * MS }, 8000, nowMs);
          return presses.length;
        },
      };
    }

    it('count once per timestamp, at the first End bit, despite repeats and reordering', () => {
      const { see, presses } = detector();
      const isEnd = true;
      const seen = [see(100), see(100, { isEnd }), see(100, { isEnd }), see(2000), see(100, { isEnd })];
      expect([...seen, see(2000, { isEnd }), see(2000, { isEnd })]).toEqual([0, 1, 1, 1, 1, 2, 2]);
      expect(presses).toEqual(['5 100', '5 100']);
    });

    it('count at the next press if all End packets are lost', () => {
      const { see, presses } = detector();
      see(100, { ms: 80 });
      see(2000, { event: 11 });
      see(2000, { event: 11, isEnd: true });
      see(100, { isEnd: true });
      expect(presses).toEqual(['5 80', '# 100']);
    });

    it('count 200 ms after the last packet if all End packets are lost', () => {
      const { see, judge, presses } = detector();
      see(100, { nowMs: 1000 });
      judge(1200);
      expect(presses).toEqual([]);
      judge(1201);
      see(100, { isEnd: true, nowMs: 1210 });
      judge(2000);
      expect(presses).toEqual(['5 100']);
    });

    it('count nothing for a single packet of a tone shorter than a digit, or for other events', () => {
      const { see, judge, presses } = detector();
      see(100, { ms: 39 });
      see(2000, { event: 16, isEnd: true });
      see(4000, { event: 40 });
      judge(1000);
      expect(presses).toEqual([]);
    });

    it('count once if the key is held longer than an event can say', () => {
      const { see, presses } = detector();
      see(0xffff_f000, { ms: 8191 });
      see(0xefff, { ms: 50 });
      see(0xefff, { ms: 100, isEnd: true });
      expect(presses).toEqual(['5 8291.875']);
    });

    it('count once if the key is held longer than an event can say, despite a gap in its packets', () => {
      const { see, judge, presses } = detector();
      see(100, { ms: 4000, nowMs: 4000 });
      judge(4300);
      see(100, { ms: 8191, nowMs: 8191 });
      see(100 + 0xffff, { ms: 100, nowMs: 8291, isEnd: true });
      expect(presses).toEqual(['5 4000']);
    });

    it('count again for the next press of the same key, although the End packets of the first are lost', () => {
      const { see, judge, presses } = detector();
      see(100, { nowMs: 100 });
      judge(400);
      see(100 + 0xf800, { nowMs: 8000, isEnd: true });
      expect(presses).toEqual(['5 100', '5 100']);
    });

    it('count after the peer restarts its timestamps', () => {
      const { see, presses } = detector();
      see(1_000_000, { isEnd: true });
      see(5000, { isEnd: true });
      expect(presses).toEqual(['5 100', '5 100']);
    });

    it('count for each source', () => {
      const { see, presses } = detector();
      see(5000, { isEnd: true });
      see(100, { ssrc: 2, isEnd: true });
      expect(presses).toEqual(['5 100', '5 100']);
    });
  });
});

describe('RTCP', () => {
  const block = {
    ssrc: 0xdeadbeef,
    fractionLost: 12,
    packetsLost: -3,
    extendedHighestSequence: 70_000,
    jitter: 80,
    lastSenderReport: 0x12345678,
    delaySinceLastSenderReport: 65_536,
  };
  const sender = { ntpSeconds: 1, ntpFraction: 2, rtpTimestamp: 3, packetCount: 4, octetCount: 5 };

  it('parses its own sender report, CNAME and goodbye', () => {
    const packet = buildRtcpReport({ ssrc: 9, cname: 'abcde', sender, reports: [block], isLast: true });
    expect(packet.length % 4).toBe(0);
    expect(parseRtcp(packet)).toEqual([
      { type: 'sender-report', ssrc: 9, sender, reports: [block] },
      { type: 'source-description', ssrc: 9, cname: 'abcde' },
      { type: 'goodbye', ssrcs: [9] },
    ]);
  });

  it('writes a receiver report if nothing was sent, with any CNAME', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (cname) => {
        const packets = parseRtcp(buildRtcpReport({ ssrc: 9, cname, sender: null, reports: [] }))!;
        expect(packets[0]).toEqual({ type: 'receiver-report', ssrc: 9, reports: [] });
        expect(packets[1]).toEqual({ type: 'source-description', ssrc: 9, cname: Buffer.from(cname).toString() });
      }),
    );
  });

  it('never reads past the end of hostile or mutated bytes', () => {
    const valid = buildRtcpReport({ ssrc: 9, cname: 'abcde', sender, reports: [block], isLast: true });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 6 }),
        fc.nat(valid.length),
        (edits, length) => {
          const bytes = Buffer.from(valid);
          for (const [index, value] of edits) bytes[index] = value;
          const packets = parseRtcp(bytes.subarray(0, length));
          for (const packet of packets ?? []) {
            if ('reports' in packet)
              for (const report of packet.reports) expect(report.jitter).toBeGreaterThanOrEqual(0);
          }
        },
      ),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(datagram, (bytes) => {
        const packets = parseRtcp(bytes) ?? [];
        expect(packets.length).toBeLessThanOrEqual(bytes.length / 4);
      }),
    );
    expect(parseRtcp(valid.subarray(0, valid.length - 1))).toBeNull();
  });

  it('converts to NTP time', () => {
    expect(ntpTime(500)).toEqual({ seconds: 2_208_988_800, fraction: 0x80000000 });
    expect(ntpMiddle(0xaaaa1234, 0x5678ffff)).toBe(0x12345678);
  });
});
