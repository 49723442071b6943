import { rm } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { RECORDING_CHANNELS } from '../../actors/call-routing.ts';
import type { MediaEvent } from '../../machines/events.ts';
import { decodeG711 } from '../../media/codecs/g711.ts';
import { DgramDatagrams } from '../../media/datagrams/datagrams.dgram.ts';
import { Endpoint } from '../../media/datagrams/endpoint.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { FastPath } from '../../media/relay/fast-path.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import { PortTakenError, RelaySession } from '../../media/relay/session.ts';
import { buildRtpPacket, type RtpHeader } from '../../media/rtp/packet.ts';
import { buildRtcpReport, parseRtcp } from '../../media/rtp/rtcp.ts';
import { telephoneEventPayload } from '../../media/rtp/telephone-event.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench, expectContinuous } from './relay-bench.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

const tone440 = toneFrames('PCMU', { frequenciesHz: [440], durationMs: 400 });
const tone1000Alaw = toneFrames('PCMA', { frequenciesHz: [1000], durationMs: 400 });
const frame = tone440[0]!;

function sequencesOf(phone: RtpPhone): number[] {
  return phone.received.map(({ header }) => header.sequence);
}

describe('relayed session', () => {
  it('connects both parties when bridged, and not before', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    expect(bench.customer.received).toEqual([]);
    bench.setPath('bridged');
    for (const payload of tone440) {
      bench.nowMs += 20;
      bench.agent.say(bench.ports.agent, 'PCMU', payload);
      bench.customer.say(bench.ports.customer, 'PCMU', frame);
    }
    await Promise.all([bench.customer.untilReceived(20), bench.agent.untilReceived(20)]);
    expect(toneLevelDbov(bench.customer.receivedSamples('PCMU'), 440)).toBeGreaterThan(-15);
    expect(bench.agent.received.map(({ payload }) => payload)).toEqual(tone440.map(() => Buffer.from(frame)));
    expect(bench.events).toEqual([
      { type: 'rtp.started', leg: 'agent' },
      { type: 'rtp.started', leg: 'customer' },
    ]);
  });

  it('transcodes between different codecs', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMA') });
    bench.setPath('bridged');
    for (const payload of tone440) bench.agent.say(bench.ports.agent, 'PCMU', payload);
    for (const payload of tone1000Alaw) bench.customer.say(bench.ports.customer, 'PCMA', payload);
    await Promise.all([bench.customer.untilReceived(20), bench.agent.untilReceived(20)]);
    expect(bench.customer.received.every(({ header }) => header.payloadType === 8)).toBe(true);
    expect(bench.agent.received.every(({ header }) => header.payloadType === 0)).toBe(true);
    const atCustomer = bench.customer.receivedSamples('PCMA');
    const atAgent = bench.agent.receivedSamples('PCMU');
    expect(toneLevelDbov(atCustomer, 440)).toBeGreaterThan(-14);
    expect(toneLevelDbov(atCustomer, 1000)).toBeLessThan(-45);
    expect(toneLevelDbov(atAgent, 1000)).toBeGreaterThan(-14);
    expect(toneLevelDbov(atAgent, 440)).toBeLessThan(-45);
  });

  it('plays ringback to the agent only, in real cadence', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(150);
    await bench.agent.untilReceived(150);
    const samples = bench.agent.receivedSamples('PCMU');
    for (const frequencyHz of [400, 450]) {
      expect(toneLevelDbov(samples.subarray(0, 3200), frequencyHz)).toBeGreaterThan(-25);
      expect(toneLevelDbov(samples.subarray(3200, 4800), frequencyHz)).toBeLessThan(-60);
      expect(toneLevelDbov(samples.subarray(4800, 8000), frequencyHz)).toBeGreaterThan(-25);
      expect(toneLevelDbov(samples.subarray(8000), frequencyHz)).toBeLessThan(-60);
    }
    expect(bench.customer.received).toEqual([]);
  });

  it('relays early media to the agent only', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('early-media');
    for (const payload of tone440) bench.customer.say(bench.ports.customer, 'PCMU', payload);
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.agent.untilReceived(20);
    await bench.settled('agent');
    expect(toneLevelDbov(bench.agent.receivedSamples('PCMU'), 440)).toBeGreaterThan(-15);
    expect(bench.customer.received).toEqual([]);
  });

  it('sends one continuous stream from ringback through early media to the bridge', async () => {
    await using bench = await Bench.open();
    await using answering = await RtpPhone.open();
    answering.ssrc = 0x3000;
    answering.sequence = 9;
    answering.timestamp = 77;
    await bench.connect();
    bench.setPath('ringback');
    bench.pace(30);
    await bench.agent.untilReceived(30);
    bench.setPath('early-media');
    for (let i = 0; i < 20; i++) {
      bench.nowMs += 20;
      bench.customer.say(bench.ports.customer, 'PCMU', frame);
      await bench.agent.untilReceived(31 + i);
    }
    await bench.session.connectParty('customer', answering.remote('PCMA'));
    bench.setPath('bridged');
    for (let i = 0; i < 20; i++) {
      bench.nowMs += 20;
      answering.say(bench.ports.customer, 'PCMA', tone1000Alaw[i]!);
      await bench.agent.untilReceived(51 + i);
    }
    const headers = bench.agent.received.map(({ header }) => header);
    expectContinuous(headers);
    const marked = headers.flatMap((header, index) => (header.marker ? [index] : []));
    expect(marked).toEqual([0, 30, 50]);
  });

  it('passes on losses of the source, and hides dropped packets', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMU', { telephoneEventPayloadType: null }) });
    bench.setPath('bridged');
    const { agent, ports } = bench;
    agent.say(ports.agent, 'PCMU', frame);
    agent.press(ports.agent, 5);
    agent.sendRtp(ports.agent, { payloadType: 13 }, Uint8Array.of(60));
    agent.say(ports.agent, 'PCMU', frame);
    agent.sequence = (agent.sequence + 3) & 0xffff;
    agent.say(ports.agent, 'PCMU', frame);
    await bench.customer.untilReceived(3);
    const [first, second, third] = sequencesOf(bench.customer) as [number, number, number];
    expect([(second - first) & 0xffff, (third - second) & 0xffff]).toEqual([1, 4]);
  });

  it('keeps one SSRC without timestamp jumps when a source restarts', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    for (let i = 0; i < 30; i++) {
      bench.nowMs += 20;
      if (i % 10 === 9) {
        bench.agent.ssrc += 1;
        bench.agent.sequence = (i * 7919) & 0xffff;
        bench.agent.timestamp = (i * 0x1234567) >>> 0;
      }
      if (i === 15) bench.agent.timestamp = (bench.agent.timestamp + 0x40000000) >>> 0;
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      await bench.customer.untilReceived(i + 1);
    }
    expectContinuous(bench.customer.received.map(({ header }) => header));
  });
});

