import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { SrtpSuite } from '../../../machines/events.ts';
import { buildRtpPacket } from '../../../media/rtp/packet.ts';
import { buildRtcpReport } from '../../../media/rtp/rtcp.ts';
import { SUITES } from '../../../media/srtp/crypto-suites.ts';
import { LegSrtp } from '../../../media/srtp/leg-srtp.ts';
import { SrtpReceiver } from '../../../media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../../media/srtp/srtp-sender.ts';
import * as fc from '../../properties.ts';

const SSRC = 0x1234_5678;
const suites = fc.constantFrom(...(Object.keys(SUITES) as SrtpSuite[]));

function masterOf(suite: SrtpSuite): KeyObject {
  return createSecretKey(randomBytes(SUITES[suite].keyBytes + SUITES[suite].saltBytes));
}

function rtpPacket(sequence: number, payload: Uint8Array = Buffer.from('what is said'), ssrc = SSRC): Buffer {
  return buildRtpPacket({ payloadType: 0, sequence: sequence & 0xffff, timestamp: 0, ssrc }, payload);
}

function sealed(sender: Pick<SrtpSender, 'protectRtp'>, packet: Buffer): Buffer | null {
  const room = Buffer.concat([packet, Buffer.alloc(20)]);
  const bytes = sender.protectRtp(room, packet.length);
  return bytes < 0 ? null : room.subarray(0, bytes);
}

function sealedRtcp(sender: SrtpSender, packet: Buffer): Buffer {
  const room = Buffer.concat([packet, Buffer.alloc(20)]);
  return room.subarray(0, sender.protectRtcp(room, packet.length));
}

function opened(receiver: Pick<SrtpReceiver, 'openRtp'>, datagram: Buffer): Buffer | null {
  const copy = Buffer.from(datagram);
  const bytes = receiver.openRtp(copy);
  if (bytes < 0) expect(copy).toEqual(datagram);
  return bytes < 0 ? null : copy.subarray(0, bytes);
}

function pair(suite: SrtpSuite) {
  const master = masterOf(suite);
  return { sender: new SrtpSender({ suite, master, ssrc: SSRC }), receiver: new SrtpReceiver({ suite, master }) };
}

