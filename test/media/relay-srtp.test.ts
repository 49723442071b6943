import { createSecretKey, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SrtpSuite } from '../../machines/events.ts';
import { Endpoint } from '../../media/datagrams/endpoint.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { buildRtpPacket } from '../../media/rtp/packet.ts';
import { buildRtcpReport, parseRtcp } from '../../media/rtp/rtcp.ts';
import { SUITES } from '../../media/srtp/crypto-suites.ts';
import { readWav } from '../../media/wav.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench, expectContinuous } from './relay-bench.ts';
import { PhoneSrtp } from './rtp-phone.ts';

const tone440 = toneFrames('PCMU', { frequenciesHz: [440], durationMs: 400 });
const tone1000 = toneFrames('PCMU', { frequenciesHz: [1000], durationMs: 400 });
const ALL_SUITES = Object.keys(SUITES) as SrtpSuite[];

function srtpOf(bench: Bench, leg: 'agent' | 'customer') {
  return bench.partyDump(leg).srtp as {
    opened: number;
    drops: Record<string, number>;
    sealed: number;
    refused: number;
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('relayed session with SRTP', () => {
  for (const suite of ALL_SUITES) {
    it(`${suite}: relays between an encrypted and a plain party, and reports which one is encrypted`, async () => {
      await using bench = await Bench.open();
      bench.customer.srtp = new PhoneSrtp(suite);
      await bench.connect();
      bench.setPath('bridged');
      for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
      for (const payload of tone1000) bench.customer.say(bench.ports.customer, 'PCMU', payload);
      await Promise.all([bench.customer.untilReceived(20), bench.agent.untilReceived(20)]);
      expect(bench.customer.received.map(({ payload }) => payload)).toEqual(tone440.map((frame) => Buffer.from(frame)));
      expect(bench.agent.received.map(({ payload }) => payload)).toEqual(tone1000.map((frame) => Buffer.from(frame)));
      expectContinuous(bench.customer.received.map(({ header }) => header));
      expect(bench.session.quality()).toMatchObject({
        agent: { encryption: null, packets_received: 20 },
        customer: { encryption: suite, packets_received: 20, packets_lost: 0 },
      });
    });
  }

  it('records, transcodes and detects key presses between encrypted parties', async () => {
    await using bench = await Bench.open();
    bench.agent.srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_32');
    bench.customer.srtp = new PhoneSrtp('AEAD_AES_256_GCM');
    await bench.connect({ customer: bench.customer.remote('PCMA') });
    bench.setPath('bridged');
    const filePath = join(tmpdir(), `srtp-${process.pid}.wav`);
    await bench.session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    for (const [index, payload] of tone440.entries()) {
      bench.agent.say(bench.ports.agent, 'PCMU', payload);
      await bench.customer.untilReceived(index + 1);
      bench.nowMs += 20;
    }
    bench.agent.press(bench.ports.agent, 7);
    await bench.customer.untilReceived(25);
    await bench.session.stopRecording();
    expect(toneLevelDbov(bench.customer.receivedSamples('PCMA').subarray(0, 3200), 440)).toBeGreaterThan(-15);
    expect(bench.events).toContainEqual({ type: 'dtmf.pressed', leg: 'agent', digit: '7', durationMs: 60 });
    const { samples } = await readWav(filePath);
    await rm(filePath);
    expect(toneLevelDbov(samples[0]!.subarray(0, 2400), 440)).toBeGreaterThan(-15);
  });

  it('encrypts ringback and RTCP reports', async () => {
    await using bench = await Bench.open();
    const srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    bench.agent.srtp = srtp;
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(20);
    await bench.agent.untilReceived(20);
    expect(toneLevelDbov(bench.agent.receivedSamples('PCMU'), 400)).toBeGreaterThan(-25);
    bench.agent.say(bench.ports.agent, 'PCMU', tone440[0]!);
    await bench.settled('agent');
    const report = buildRtcpReport({ ssrc: 1, cname: 'phone', sender: null, reports: [], isLast: false });
    bench.agent.sendRtcp(bench.ports.agent + 1, report);
    bench.agent.sendRawRtcp(bench.ports.agent + 1, report);
    await until(() => srtpOf(bench, 'agent').drops.unauthentic === 1 && srtpOf(bench, 'agent').opened === 2);
    expect(bench.partyDump('agent')).toMatchObject({ rtcp: { received: 1 } });
    bench.nowMs += 20_000;
    bench.session.tick();
    await bench.agent.until(() => bench.agent.receivedRtcp.length > 0);
    const received = bench.agent.receivedRtcp[0]!;
    const bytes = srtp.receiver.openRtcp(received);
    expect(parseRtcp(received.subarray(0, bytes))).toContainEqual(expect.objectContaining({ type: 'sender-report' }));
  });

  it('drops and counts wrong keys, plain packets and replays, without latching', async () => {
    await using bench = await Bench.open();
    const right = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    bench.agent.srtp = right;
    await bench.connect();
    bench.setPath('bridged');
    bench.agent.srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
    bench.agent.srtp = null;
    for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
    await until(() => srtpOf(bench, 'agent').drops.unauthentic === 40);
    expect(bench.partyDump('agent')).toMatchObject({ latch: { match: 'none' }, lastReceivedAtMs: -1 });
    bench.nowMs += 20_000;
    bench.session.tick();
    expect(bench.events).toContainEqual({ type: 'rtp.timeout', leg: 'agent', silentForMs: 20_000 });
    bench.agent.srtp = right;
    const packet = bench.agent.sealed(tone440[0]!);
    for (let copies = 0; copies < 3; copies++) bench.agent.sendRaw(bench.ports.agent, packet);
    await until(() => srtpOf(bench, 'agent').drops.replayed === 2);
    await bench.customer.untilReceived(1);
    expect(bench.customer.received).toHaveLength(1);
  });

  it('keeps its context for the same keys and switches for new ones', async () => {
    await using bench = await Bench.open();
    bench.agent.srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    await bench.connect();
    bench.setPath('bridged');
    const exchange = async () => {
      const count = bench.agent.received.length + 20;
      for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
      for (const payload of tone1000) bench.customer.say(bench.ports.customer, 'PCMU', payload);
      await Promise.all([bench.agent.untilReceived(count), bench.customer.untilReceived(count)]);
    };
    await exchange();
    await bench.session.connectParty('agent', bench.agent.remote());
    await exchange();
    expect(srtpOf(bench, 'agent')).toMatchObject({ opened: 40, sealed: 40, refused: 0 });
    bench.agent.srtp.renewOwnKey();
    await bench.session.connectParty('agent', bench.agent.remote());
    await exchange();
    expectContinuous(bench.agent.received.map(({ header }) => header));
    expect(srtpOf(bench, 'agent')).toMatchObject({ opened: 60, sealed: 60, drops: { unauthentic: 0, replayed: 0 } });
  });

  it('switches between plain and encrypted as negotiated, and reports it', async () => {
    await using bench = await Bench.open();
    const srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    const exchange = async () => {
      const count = bench.agent.received.length + 20;
      for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
      for (const payload of tone1000) bench.customer.say(bench.ports.customer, 'PCMU', payload);
      await Promise.all([bench.agent.untilReceived(count), bench.customer.untilReceived(count)]);
      return bench.session.quality().agent!.encryption;
    };
    const shown: unknown[] = [];
    for (const keys of [srtp, null, srtp]) {
      bench.agent.srtp = keys;
      await bench.connect();
      bench.setPath('bridged');
      shown.push(await exchange());
    }
    expect(shown).toEqual(['AES_CM_128_HMAC_SHA1_80', null, 'AES_CM_128_HMAC_SHA1_80']);
    expect(srtpOf(bench, 'agent')).toMatchObject({ opened: 40, sealed: 40, refused: 0 });
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('accepts new sources again one tick after a flood of forgeries', async () => {
    await using bench = await Bench.open();
    bench.agent.srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80');
    await bench.connect();
    bench.setPath('bridged');
    bench.agent.say(bench.ports.agent, 'PCMU', tone440[0]!);
    await bench.customer.untilReceived(1);
    const forge = (count: number) => {
      const stranger = Endpoint.of('203.0.113.9', 5004);
      for (let sequence = 0; sequence < count; sequence++) {
        const fields = { payloadType: 0, sequence, timestamp: 0, ssrc: 0x666 };
        bench.session.receiveRtp('agent', buildRtpPacket(fields, tone440[0]!), stranger);
      }
    };
    forge(260);
    expect(srtpOf(bench, 'agent').drops).toMatchObject({ unauthentic: 250, flooded: 10 });
    bench.session.tick();
    forge(1);
    expect(srtpOf(bench, 'agent').drops).toMatchObject({ unauthentic: 251, flooded: 10 });
  });

  it('starts in the lower half of the sequence numbers, so that early losses hide no rollover', async () => {
    for (let session = 0; session < 20; session++) {
      await using bench = await Bench.open();
      await bench.connect();
      bench.setPath('ringback');
      bench.pace(1);
      await bench.agent.untilReceived(1);
      expect(bench.agent.received[0]!.header.sequence).toBeLessThan(0x8000 + 1);
    }
  });

  it('never reuses a packet index for any numbering of the other party', async () => {
    const packets = fc.array(fc.record({ step: fc.integer({ min: -50, max: 60 }), octet: fc.nat(255) }), {
      minLength: 5,
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(packets, async (plan) => {
        await using bench = await Bench.open();
        bench.customer.srtp = new PhoneSrtp('AEAD_AES_128_GCM');
        await bench.connect();
        bench.setPath('bridged');
        for (const { step, octet } of plan) {
          bench.agent.sequence = (bench.agent.sequence + step) & 0xffff;
          bench.agent.say(bench.ports.agent, 'PCMU', new Uint8Array(160).fill(octet));
        }
        await bench.settled('agent');
        const { sealed } = srtpOf(bench, 'customer');
        await bench.customer.untilReceived(sealed);
        expect(new Set(bench.customer.received.map(({ header }) => header.sequence)).size).toBe(sealed);
      }),
      { numRuns: 15 },
    );
  });

  it('survives any datagram on an encrypted leg', async () => {
    await using bench = await Bench.open();
    bench.agent.srtp = new PhoneSrtp('AEAD_AES_128_GCM');
    await bench.connect();
    bench.setPath('bridged');
    const phone = Endpoint.of('127.0.0.1', bench.agent.port);
    for (const datagram of fc.sample(fc.uint8Array({ maxLength: 300 }), 1000)) {
      bench.session.receiveRtp('agent', Buffer.from(datagram), phone);
      bench.session.receiveRtcp('agent', Buffer.from(datagram), phone);
    }
    bench.agent.say(bench.ports.agent, 'PCMU', tone440[0]!);
    await bench.customer.untilReceived(1);
    expect(bench.session.dump()).toMatchObject({ faults: { count: 0, last: null } });
  });
});

describe('session keys', () => {
  it('never appear in the dump', async () => {
    await using bench = await Bench.open();
    bench.agent.srtp = new PhoneSrtp('AES_CM_128_HMAC_SHA1_80', createSecretKey(randomBytes(30)));
    await bench.connect();
    const dump = JSON.stringify(bench.session.dump());
    for (const key of bench.agent.srtp.keys()) expect(dump).not.toContain(key.toString('base64').slice(0, 12));
  });
});