describe('relayed key presses', () => {
  it('arrive once per press, with the payload type of the other side', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMA', { telephoneEventPayloadType: 110 }) });
    bench.setPath('bridged');
    bench.agent.press(bench.ports.agent, 5, 97);
    bench.agent.press(bench.ports.agent, 5, 97);
    bench.agent.press(bench.ports.agent, 11, 97);
    await bench.customer.untilReceived(15);
    expect(bench.events.filter((event) => event.type === 'dtmf.pressed')).toEqual([
      { type: 'dtmf.pressed', leg: 'agent', digit: '5', durationMs: 60 },
      { type: 'dtmf.pressed', leg: 'agent', digit: '5', durationMs: 60 },
      { type: 'dtmf.pressed', leg: 'agent', digit: '#', durationMs: 60 },
    ]);
    const { received } = bench.customer;
    expect(received.every(({ header, payload }) => header.payloadType === 110 && payload.length === 4)).toBe(true);
    expect(new Set(received.map(({ header }) => header.timestamp)).size).toBe(3);
  });

  it('do not delay the audio after them if the listener missed their start', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const say = async (): Promise<void> => {
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      await bench.settled('agent');
      bench.nowMs += 20;
    };
    const { agent } = bench;
    await say();
    await say();
    bench.setPath('idle');
    // A key is held for 800 ms. The listener receives the second half.
    for (let ms = 20; ms <= 800; ms += 20) {
      if (ms === 420) bench.setPath('bridged');
      const event = { event: 5, isEnd: ms === 800, volume: 10, durationUnits: 8 * ms };
      agent.sendRtp(bench.ports.agent, { payloadType: 101 }, telephoneEventPayload(event));
      await bench.settled('agent');
      bench.nowMs += 20;
    }
    agent.timestamp = (agent.timestamp + 800 * 8) >>> 0;
    await say();
    await bench.settled('customer');
    const audio = bench.customer.received.map(({ header }) => header).filter(({ payloadType }) => payloadType === 0);
    expect(audio).toHaveLength(3);
    expect(audio[2]!.timestamp - audio[1]!.timestamp).toBe(820 * 8);
  });

  it('do not need their End packets', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.agent.press(bench.ports.agent, 5, 101, { losesEnd: true });
    await bench.customer.untilReceived(2);
    bench.nowMs += 250;
    bench.session.tick();
    expect(bench.events).toContainEqual({ type: 'dtmf.pressed', leg: 'agent', digit: '5', durationMs: 40 });
  });
});

