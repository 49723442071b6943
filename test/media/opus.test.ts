import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getPacketInfo } from 'libopus-wasm';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../machines/events.ts';
import { OpusDecoder, OpusEncoder, opusTicks } from '../../media/codecs/opus.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, tone, toneFrames } from '../../media/dsp/tones.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { TickClock } from '../../media/rtp/tick-clock.ts';
import { readWav } from '../../media/wav.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench } from './relay-bench.ts';

const HZ = 1000;
const WIDEBAND_HZ = 5500;
const FRAMES = 50;
const FULL = levelDbov(tone({ frequenciesHz: [HZ], durationMs: 1000 }));

async function opusTone(frequencyHz = HZ): Promise<Uint8Array[]> {
  const encoder = await OpusEncoder.open();
  const samples = tone({ frequenciesHz: [frequencyHz], durationMs: 20 * FRAMES, sampleRateHz: 16_000 });
  const packets = Array.from({ length: FRAMES }, (_, frame) =>
    encoder.encode(samples.subarray(2 * FRAME_SAMPLES * frame, 2 * FRAME_SAMPLES * (frame + 1))),
  );
  encoder.close();
  return packets;
}

async function agentSays(bench: Bench, codec: Codec, packets: readonly Uint8Array[]): Promise<void> {
  for (const packet of packets) {
    bench.agent.say(bench.ports.agent, codec, packet);
    await bench.settled('agent');
    bench.pace(1);
  }
}

async function receivedOpus(bench: Bench): Promise<Int16Array> {
  const decoder = await OpusDecoder.open();
  const frame = new Int16Array(1920);
  const received = bench.customer.received.flatMap(({ payload }) => [
    ...frame.subarray(0, decoder.decode(payload, frame)),
  ]);
  decoder.close();
  return Int16Array.from(received);
}

describe('Opus codec', () => {
  it('preserves speech-like sound up to 8 kHz', async () => {
    const decoder = await OpusDecoder.open();
    const frame = new Int16Array(320);
    const received = (await opusTone(WIDEBAND_HZ)).flatMap((packet) => {
      expect(decoder.decode(packet, frame)).toBe(320);
      return [...frame];
    });
    decoder.close();
    expect(toneLevelDbov(Int16Array.from(received.slice(3200)), WIDEBAND_HZ, 16_000)).toBeGreaterThan(FULL - 3);
  });

  it('returns no samples for invalid packets', async () => {
    const decoder = await OpusDecoder.open();
    const samples = new Int16Array(1920);
    expect(decoder.decode(new Uint8Array(0), samples)).toBe(0);
    expect(decoder.decode(new Uint8Array(300).fill(255), samples)).toBe(0);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => {
        expect(decoder.decode(octets, samples)).toBeLessThanOrEqual(1920);
      }),
    );
    decoder.close();
  });

  it('computes the packet duration as libopus does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 120 }), async (packet) => {
        const info = await getPacketInfo(packet, { sampleRate: 8000 }).catch(() => null);
        if (info !== null) expect(opusTicks(packet, 0, packet.length)).toBe(info.samples);
        expect(opusTicks(packet, 0, packet.length)).toBeLessThanOrEqual(960);
      }),
    );
  });

  it('decodes an invalid packet as silence of its declared duration', () => {
    const decoder = new PacketDecoder(1440);
    const header = { ssrc: 1, sequence: 1, timestamp: 7, payloadOffset: 0, payloadBytes: 3 };
    decoder.decode('OPUS', Uint8Array.of(0x08, 1, 2), header);
    expect(decoder.ticks).toBe(160);
    expect(decoder.narrow().subarray(0, 160)).toEqual(new Int16Array(160));
  });
});

describe('48 kHz clock conversion', () => {
  it('counts ticks exactly across timestamp wraps, in both directions', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 0xffff_ffff }),
        fc.array(fc.integer({ min: -20, max: 200 }), { maxLength: 50 }),
        (first, steps) => {
          const clock = new TickClock();
          clock.start(48_000, first);
          const from = clock.ticksOf(first);
          let frames = 0;
          for (const step of steps) {
            frames += step;
            expect((clock.ticksOf((first + 960 * frames) >>> 0) - from) | 0).toBe(160 * frames);
          }
        },
      ),
    );
  });
});

