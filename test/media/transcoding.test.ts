import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Codec } from '../../machines/events.ts';
import { levelDbov, meanPower } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, tone } from '../../media/dsp/tones.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { Playout } from '../../media/relay/playout.ts';
import { emptyRtpHeader } from '../../media/rtp/packet.ts';
import { readWav } from '../../media/wav.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { decodedPacket } from './decoded-packet.ts';
import { Bench, expectContinuous } from './relay-bench.ts';

const HZ = 1000;
const FULL = levelDbov(tone({ frequenciesHz: [HZ], durationMs: 1000 }));
const FRAMES = 50;

function toneIn(codec: Codec, frequencyHz = HZ): Uint8Array[] {
  const samples = tone({ frequenciesHz: [frequencyHz], durationMs: 20 * FRAMES });
  const encoder = new PacketEncoder(FRAME_SAMPLES);
  return Array.from({ length: FRAMES }, (_, frame) => {
    const octets = new Uint8Array(FRAME_SAMPLES);
    const from = frame * FRAME_SAMPLES;
    encoder.encode(codec, samples.subarray(from, from + FRAME_SAMPLES), FRAME_SAMPLES, octets, 0);
    return octets;
  });
}

async function bridged(agent: Codec, customer: Codec): Promise<Bench> {
  const bench = await Bench.open();
  await bench.connect({ agent: bench.agent.remote(agent), customer: bench.customer.remote(customer) });
  bench.setPath('bridged');
  return bench;
}

async function agentSays(bench: Bench, codec: Codec, frames = toneIn(codec)): Promise<void> {
  for (const frame of frames) {
    bench.agent.say(bench.ports.agent, codec, frame);
    await bench.settled('agent');
    bench.pace(1);
  }
}