describe('accepted source of a leg', () => {
  let extra: RtpPhone | null = null;
  afterEach(async () => {
    await extra?.[Symbol.asyncDispose]();
    extra = null;
  });

  it('does not exist before it is connected', async () => {
    await using bench = await Bench.open();
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    expect(bench.counters('agent').refusedSource).toBe(1);
    expect(bench.events).toEqual([]);
  });

  it('never changes to an intruder', async () => {
    await using bench = await Bench.open();
    extra = await RtpPhone.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.customer.untilReceived(1);
    for (const nowMs of [1001, 7000, 60_000]) {
      bench.nowMs = nowMs;
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      for (let i = 0; i < 10; i++) extra.say(bench.ports.agent, 'PCMU', tone1000Alaw[i]!);
      bench.customer.say(bench.ports.customer, 'PCMU', frame);
    }
    await Promise.all([bench.customer.untilReceived(4), bench.agent.untilReceived(3)]);
    while (bench.counters('agent').refusedSource! < 30) await new Promise((resolve) => setImmediate(resolve));
    expect(bench.customer.received.every(({ payload }) => payload.equals(frame))).toBe(true);
    expect(bench.customer.received).toHaveLength(4);
    expect(extra.received).toEqual([]);
  });

  it('follows a peer that sends from another port than its SDP, in both directions', async () => {
    await using bench = await Bench.open();
    extra = await RtpPhone.open();
    await bench.connect({ agent: extra.remote() });
    bench.setPath('bridged');
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.customer.untilReceived(1);
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(1);
    expect(extra.received).toEqual([]);
  });

  it('follows a peer behind NAT after a few consecutive packets', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU', { host: '192.0.2.7' }) });
    bench.setPath('bridged');
    for (let i = 0; i < 5; i++) bench.agent.say(bench.ports.agent, 'PCMU', tone440[i]!);
    await bench.customer.untilReceived(2);
    await bench.settled('agent');
    expect(bench.customer.received.map(({ payload }) => payload)).toEqual([
      Buffer.from(tone440[3]!),
      Buffer.from(tone440[4]!),
    ]);
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(1);
  });

  it('moves with new signalling and drops the former source', async () => {
    await using bench = await Bench.open();
    extra = await RtpPhone.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(1);
    await bench.session.connectParty('customer', extra.remote());
    extra.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(2);
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.settled('customer');
    expect(bench.counters('customer').refusedSource).toBe(1);
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await extra.untilReceived(1);
    expect(bench.customer.received).toEqual([]);
  });

  it('never equals a port of the session', async () => {
    await using bench = await Bench.open();
    for (const rtpPort of [bench.ports.agent, bench.ports.customer, bench.ports.customer + 1]) {
      const connecting = bench.session.connectParty('agent', bench.agent.remote('PCMU', { rtpPort }));
      await expect(connecting).rejects.toMatchObject({ code: 'REMOTE_ADDRESS' });
    }
  });
});

describe('hold', () => {
  it.each(['sendonly', 'inactive'] as const)(
    'stops the stream to a %s peer, and resumes without a gap',
    async (direction) => {
      await using bench = await Bench.open();
      await bench.connect();
      bench.setPath('bridged');
      const say = (): void => {
        bench.nowMs += 20;
        bench.customer.say(bench.ports.customer, 'PCMU', frame);
      };
      say();
      await bench.agent.untilReceived(1);
      await bench.session.connectParty('agent', bench.agent.remote('PCMU', { direction }));
      for (let i = 0; i < 10; i++) say();
      await bench.settled('customer');
      expect(bench.agent.received).toHaveLength(1);
      await bench.session.connectParty('agent', bench.agent.remote());
      say();
      await bench.agent.untilReceived(2);
      const [before, after] = bench.agent.received.map(({ header }) => header) as [RtpHeader, RtpHeader];
      expect((after.sequence - before.sequence) & 0xffff).toBe(1);
      expect((after.timestamp - before.timestamp) >>> 0).toBe(11 * 160);
      expect(after.marker).toBe(true);
    },
  );
});