describe('call with Opus', () => {
  it('forwards packets unchanged between two Opus parties', async () => {
    await using bench = await Bench.open();
    const customer = bench.customer.remote('OPUS', { payloadType: 98 });
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer });
    bench.setPath('bridged');
    const packets = await opusTone();
    await agentSays(bench, 'OPUS', packets);
    await bench.customer.untilReceived(FRAMES);
    expect(bench.customer.received.map(({ payload }) => payload)).toEqual(packets.map((packet) => Buffer.from(packet)));
    expect(new Set(bench.customer.received.map(({ header }) => header.payloadType))).toEqual(new Set([98]));
    const steps = bench.customer.received
      .slice(1)
      .map(({ header }, i) => header.timestamp - bench.customer.received[i]!.header.timestamp);
    expect(new Set(steps.map((step) => step >>> 0))).toEqual(new Set([960]));
    expect(bench.session.quality().agent).toMatchObject({ codec: 'OPUS', packets_lost: 0, jitter_ms: 0 });
  });

  it('accepts the payload type that we offered from a peer that receives another one (RFC 3264 section 6.1)', async () => {
    await using bench = await Bench.open();
    const agent = bench.agent.remote('OPUS', { payloadType: 96 });
    await bench.connect({ agent, customer: bench.customer.remote('OPUS') });
    bench.setPath('bridged');
    const packets = (await opusTone()).slice(0, 5);
    for (const payloadType of [111, 96]) {
      for (const packet of packets) {
        bench.agent.sendRtp(bench.ports.agent, { payloadType }, packet);
        bench.agent.timestamp = (bench.agent.timestamp + 960) >>> 0;
        await bench.settled('agent');
        bench.pace(1);
      }
    }
    await bench.settled('customer');
    expect(bench.counters('agent').refusedPayload).toBe(0);
    expect(bench.customer.received).toHaveLength(10);
  });

  it('transcodes to G.711', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('PCMA') });
    bench.setPath('bridged');
    await agentSays(bench, 'OPUS', await opusTone());
    await bench.customer.untilReceived(FRAMES);
    const received = bench.customer.receivedSamples('PCMA').subarray(15 * FRAME_SAMPLES);
    expect(Math.abs(toneLevelDbov(received, HZ) - FULL)).toBeLessThan(1.5);
  });

  it('transcodes to G.722 at 16 kHz', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('G722') });
    bench.setPath('bridged');
    await agentSays(bench, 'OPUS', await opusTone(WIDEBAND_HZ));
    await bench.customer.untilReceived(FRAMES);
    const received = bench.customer.receivedWideSamples('G722').subarray(30 * FRAME_SAMPLES);
    expect(toneLevelDbov(received, WIDEBAND_HZ, 16_000)).toBeGreaterThan(FULL - 4);
  });

  it('receives a mix at 16 kHz', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('OPUS') });
    const halfAsLoud = [{ party: 'agent', gain: 0.5 }];
    bench.session.setRouting({ receives: { agent: [], customer: halfAsLoud }, watched: [] });
    await agentSays(bench, 'OPUS', await opusTone(WIDEBAND_HZ));
    await bench.customer.untilReceived(FRAMES);
    const received = (await receivedOpus(bench)).subarray(30 * FRAME_SAMPLES);
    // Half as loud, and coded twice at a speech bit rate.
    expect(toneLevelDbov(received, WIDEBAND_HZ, 16_000)).toBeGreaterThan(FULL - 6 - 8);
  });

  it('transcodes from G.711, with its own timestamp clock', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU'), customer: bench.customer.remote('OPUS') });
    bench.setPath('bridged');
    await agentSays(bench, 'PCMU', toneFrames('PCMU', { frequenciesHz: [HZ], durationMs: 1000 }));
    await bench.customer.untilReceived(FRAMES);
    const received = await receivedOpus(bench);
    expect(Math.abs(toneLevelDbov(received.subarray(30 * FRAME_SAMPLES), HZ, 16_000) - FULL)).toBeLessThan(1.5);
    const { received: packets } = bench.customer;
    const steps = packets.slice(1).map(({ header }, i) => (header.timestamp - packets[i]!.header.timestamp) >>> 0);
    expect(new Set(steps)).toEqual(new Set([960]));
  });

  it('recovers a lost packet from the next one', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('PCMU') });
    bench.setPath('bridged');
    const packets = await opusTone();
    await agentSays(bench, 'OPUS', packets.slice(0, 30));
    bench.agent.sequence = (bench.agent.sequence + 1) & 0xffff;
    bench.agent.timestamp = (bench.agent.timestamp + 960) >>> 0;
    bench.pace(1);
    await agentSays(bench, 'OPUS', packets.slice(31));
    await bench.customer.untilReceived(FRAMES);
    const received = bench.customer.receivedSamples('PCMU');
    for (let frame = 15; frame < FRAMES; frame++) {
      const level = levelDbov(received.subarray(frame * FRAME_SAMPLES, (frame + 1) * FRAME_SAMPLES));
      expect(Math.abs(level - FULL), `frame ${frame}`).toBeLessThan(3);
    }
    expect(bench.partyDump('agent').playout).toMatchObject({ samplesConcealed: 0 });
  });

  it('receives a whisper over the other party', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('OPUS') });
    bench.setPath('bridged');
    const samples = tone({ frequenciesHz: [1700], durationMs: 2000 });
    void bench.session.play('customer', { samples, over: true });
    await agentSays(bench, 'OPUS', await opusTone());
    await bench.customer.untilReceived(FRAMES);
    const received = (await receivedOpus(bench)).subarray(40 * FRAME_SAMPLES);
    expect(Math.abs(toneLevelDbov(received, 1700, 16_000) - FULL)).toBeLessThan(1.5);
    expect(Math.abs(toneLevelDbov(received, HZ, 16_000) - (FULL - 12))).toBeLessThan(2);
  });

  it('records at 16 kHz, in sync', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'tandem-opus-'));
    const filePath = join(folder.path, 'call.wav');
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('PCMU') });
    bench.setPath('bridged');
    await bench.session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    await agentSays(bench, 'OPUS', await opusTone(WIDEBAND_HZ));
    await bench.session.stopRecording();
    const { samples, sampleRateHz, durationMs } = await readWav(filePath);
    expect({ sampleRateHz, durationMs }).toEqual({ sampleRateHz: 16_000, durationMs: 1000 });
    expect(toneLevelDbov(samples[0]!.subarray(4800, 15_000), WIDEBAND_HZ, 16_000)).toBeGreaterThan(FULL - 3);
  });

  it('converts key presses between clocks', async () => {
    await using bench = await Bench.open();
    const agent = bench.agent.remote('OPUS', { telephoneEventClockHz: 48_000 });
    await bench.connect({ agent, customer: bench.customer.remote('PCMU') });
    bench.setPath('bridged');
    await agentSays(bench, 'OPUS', (await opusTone()).slice(0, 2));
    bench.agent.press(bench.ports.agent, 5);
    await bench.customer.until(
      () => bench.customer.received.filter(({ header }) => header.payloadType === 101).length === 5,
    );
    const events = bench.customer.received.filter(({ header }) => header.payloadType === 101);
    expect(events.map(({ payload }) => payload.readUInt16BE(2))).toEqual([27, 53, 80, 80, 80]);
    expect(new Set(events.map(({ header }) => header.timestamp)).size).toBe(1);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'dtmf.pressed', digit: '5', durationMs: 10 }));
  });

  it('keeps the order of quick key presses in the clock of the listener', async () => {
    await using bench = await Bench.open();
    const agent = bench.agent.remote('OPUS', { telephoneEventClockHz: 48_000 });
    await bench.connect({ agent, customer: bench.customer.remote('PCMU') });
    bench.setPath('bridged');
    const packets = await opusTone();
    await agentSays(bench, 'OPUS', packets.slice(0, 5));
    for (const [digit, gapFrames] of [
      [1, 3],
      [2, 3],
      [3, 10],
      [4, 0],
    ] as const) {
      bench.agent.press(bench.ports.agent, digit);
      await bench.settled('agent');
      bench.agent.timestamp = (bench.agent.timestamp - 480) >>> 0;
      await agentSays(bench, 'OPUS', packets.slice(0, gapFrames));
    }
    await bench.settled('customer');
    const events = bench.customer.received.filter(({ header }) => header.payloadType === 101);
    const first = events[0]!.header.timestamp;
    const times = new Set(events.map(({ header }) => (header.timestamp - first) | 0));
    expect([...times]).toEqual([0, 480, 960, 2560]);
  });

  it('hears 16 kHz of a party that changes to G.722', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('PCMU'), customer: bench.customer.remote('OPUS') });
    bench.setPath('bridged');
    await agentSays(bench, 'PCMU', toneFrames('PCMU', { frequenciesHz: [HZ], durationMs: 400 }));
    await bench.session.connectParty('agent', bench.agent.remote('G722'));
    const encoder = new PacketEncoder(FRAME_SAMPLES);
    const samples = tone({ frequenciesHz: [WIDEBAND_HZ], durationMs: 1000, sampleRateHz: 16_000 });
    const frames = Array.from({ length: FRAMES }, (_, frame) => {
      const octets = new Uint8Array(FRAME_SAMPLES);
      encoder.encodeWide('G722', samples.subarray(320 * frame, 320 * (frame + 1)), 320, octets, 0);
      return octets;
    });
    await agentSays(bench, 'G722', frames);
    await bench.settled('customer');
    const received = (await receivedOpus(bench)).subarray(-30 * 2 * FRAME_SAMPLES);
    expect(toneLevelDbov(received, WIDEBAND_HZ, 16_000)).toBeGreaterThan(FULL - 6);
  });

  it('survives any packets', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS'), customer: bench.customer.remote('G722') });
    bench.setPath('bridged');
    const packet = fc.record({
      payload: fc.uint8Array({ maxLength: 1500 }),
      payloadType: fc.constantFrom(111, 0, 9),
      skips: fc.integer({ min: -3, max: 70_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(packet, { maxLength: 10 }), async (packets) => {
        for (const { payload, payloadType, skips } of packets) {
          bench.agent.sequence = (bench.agent.sequence + skips) & 0xffff;
          bench.agent.timestamp = (bench.agent.timestamp + 960) >>> 0;
          bench.agent.sendRtp(bench.ports.agent, { payloadType }, payload);
          bench.pace(1);
        }
        await bench.settled('agent');
        expect(bench.session.dump()).toMatchObject({ faults: { count: 0 } });
      }),
    );
  });
});