describe('call with two codecs', () => {
  it.each([
    ['G722', 'PCMU'],
    ['G722', 'PCMA'],
    ['PCMU', 'G722'],
    ['PCMA', 'G722'],
  ] as const)('transcodes %s to %s in 20 ms packets', async (from, to) => {
    await using bench = await bridged(from, to);
    await agentSays(bench, from);
    await bench.customer.untilReceived(FRAMES);
    const headers = bench.customer.received.map(({ header }) => header);
    expectContinuous(headers);
    expect(new Set(headers.map(({ payloadBytes }) => payloadBytes))).toEqual(new Set([FRAME_SAMPLES]));
    expect(new Set(headers.map(({ payloadType }) => payloadType))).toEqual(
      new Set([{ PCMU: 0, PCMA: 8, G722: 9 }[to]]),
    );
    const received = bench.customer.receivedSamples(to).subarray(10 * FRAME_SAMPLES);
    expect(Math.abs(toneLevelDbov(received, HZ) - FULL)).toBeLessThan(0.5);
    // Almost nothing but the tone.
    expect(levelDbov(received) - toneLevelDbov(received, HZ)).toBeLessThan(0.2);
  });

  it('forwards G.722 unchanged between two G.722 parties', async () => {
    await using bench = await bridged('G722', 'G722');
    const frames = toneIn('G722');
    await agentSays(bench, 'G722', frames);
    await bench.customer.untilReceived(FRAMES);
    expect(bench.customer.received.map(({ payload }) => payload)).toEqual(frames.map((frame) => Buffer.from(frame)));
    expect(bench.session.quality().agent).toMatchObject({ codec: 'G722' });
  });

  it('forwards key presses unchanged', async () => {
    await using bench = await bridged('G722', 'PCMU');
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 2));
    bench.agent.press(bench.ports.agent, 5);
    await bench.customer.untilReceived(7);
    expect(bench.customer.received.filter(({ header }) => header.payloadType === 101)).toHaveLength(5);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'dtmf.pressed', leg: 'agent', digit: '5' }));
  });

  it('forwards a key press as one, although audio fills a gap between its packets', async () => {
    await using bench = await bridged('G722', 'PCMU');
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 5));
    const { timestamp } = bench.agent;
    bench.agent.press(bench.ports.agent, 5, 101, { losesEnd: true });
    await bench.settled('agent');
    bench.pace(10);
    bench.agent.timestamp = timestamp;
    bench.agent.press(bench.ports.agent, 5);
    await bench.settled('agent');
    const pressed = () =>
      bench.customer.received.map(({ header }) => header).filter(({ payloadType }) => payloadType === 101);
    await bench.customer.until(() => pressed().length === 7);
    const sequences = pressed().map(({ sequence }) => sequence);
    expect((sequences[2]! - sequences[1]!) & 0xffff, 'no audio was sent in between').toBeGreaterThan(1);
    expect(new Set(pressed().map((header) => header.timestamp)).size).toBe(1);
    expect(pressed().map(({ marker }) => marker)).toEqual([true, ...Array(6).fill(false)]);
  });

  it('reorders packets and drops duplicates', async () => {
    await using bench = await bridged('G722', 'PCMU');
    const frames = toneIn('G722');
    const [sequence, timestamp] = [bench.agent.sequence, bench.agent.timestamp];
    for (let i = 0; i < FRAMES; i++) {
      for (const frame of i % 2 === 0 ? [i + 1, i + 1] : [i - 1]) {
        bench.agent.sequence = (sequence + frame) & 0xffff;
        bench.agent.timestamp = (timestamp + frame * FRAME_SAMPLES) >>> 0;
        bench.agent.say(bench.ports.agent, 'G722', frames[frame]!);
      }
      await bench.settled('agent');
      bench.pace(1);
    }
    await bench.customer.untilReceived(FRAMES);
    expectContinuous(bench.customer.received.map(({ header }) => header));
    const received = bench.customer.receivedSamples('PCMU').subarray(10 * FRAME_SAMPLES);
    expect(Math.abs(toneLevelDbov(received, HZ) - FULL)).toBeLessThan(0.5);
    expect(levelDbov(received) - toneLevelDbov(received, HZ)).toBeLessThan(0.2);
    // Packets overtaken by the first one count as late.
    expect(playoutOf(bench)).toMatchObject({ duplicates: 25, samplesConcealed: 0, samplesLate: FRAME_SAMPLES });
  });

  it('conceals lost packets', async () => {
    await using bench = await bridged('G722', 'PCMU');
    const frames = toneIn('G722');
    await agentSays(bench, 'G722', frames.slice(0, 20));
    bench.agent.sequence = (bench.agent.sequence + 1) & 0xffff;
    bench.agent.timestamp = (bench.agent.timestamp + FRAME_SAMPLES) >>> 0;
    bench.pace(1);
    await agentSays(bench, 'G722', frames.slice(21));
    await bench.customer.untilReceived(FRAMES);
    const received = bench.customer.receivedSamples('PCMU');
    for (let frame = 10; frame < FRAMES; frame++) {
      const level = levelDbov(received.subarray(frame * FRAME_SAMPLES, (frame + 1) * FRAME_SAMPLES));
      expect(Math.abs(level - FULL), `frame ${frame}`).toBeLessThan(1.5);
    }
    // At 16 kHz.
    expect(playoutOf(bench)).toMatchObject({ samplesConcealed: 2 * FRAME_SAMPLES });
  });

  it('stops sending soon after the other party stops', async () => {
    await using bench = await bridged('G722', 'PCMU');
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 10));
    bench.pace(50);
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 10));
    await bench.customer.untilReceived(20);
    expect(bench.customer.received.length).toBeLessThan(10 + 11 + 10);
  });

  it('includes a short pause of the other party in the timestamps', async () => {
    await using bench = await bridged('G722', 'PCMU');
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 10));
    bench.pace(25);
    bench.agent.timestamp = (bench.agent.timestamp + 25 * FRAME_SAMPLES) >>> 0;
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 10));
    await bench.settled('customer');
    const headers = bench.customer.received.map(({ header }) => header);
    expect(headers.length).toBeLessThan(40);
    expect((headers.at(-1)!.timestamp - headers[0]!.timestamp) >>> 0).toBeGreaterThan(42 * FRAME_SAMPLES);
    expect(headers.filter(({ marker }) => marker)).toHaveLength(2);
  });

  it('forwards packets unchanged once the codecs agree', async () => {
    await using bench = await bridged('G722', 'PCMU');
    await agentSays(bench, 'G722', toneIn('G722').slice(0, 10));
    const frames = toneIn('PCMU').slice(0, 10);
    await agentSays(bench, 'PCMU', frames);
    await bench.customer.untilReceived(20);
    const last = bench.customer.received.slice(-10);
    expect(last.map(({ payload }) => payload)).toEqual(frames.map((frame) => Buffer.from(frame)));
    expectContinuous(bench.customer.received.map(({ header }) => header));
    expect(playoutOf(bench)).toBe(null);
  });
});

function playoutOf(bench: Bench): unknown {
  return bench.partyDump('agent').playout;
}