describe('silence timeout of a leg', () => {
  const timeouts = (bench: Bench): MediaEvent<string>[] => bench.events.filter((event) => event.type === 'rtp.timeout');

  it('fires once per silence of a bridged party', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.nowMs += 100_000;
    bench.session.tick();
    bench.setPath('ringback');
    bench.session.tick();
    expect(timeouts(bench)).toEqual([]);
    bench.setPath('bridged');
    bench.nowMs += 15_000;
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.customer.untilReceived(1);
    bench.nowMs += 5000;
    bench.session.tick();
    bench.session.tick();
    expect(timeouts(bench)).toEqual([{ type: 'rtp.timeout', leg: 'customer', silentForMs: 20_000 }]);
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(1);
    bench.nowMs += 20_000;
    bench.session.tick();
    expect(timeouts(bench).map((event) => 'leg' in event && event.leg)).toEqual(['customer', 'agent', 'customer']);
  });

  it('ignores hold, and restarts when the call resumes', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU', { direction: 'sendonly' }) });
    await bench.session.connectParty('customer', bench.customer.remote('PCMU', { direction: 'recvonly' }));
    bench.setPath('bridged');
    bench.nowMs += 60_000;
    bench.session.tick();
    expect(timeouts(bench)).toEqual([]);
    await bench.session.connectParty('agent', bench.agent.remote());
    bench.session.tick();
    expect(timeouts(bench)).toEqual([]);
    bench.nowMs += 20_000;
    bench.session.tick();
    expect(timeouts(bench)).toEqual([{ type: 'rtp.timeout', leg: 'agent', silentForMs: 20_000 }]);
  });
});