describe('protected stream', () => {
  it('decrypts every packet, with any header and payload', () => {
    const packets = fc.record({
      sequence: fc.nat(0xffff),
      csrcs: fc.nat(15),
      extensionWords: fc.option(fc.nat(20)),
      payload: fc.uint8Array({ maxLength: 1440 }),
    });
    fc.assert(
      fc.property(suites, packets, (suite, { sequence, csrcs, extensionWords, payload }) => {
        const { sender, receiver } = pair(suite);
        const extension = extensionWords === null ? Buffer.alloc(0) : Buffer.alloc(4 + extensionWords * 4, 7);
        if (extensionWords !== null) extension.writeUInt16BE(extensionWords, 2);
        const fixed = rtpPacket(sequence, Buffer.concat([Buffer.alloc(csrcs * 4, 3), extension, payload]));
        fixed[0] = 0x80 | csrcs | (extensionWords === null ? 0 : 0x10);
        const wire = sealed(sender, fixed)!;
        if (payload.length >= 8) expect(wire.includes(Buffer.from(payload))).toBe(false);
        expect(opened(receiver, wire)).toEqual(fixed);
      }),
    );
  });

  it('survives loss, reordering and rollover, and decrypts each packet once', () => {
    const steps = fc.array(fc.record({ skip: fc.integer({ min: 1, max: 3000 }), delay: fc.nat(100) }), {
      minLength: 20,
      maxLength: 60,
    });
    fc.assert(
      fc.property(suites, fc.nat(0xffff), steps, (suite, first, plan) => {
        const { sender, receiver } = pair(suite);
        let sequence = first;
        const sent = plan.map(({ skip, delay }, order) => {
          const packet = rtpPacket(sequence, Buffer.from(`packet ${order}`));
          const wire = sealed(sender, packet)!;
          const index = sequence;
          sequence += skip;
          return { packet, wire, index, arrivesAt: index + delay };
        });
        const arriving = [sent[0]!, ...sent.slice(1).sort((a, b) => a.arrivesAt - b.arrivesAt)];
        let highest = -1;
        for (const { packet, wire, index } of arriving) {
          const isInWindow = highest - index < 128;
          expect(opened(receiver, wire)).toEqual(isInWindow ? packet : null);
          expect(opened(receiver, wire)).toBeNull();
          highest = Math.max(highest, index);
        }
        expect(receiver.drops.unauthentic).toBe(0);
      }),
    );
  });

  it('survives the loss of all packets before its first rollover', () => {
    const { sender, receiver } = pair('AES_CM_128_HMAC_SHA1_80');
    for (let sequence = 65_533; sequence < 65_536; sequence++) sealed(sender, rtpPacket(sequence));
    for (let sequence = 65_536; sequence < 65_540; sequence++) {
      expect(opened(receiver, sealed(sender, rtpPacket(sequence))!)).toEqual(rtpPacket(sequence));
    }
  });

  it('handles packets reordered across a rollover', () => {
    const { sender, receiver } = pair('AEAD_AES_128_GCM');
    const wires = new Map([65_534, 65_535, 65_536, 65_537].map((index) => [index, sealed(sender, rtpPacket(index))!]));
    for (const index of [65_534, 65_537, 65_535, 65_536]) {
      expect(opened(receiver, wires.get(index)!)).toEqual(rtpPacket(index));
    }
  });

  it('continues over many rollovers', () => {
    const { sender, receiver } = pair('AES_CM_128_HMAC_SHA1_32');
    for (let sequence = 0; sequence < 6 * 65_536; sequence += 20_000) {
      expect(opened(receiver, sealed(sender, rtpPacket(sequence))!)).toEqual(rtpPacket(sequence));
    }
  });

  it('carries each RTCP report once', () => {
    fc.assert(
      fc.property(suites, (suite) => {
        const { sender, receiver } = pair(suite);
        for (let round = 0; round < 3; round++) {
          const report = buildRtcpReport({ ssrc: SSRC, cname: 'name', sender: null, reports: [], isLast: false });
          const wire = sealedRtcp(sender, report);
          expect(wire.includes('name')).toBe(false);
          const copy = Buffer.from(wire);
          expect(copy.subarray(0, receiver.openRtcp(copy))).toEqual(report);
          expect(receiver.openRtcp(Buffer.from(wire))).toBe(-1);
        }
        expect(receiver.drops.replayed).toBe(3);
      }),
      { numRuns: 8 },
    );
  });
});

describe('SRTP sender', () => {
  it('never reuses a packet index, and so never a key stream', () => {
    const sequences = fc.array(fc.integer({ min: -200, max: 300 }), { minLength: 2, maxLength: 200 });
    fc.assert(
      fc.property(suites, fc.nat(0xffff), sequences, (suite, first, offsets) => {
        const { sender } = pair(suite);
        const keyStreams = new Set<string>();
        let count = 0;
        for (const offset of offsets) {
          const wire = sealed(sender, rtpPacket(first + 200 + offset, Buffer.alloc(32)));
          if (wire === null) continue;
          count += 1;
          keyStreams.add(wire.subarray(12, 44).toString('hex'));
        }
        expect(keyStreams.size).toBe(count);
        expect(sender.counters).toEqual({ protected: count, refused: offsets.length - count });
      }),
    );
  });

  it('rejects another SSRC and invalid RTP', () => {
    const { sender } = pair('AEAD_AES_128_GCM');
    expect(sealed(sender, rtpPacket(1, Buffer.alloc(8), 99))).toBeNull();
    expect(sealed(sender, Buffer.alloc(30))).toBeNull();
    expect(sender.protectRtcp(Buffer.alloc(60), 40)).toBe(-1);
  });
});