describe('party with G.722', () => {
  it('receives ringback and playback', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('G722') });
    bench.setPath('ringback');
    bench.pace(20);
    await bench.agent.untilReceived(20);
    expect(toneLevelDbov(bench.agent.receivedSamples('G722').subarray(0, 2400), 400)).toBeGreaterThan(-30);
    const samples = tone({ frequenciesHz: [HZ], durationMs: 400 });
    void bench.session.play('agent', { samples, over: false });
    bench.pace(21);
    await bench.agent.untilReceived(40);
    expect(toneLevelDbov(bench.agent.receivedSamples('G722', 22).subarray(0, 2400), HZ)).toBeGreaterThan(FULL - 1.5);
    expect(new Set(bench.agent.received.map(({ header }) => header.payloadType))).toEqual(new Set([9]));
  });

  it.each(['PCMU', 'G722'] as const)('receives a whisper over a party with %s', async (codec) => {
    await using bench = await bridged(codec, 'G722');
    const samples = tone({ frequenciesHz: [1700], durationMs: 2000 });
    void bench.session.play('customer', { samples, over: true });
    await agentSays(bench, codec);
    await bench.customer.untilReceived(FRAMES);
    const received = bench.customer.receivedSamples('G722').subarray(20 * FRAME_SAMPLES);
    expect(Math.abs(toneLevelDbov(received, 1700) - FULL)).toBeLessThan(1);
    expect(Math.abs(toneLevelDbov(received, HZ) - (FULL - 12))).toBeLessThan(1);
  });

  it.each(['agent', 'customer'] as const)('records at 16 kHz as the %s, beside a party at 8 kHz', async (wide) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'tandem-transcoding-'));
    const filePath = join(folder.path, 'call.wav');
    await using bench = await bridged(...((wide === 'agent' ? ['G722', 'PCMU'] : ['PCMU', 'G722']) as [Codec, Codec]));
    await bench.session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    await agentSays(bench, wide === 'agent' ? 'G722' : 'PCMU');
    const summary = await bench.session.stopRecording();
    const { samples, sampleRateHz, durationMs } = await readWav(filePath);
    expect({ sampleRateHz, durationMs }).toEqual({ sampleRateHz: 16_000, durationMs: 1000 });
    expect(summary).toMatchObject({ bytes: 44 + 64_000, durationMs });
    const said = samples[0]!.subarray(3200, 14_000);
    expect(Math.abs(toneLevelDbov(said, HZ, 16_000) - FULL)).toBeLessThan(0.5);
    expect(levelDbov(said) - toneLevelDbov(said, HZ, 16_000)).toBeLessThan(0.2);
    expect(bench.session.dump()).toMatchObject({ faults: { count: 0 } });
  });

  it('continues its 16 kHz recording after a change to G.711', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'tandem-transcoding-'));
    const filePath = join(folder.path, 'call.wav');
    await using bench = await bridged('G722', 'G722');
    await bench.session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    await agentSays(bench, 'G722');
    await agentSays(bench, 'PCMA');
    await bench.session.stopRecording();
    const {
      samples: [said],
      durationMs,
    } = await readWav(filePath);
    expect(durationMs).toBe(2000);
    for (const part of [said!.subarray(3200, 16_000), said!.subarray(19_200)]) {
      expect(Math.abs(toneLevelDbov(part, HZ, 16_000) - FULL)).toBeLessThan(0.5);
    }
  });

  it('sounds in a mix at full level', () => {
    const playout = new Playout({ nowMs: 0 });
    let power = 0;
    toneIn('G722').forEach((payload, frame) => {
      playout.addAudio(decodedPacket(payload, { codec: 'G722', timestamp: frame * 160, sequence: frame }), frame * 20);
      playout.takeFrame(frame * 20);
      if (frame >= 20) power += meanPower(playout.frame) / 30;
    });
    expect(Math.abs(10 * Math.log10(power / 32_768 ** 2) - FULL)).toBeLessThan(0.5);
  });

  it('survives any packets', async () => {
    await using bench = await bridged('G722', 'PCMU');
    const packet = fc.record({
      payload: fc.uint8Array({ maxLength: 1500 }),
      payloadType: fc.constantFrom(9, 0, 8),
      skips: fc.integer({ min: -3, max: 70_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(packet, { maxLength: 10 }), async (packets) => {
        for (const { payload, payloadType, skips } of packets) {
          bench.agent.sequence = (bench.agent.sequence + skips) & 0xffff;
          bench.agent.sendRtp(bench.ports.agent, { payloadType }, payload);
          bench.nowMs += 20;
        }
        await bench.settled('agent');
        expect(bench.session.dump()).toMatchObject({ faults: { count: 0 } });
      }),
    );
  });
});

describe('8 kHz transcoding', () => {
  it('produces as many samples as octets from the first packet on', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 1440 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(sizes, (counts) => {
        const encoder = new PacketEncoder(1440);
        const decoder = new PacketDecoder(1440);
        const dc = new Int16Array(1440).fill(1000);
        const received: number[] = [];
        for (const [sequence, count] of counts.entries()) {
          const octets = new Uint8Array(1440);
          encoder.encode('G722', dc, count, octets, 0);
          expect(octets.subarray(count).every((octet) => octet === 0)).toBe(true);
          decoder.decode('G722', octets, { ...emptyRtpHeader(), sequence, payloadBytes: count });
          received.push(...decoder.narrow().subarray(0, count));
        }
        // All filters have settled by then.
        expect(received.slice(300).filter((sample) => Math.abs(sample - 1000) >= 60)).toEqual([]);
      }),
    );
  });
});