describe('comfort noise of a party', () => {
  it('passes unchanged to a party that negotiated it', async () => {
    await using bench = await Bench.open();
    const takesNoise = { hasComfortNoise: true };
    await bench.connect({
      agent: bench.agent.remote('PCMU', takesNoise),
      customer: bench.customer.remote('PCMU', takesNoise),
    });
    bench.setPath('bridged');
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    bench.agent.sendRtp(bench.ports.agent, { payloadType: 13 }, Uint8Array.of(60, 1, 2));
    await bench.customer.untilReceived(2);
    bench.nowMs += 400;
    bench.agent.timestamp = (bench.agent.timestamp + 3200) >>> 0;
    bench.agent.say(bench.ports.agent, 'PCMU', frame, true);
    await bench.customer.untilReceived(3);
    const [first, noise, last] = bench.customer.received;
    expect(noise).toMatchObject({ header: { payloadType: 13, marker: false }, payload: Buffer.of(60, 1, 2) });
    expect(last!.header).toMatchObject({
      payloadType: 0,
      marker: true,
      sequence: (first!.header.sequence + 2) & 0xffff,
    });
    expect((last!.header.timestamp - first!.header.timestamp) >>> 0).toBe(3360);
  });

  it('becomes audio noise for a party that did not negotiate it, until audio returns', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU', { hasComfortNoise: true }) });
    bench.setPath('bridged');
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    bench.agent.sendRtp(bench.ports.agent, { payloadType: 13 }, Uint8Array.of(50));
    await bench.settled('agent');
    bench.pace(50);
    await bench.customer.untilReceived(51);
    expect(new Set(bench.customer.received.map(({ header }) => header.payloadType))).toEqual(new Set([0]));
    expect(Math.abs(levelDbov(bench.customer.receivedSamples('PCMU', 20)) + 50)).toBeLessThan(3);
    bench.agent.timestamp = (bench.agent.timestamp + 8000) >>> 0;
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.customer.untilReceived(52);
    bench.pace(5);
    expect(bench.customer.received.at(-1)!.payload).toEqual(Buffer.from(frame));
    expect(bench.partyDump('agent').playout).toBeNull();
    expectContinuous(bench.customer.received.map(({ header }) => header));
  });

  it('replaces silence frames five times a second for a party that negotiated it', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU', { hasComfortNoise: true }) });
    bench.session.setRouting({ receives: { agent: 'silence', customer: 'silence' }, watched: [] });
    bench.pace(50);
    await Promise.all([bench.agent.untilReceived(5), bench.customer.untilReceived(50)]);
    bench.setPath('bridged');
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.agent.untilReceived(6);
    const noise = bench.agent.received.slice(0, 5);
    for (const { header, payload } of noise) {
      expect(header).toMatchObject({ payloadType: 13, marker: false });
      expect(payload).toEqual(Buffer.of(127));
    }
    const steps = noise.slice(1).map(({ header }, i) => (header.timestamp - noise[i]!.header.timestamp) >>> 0);
    expect(steps).toEqual([1600, 1600, 1600, 1600]);
    expect(bench.agent.received[5]!.header).toMatchObject({ payloadType: 0, marker: true });
    expectContinuous(bench.agent.received.map(({ header }) => header));
  });

  it('starts a pause, during which RTCP reports keep the party alive', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const report = buildRtcpReport({ ssrc: 5, cname: 'x', sender: null, reports: [] });
    const reports = (): number => (bench.partyDump('customer').rtcp as { received: number }).received;
    const timedOut = (): unknown[] => bench.events.filter((event) => event.type === 'rtp.timeout');
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    bench.customer.sendRtp(bench.ports.customer, { payloadType: 13 }, Uint8Array.of(60));
    for (let seconds = 0; seconds < 60; seconds += 10) {
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      bench.customer.sendRtcp(bench.ports.customer + 1, report);
      await Promise.all([bench.settled('agent'), bench.settled('customer')]);
      while (reports() <= seconds / 10) await new Promise((resolve) => setImmediate(resolve));
      bench.nowMs += 10_000;
      bench.session.tick();
    }
    expect(timedOut()).toEqual([]);
    expect(bench.session.quality().customer).toMatchObject({ packets_received: 2, packets_lost: 0 });
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    bench.nowMs += 10_000;
    bench.session.tick();
    expect(timedOut()).toEqual([{ type: 'rtp.timeout', leg: 'customer', silentForMs: 20_000 }]);
  });

  it('ignores RTCP reports while audio is expected', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const report = buildRtcpReport({ ssrc: 5, cname: 'x', sender: null, reports: [] });
    bench.customer.sendRtp(bench.ports.customer, { payloadType: 13 }, Uint8Array.of(60));
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await Promise.all([bench.settled('agent'), bench.settled('customer')]);
    bench.nowMs += 15_000;
    bench.customer.sendRtcp(bench.ports.customer + 1, report);
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    while ((bench.partyDump('customer').rtcp as { received: number }).received < 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    bench.nowMs += 5000;
    bench.session.tick();
    expect(bench.events).toContainEqual({ type: 'rtp.timeout', leg: 'customer', silentForMs: 20_000 });
  });
});