describe('SRTP receiver', () => {
  it('drops modified and forged datagrams without changing state', () => {
    const hostile = fc.oneof(
      fc.record({ kind: fc.constant('bytes' as const), bytes: fc.uint8Array({ maxLength: 200 }) }),
      fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat(7) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
    );
    fc.assert(
      fc.property(suites, fc.array(hostile, { minLength: 1, maxLength: 20 }), (suite, attacks) => {
        const { sender, receiver } = pair(suite);
        expect(opened(receiver, sealed(sender, rtpPacket(1))!)).not.toBeNull();
        const wire = sealed(sender, rtpPacket(2))!;
        const report = sealedRtcp(sender, Buffer.from(buildRtcpReport(REPORT)));
        for (const attack of attacks) {
          for (const [target, open] of [
            [wire, (bytes: Buffer) => receiver.openRtp(bytes)],
            [report, (bytes: Buffer) => receiver.openRtcp(bytes)],
          ] as const) {
            const forged = forge(target, attack);
            if (forged.equals(target)) continue;
            const copy = Buffer.from(forged);
            expect(open(copy)).toBe(-1);
            expect(copy).toEqual(forged);
          }
        }
        expect(receiver.sources).toBe(1);
        expect(opened(receiver, wire)).toEqual(rtpPacket(2));
        expect(receiver.openRtcp(Buffer.from(report))).toBeGreaterThan(0);
      }),
    );
  });

  it('counts packets with another key and plain packets as unauthentic', () => {
    const { receiver } = pair('AES_CM_128_HMAC_SHA1_80');
    const { sender: stranger } = pair('AES_CM_128_HMAC_SHA1_80');
    for (let sequence = 0; sequence < 5; sequence++) {
      expect(opened(receiver, sealed(stranger, rtpPacket(sequence))!)).toBeNull();
      expect(opened(receiver, rtpPacket(sequence, Buffer.alloc(160)))).toBeNull();
    }
    expect(receiver.drops).toEqual({ malformed: 0, unauthentic: 10, replayed: 0, excessSources: 0 });
    expect(receiver.sources).toBe(0);
  });

  it('limits the number of streams, and keeps known ones', () => {
    const suite = 'AES_CM_128_HMAC_SHA1_80';
    const master = masterOf(suite);
    const receiver = new SrtpReceiver({ suite, master });
    const senders = Array.from({ length: 100 }, (_, ssrc) => new SrtpSender({ suite, master, ssrc }));
    const send = (sequence: number) =>
      senders.map((sender, ssrc) => opened(receiver, sealed(sender, rtpPacket(sequence, Buffer.alloc(9), ssrc))!));
    const first = send(1);
    expect(first.filter((packet) => packet !== null)).toHaveLength(64);
    expect(receiver.sources).toBe(64);
    expect(receiver.drops.excessSources).toBe(36);
    expect(send(2).map((packet) => packet !== null)).toEqual(first.map((packet) => packet !== null));
  });
});