describe('RTCP of a leg', () => {
  it('reports sent and received packets, and ends with BYE', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    for (const sequence of [0, 1, 2, 5]) {
      bench.agent.sequence = sequence;
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
    }
    await bench.customer.untilReceived(4);
    bench.nowMs += 8000;
    bench.session.tick();
    await Promise.all([
      bench.agent.until(() => bench.agent.receivedRtcp.length > 0),
      bench.customer.until(() => bench.customer.receivedRtcp.length > 0),
    ]);
    const toAgent = parseRtcp(bench.agent.receivedRtcp[0]!)![0]!;
    const toCustomer = parseRtcp(bench.customer.receivedRtcp[0]!)![0]!;
    expect(toAgent).toMatchObject({ type: 'receiver-report', reports: [{ ssrc: bench.agent.ssrc, packetsLost: 2 }] });
    expect(toCustomer).toMatchObject({
      type: 'sender-report',
      ssrc: bench.customer.received[0]!.header.ssrc,
      sender: { packetCount: 4, octetCount: 640 },
      reports: [],
    });
    await bench.session.close();
    await bench.customer.until(() => bench.customer.receivedRtcp.length > 1);
    expect(parseRtcp(bench.customer.receivedRtcp[1]!)!.at(-1)).toMatchObject({ type: 'goodbye' });
  });

  it('goes to the new port when the peer moves to another one of its host', async () => {
    await using bench = await Bench.open();
    await using moved = await RtpPhone.open();
    await bench.connect();
    await bench.session.connectParty('agent', moved.remote());
    bench.nowMs += 8000;
    bench.session.tick();
    await bench.customer.until(() => bench.customer.receivedRtcp.length > 0);
    await bench.settled('customer');
    expect(bench.agent.receivedRtcp).toHaveLength(0);
    expect(moved.receivedRtcp).toHaveLength(1);
  });

  it('does not go to this machine while the peer holds with a zero address (RFC 3264 section 8.4)', async () => {
    await using bench = await Bench.open();
    const { rtcpPort } = bench.customer.remote();
    await bench.connect({ agent: bench.agent.remote('PCMU', { host: '0.0.0.0', direction: 'sendonly', rtcpPort }) });
    bench.nowMs += 8000;
    bench.session.tick();
    await bench.customer.until(() => bench.customer.receivedRtcp.length > 0);
    const { ssrc } = bench.partyDump('customer').outbound as { ssrc: number };
    expect(parseRtcp(bench.customer.receivedRtcp[0]!)![0]).toMatchObject({ ssrc });
  });

  it('derives the round trip from the report of the peer and ignores others', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const rtcp = (): Record<string, unknown> => bench.partyDump('agent').rtcp as Record<string, unknown>;
    const { ssrc } = bench.partyDump('agent').outbound as { ssrc: number };
    const ntpMiddleNow = Math.round(((1_700_000_000_000 + bench.nowMs) / 1000 + 2_208_988_800) * 65536) % 2 ** 32;
    const report = (lastSenderReport: number): Buffer =>
      buildRtcpReport({
        ssrc: 5,
        cname: 'x',
        sender: null,
        reports: [
          {
            ssrc,
            fractionLost: 0,
            packetsLost: 0,
            extendedHighestSequence: 0,
            jitter: 0,
            lastSenderReport,
            delaySinceLastSenderReport: 0,
          },
        ],
      });
    bench.agent.sendRtcp(bench.ports.agent + 1, Buffer.from('garbage'));
    bench.agent.sendRtcp(bench.ports.agent + 1, report(ntpMiddleNow - 6554));
    while (rtcp().received !== 1) await new Promise((resolve) => setImmediate(resolve));
    expect(rtcp().malformed).toBe(1);
    expect(rtcp().roundTripMs).toBeCloseTo(100, 0);
    bench.agent.sendRtcp(bench.ports.agent + 1, report(1));
    while (rtcp().received !== 2) await new Promise((resolve) => setImmediate(resolve));
    expect(rtcp().roundTripMs).toBeCloseTo(100, 0);
  });
});

describe('leg quality', () => {
  it('starts with null, has no MOS before audio, then counts loss', async () => {
    await using bench = await Bench.open();
    expect(bench.session.quality()).toEqual({ agent: null, customer: null });
    await bench.connect({ customer: bench.customer.remote('PCMA') });
    expect(bench.session.quality().customer).toMatchObject({
      codec: 'PCMA',
      packets_received: 0,
      mos: null,
      snr_db: null,
    });
    for (let i = 0; i < 100; i++) {
      bench.nowMs += 20;
      if (i % 10 === 5) {
        bench.agent.sequence = (bench.agent.sequence + 1) & 0xffff;
        bench.agent.timestamp = (bench.agent.timestamp + 160) >>> 0;
      } else bench.agent.say(bench.ports.agent, 'PCMU', frame);
      if (i % 10 === 9) {
        await bench.settled('agent');
        bench.session.tick();
      }
    }
    const { agent } = bench.session.quality();
    expect(agent).toMatchObject({ codec: 'PCMU', packets_received: 90, packets_lost: 10 });
    expect(agent!.mos).toBeGreaterThan(2);
    expect(agent!.mos).toBeLessThan(3.5);
  });
});