describe('leg keys', () => {
  const suite = 'AES_CM_128_HMAC_SHA1_80';

  function leg() {
    const local = masterOf(suite);
    const remote = masterOf(suite);
    const srtp = new LegSrtp({ suite, serial: 1, local, remote }, SSRC);
    return { srtp, local, remote, phone: new SrtpSender({ suite, master: remote, ssrc: 7 }) };
  }
  const open = (srtp: LegSrtp, wire: Buffer) => opened({ openRtp: (datagram) => srtp.openRtp(datagram, true) }, wire);
  const say = (phone: SrtpSender, sequence: number) => sealed(phone, rtpPacket(sequence, Buffer.alloc(20), 7))!;

  it('keep replay window and rollover counter when the same keys are negotiated again', () => {
    const { srtp, local, remote, phone } = leg();
    const receiver = new SrtpReceiver({ suite, master: local });
    const before = say(phone, 65_535);
    open(srtp, before);
    opened(receiver, sealed(srtp, rtpPacket(65_535))!);
    srtp.rekey({ suite, serial: 1, local: createSecretKey(local.export()), remote: createSecretKey(remote.export()) });
    expect(open(srtp, before)).toBeNull();
    expect(open(srtp, say(phone, 65_536))).not.toBeNull();
    expect(sealed(srtp, rtpPacket(65_535))).toBeNull();
    expect(opened(receiver, sealed(srtp, rtpPacket(65_536))!)).not.toBeNull();
  });

  it('decrypt packets in flight until the first packet with the new key', () => {
    const { srtp, local, phone } = leg();
    const remote = masterOf(suite);
    const renewed = new SrtpSender({ suite, master: remote, ssrc: 7 });
    expect(open(srtp, say(phone, 10))).not.toBeNull();
    const onItsWay = [say(phone, 11), say(phone, 12)];
    srtp.rekey({ suite, serial: 2, local, remote });
    expect(open(srtp, onItsWay[0]!)).not.toBeNull();
    expect(open(srtp, rtpPacket(12, Buffer.alloc(20), 7))).toBeNull();
    expect(srtp.dump()).toMatchObject({ opened: 2, drops: { unauthentic: 1 } });
    expect(open(srtp, say(renewed, 13))).not.toBeNull();
    expect(open(srtp, onItsWay[1]!)).toBeNull();
  });

  it('restore their context when forked early media alternates', () => {
    const { srtp, local, remote, phone } = leg();
    const other = { suite: 'AEAD_AES_128_GCM', serial: 2, local: masterOf('AEAD_AES_128_GCM') } as const;
    const replayed = say(phone, 1);
    open(srtp, replayed);
    sealed(srtp, rtpPacket(1));
    srtp.rekey({ ...other, remote: masterOf('AEAD_AES_128_GCM') });
    expect(srtp.suite).toBe('AEAD_AES_128_GCM');
    srtp.rekey({ suite, serial: 3, local, remote });
    expect(open(srtp, replayed)).toBeNull();
    expect(sealed(srtp, rtpPacket(1))).toBeNull();
    expect(sealed(srtp, rtpPacket(2))).not.toBeNull();
  });

  it('limit the cost of forgeries, without losing the known source', () => {
    const { srtp, phone } = leg();
    const forgery = rtpPacket(1, Buffer.alloc(160));
    for (let i = 0; i < 1000; i++) srtp.openRtp(Buffer.from(forgery), false);
    expect(srtp.dump()).toMatchObject({ drops: { unauthentic: 250, flooded: 750 } });
    expect(open(srtp, say(phone, 1))).not.toBeNull();
    srtp.tick();
    expect(srtp.openRtp(say(phone, 2), false)).toBeGreaterThan(0);
  });

  it('never appear in a dump', () => {
    const { srtp, local, remote } = leg();
    const dump = JSON.stringify(srtp.dump());
    for (const key of [local, remote]) {
      for (const encoding of ['base64', 'hex'] as const) {
        expect(dump).not.toContain(key.export().toString(encoding).slice(0, 16));
      }
    }
  });
});

const REPORT = { ssrc: SSRC, cname: 'name', sender: null, reports: [], isLast: false } as const;

type Attack =
  | { kind: 'bytes'; bytes: Uint8Array }
  | { kind: 'flip'; at: number; bit: number }
  | { kind: 'cut'; at: number };

function forge(packet: Buffer, attack: Attack): Buffer {
  if (attack.kind === 'bytes') return Buffer.from(attack.bytes);
  if (attack.kind === 'cut') return Buffer.from(packet.subarray(0, attack.at % packet.length));
  const forged = Buffer.from(packet);
  forged[attack.at % packet.length]! ^= 1 << attack.bit;
  return forged;
}