describe('hostile datagrams', () => {
  it('from the party neither throw nor reach the other party malformed', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMA') });
    bench.setPath('bridged');
    const filePath = `/tmp/tandem-fuzz-${process.pid}.wav`;
    await bench.session.startRecording({ filePath: filePath, channels: RECORDING_CHANNELS });
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 1600 }).map((bytes) => Buffer.from(bytes)),
      fc
        .record({
          payloadType: fc.constantFrom(0, 8, 13, 101, 127, 3),
          sequence: fc.nat(0xffff),
          timestamp: fc.nat(0xffffffff),
          ssrc: fc.nat(3),
          payload: fc.uint8Array({ maxLength: 1600 }),
          first: fc.option(fc.nat(255)),
        })
        .map(({ payload, first, ...fields }) => {
          const packet = buildRtpPacket(fields, payload);
          if (first !== null) packet[0] = first;
          return packet;
        }),
    );
    const datagrams = fc.sample(hostile, 2000);
    for (const [index, datagram] of datagrams.entries()) {
      bench.agent.sendRaw(bench.ports.agent, datagram);
      bench.agent.sendRtcp(bench.ports.agent + 1, datagram);
      if (index % 20 !== 19) continue;
      await bench.settled('agent');
      bench.nowMs += 100;
      bench.session.tick();
    }
    expect((bench.session.dump() as { faults: unknown }).faults).toEqual({ count: 0, last: null });
    const summary = await bench.session.stopRecording();
    expect(summary).toMatchObject({ filePath, durationMs: 10_000 });
    await rm(filePath);
    // The phone throws on anything but RTP, and the duration follows the clock, not the timestamps.
    bench.agent.ssrc = 99;
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.customer.until(() => bench.customer.received.at(-1)?.payload.length === 160);
    const decoded = new Int16Array(160);
    expect(decodeG711('PCMA', bench.customer.received.at(-1)!.payload, decoded)).toBe(160);
  });

  it('from port 0 get no reply, and peers without a port receive nothing', async () => {
    await using bench = await Bench.open();
    const source = Endpoint.of('127.0.0.1', 0);
    await bench.connect({ agent: bench.agent.remote('PCMU', { rtpPort: 0, rtcpPort: 65_536 }) });
    bench.setPath('bridged');
    const packet = buildRtpPacket({ payloadType: 0, sequence: 1, timestamp: 1, ssrc: 1 }, frame);
    for (const leg of ['agent', 'customer'] as const) {
      for (let i = 0; i < 5; i++) bench.session.receiveRtp(leg, Buffer.from(packet), source);
      bench.session.receiveRtcp(leg, buildRtcpReport({ ssrc: 1, cname: 'x', sender: null, reports: [] }), source);
      expect(bench.counters(leg).refusedSource).toBe(6);
    }
    bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.settled('customer');
    bench.nowMs += 10_000;
    bench.session.tick();
    expect((bench.session.dump() as { faults: unknown }).faults).toEqual({ count: 0, last: null });
    for (const rtpPort of [-1, 65_536, 1.5, Number.NaN]) {
      const connecting = bench.session.connectParty('agent', bench.agent.remote('PCMU', { rtpPort }));
      await expect(connecting).rejects.toMatchObject({ code: 'REMOTE_ADDRESS' });
    }
  });

  it('beyond the rate of a call are dropped', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    for (let i = 0; i < 350; i++) {
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      if (i % 25 === 0) await bench.settled('agent');
    }
    await bench.settled('agent');
    expect(bench.counters('agent').flooded).toBe(50);
    bench.nowMs += 1;
    bench.agent.say(bench.ports.agent, 'PCMU', frame);
    await bench.settled('agent');
    expect(bench.counters('agent').flooded).toBe(50);
  });

  it('queued while the thread stalled are accepted', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    for (let late = 0; late < 5; late++) {
      for (let i = 0; i < 200; i++) {
        bench.agent.say(bench.ports.agent, 'PCMU', frame);
        if (i % 25 === 0) await bench.settled('agent');
      }
      await bench.settled('agent');
      bench.nowMs += 4000;
    }
    expect(bench.counters('agent').flooded).toBe(0);
  });
});

describe('session ports', () => {
  it('report which one is in use, and become free after close', async () => {
    await using bench = await Bench.open();
    const datagrams = new DgramDatagrams();
    const options = {
      bindHost: '127.0.0.1',
      rtpTimeoutMs: 1000,
      datagrams,
      pacer: new FramePacer(),
      sendRing: new SendRing(),
      fastPath: new FastPath(datagrams),
      post: () => {},
    };
    const { min } = await freePortRange(1);
    const opening = RelaySession.open({ ...options, rtpPorts: { agent: min, customer: bench.ports.customer } });
    await expect(opening).rejects.toBeInstanceOf(PortTakenError);
    await expect(opening).rejects.toMatchObject({ rtpPort: bench.ports.customer });
    await bench.session.close();
    const again = await RelaySession.open({ ...options, rtpPorts: bench.ports });
    await again.close();
  });
});
