import { describe, expect, it } from 'vitest';
import { isOpusPause, OpusEncoder } from '../../media/codecs/opus.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, silenceFrames, toneFrames } from '../../media/dsp/tones.ts';
import { Bench, expectContinuous } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';
import { whiteNoise } from './sounds.ts';

/** Discontinuous transmission. */

const TONE = toneFrames('PCMU', { frequenciesHz: [700], durationMs: 1000 });
const SILENCE = Array.from({ length: 100 }, () => silenceFrames('PCMU')[0]!);
const QUIET_DBOV = -55;

/** The agent sends one second of tone, two of silence and one of tone, in time. */
async function agentPauses(bench: Bench): Promise<void> {
  for (const payload of [...TONE, ...SILENCE, ...TONE]) {
    bench.agent.say(bench.ports.agent, 'PCMU', payload);
    await bench.settled('agent');
    bench.pace(1);
  }
}

const timesMs = ({ received }: RtpPhone, clockHz: number): number[] =>
  received.map(({ header }) => ((header.timestamp - received[0]!.header.timestamp) >>> 0) / (clockHz / 1000));

describe('party with Opus DTX', () => {
  it('receives few packets in a pause, then a marker with the right timestamp', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('OPUS', { usesDtx: true }) });
    bench.setPath('bridged');
    await agentPauses(bench);
    await bench.settled('customer');
    const { received } = bench.customer;
    expect(received.length).toBeGreaterThan(100);
    expect(received.length).toBeLessThan(150);
    const times = timesMs(bench.customer, 48_000);
    const pauses = times.flatMap((time, i) => (i > 0 && time - times[i - 1]! > 20 ? [i] : []));
    expect(pauses.length).toBeGreaterThan(1);
    for (const i of pauses) {
      expect(received[i]!.header.marker).toBe(true);
      // The first packet of a pause is sent, to announce it.
      expect(isOpusPause(received[i - 1]!.payload.length)).toBe(true);
      expect(isOpusPause(received[i - 2]!.payload.length)).toBe(false);
    }
    expect(times.at(-1)! - times[0]!).toBeGreaterThan(3900);
    for (const time of times) expect(time % 20).toBe(0);
    received.forEach(({ header }, i) => {
      expect(header.sequence).toBe((received[0]!.header.sequence + i) & 0xffff);
    });
  });

  it('receives every frame without negotiating DTX', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('OPUS') });
    bench.setPath('bridged');
    await agentPauses(bench);
    await bench.customer.untilReceived(200);
    expect(new Set(timesMs(bench.customer, 48_000).map((time, i) => time - 20 * i))).toEqual(new Set([0]));
  });
});

describe('party with comfort noise', () => {
  it('receives comfort noise in place of quiet transcoded frames', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('G722', { hasComfortNoise: true }) });
    bench.setPath('bridged');
    await agentPauses(bench);
    await bench.settled('customer');
    const { received } = bench.customer;
    const noise = received.filter(({ header }) => header.payloadType === 13);
    // 1.8 s, five per second.
    expect(noise.length).toBeGreaterThanOrEqual(8);
    expect(noise.length).toBeLessThanOrEqual(10);
    for (const { payload } of noise) expect(payload[0]).toBeGreaterThan(62);
    expect(received.length).toBeLessThan(125);
    const after = received.findLastIndex(({ header }) => header.payloadType === 13) + 1;
    expect(received[after]!.header).toMatchObject({ payloadType: 9, marker: true });
    expectContinuous(received.map(({ header }) => header));
  });
});

describe('party that pauses in Opus', () => {
  it('sounds like noise of its own level, without loss or timeout', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS') });
    bench.setPath('bridged');
    for (const packet of await noiseInOpus(150)) {
      if (packet !== null) bench.agent.say(bench.ports.agent, 'OPUS', packet);
      else bench.agent.timestamp = (bench.agent.timestamp + 960) >>> 0;
      await bench.settled('agent');
      bench.pace(1);
    }
    await bench.customer.untilReceived(140);
    const received = bench.customer.receivedSamples('PCMU');
    const levelAt = (frame: number) =>
      levelDbov(received.subarray(frame * FRAME_SAMPLES, (frame + 10) * FRAME_SAMPLES));
    const before = levelAt(10);
    for (let frame = 30; frame < 130; frame += 10) {
      expect(Math.abs(levelAt(frame) - before), `frame ${frame}`).toBeLessThan(5);
    }
    expect(bench.partyDump('agent').playout).toMatchObject({ samplesConcealed: 0 });
    expect(bench.session.quality().agent).toMatchObject({ packets_lost: 0 });
  });

  it('sounds like noise even without announcing its pauses', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('OPUS') });
    bench.setPath('bridged');
    const packets = await noiseInOpus(200);
    for (const packet of packets) {
      if (packet !== null && !isOpusPause(packet.length)) bench.agent.say(bench.ports.agent, 'OPUS', packet);
      else bench.agent.timestamp = (bench.agent.timestamp + 960) >>> 0;
      await bench.settled('agent');
      bench.pace(1);
    }
    await bench.customer.untilReceived(180);
    const received = bench.customer.receivedSamples('PCMU');
    const levelAt = (frame: number) =>
      levelDbov(received.subarray(frame * FRAME_SAMPLES, (frame + 20) * FRAME_SAMPLES));
    for (let frame = 40; frame < 160; frame += 20)
      expect(levelAt(frame), `frame ${frame}`).toBeGreaterThan(QUIET_DBOV - 10);
    const { samplesConcealed } = bench.partyDump('agent').playout as { samplesConcealed: number };
    const missing = packets.filter((packet) => packet === null || isOpusPause(packet.length)).length;
    // At 16 kHz: less than half of the missing samples.
    expect(samplesConcealed).toBeLessThan(missing * FRAME_SAMPLES);
    expect(bench.session.quality().agent).toMatchObject({ packets_lost: 0 });
  });
});

/** Quiet noise in Opus with DTX; null for a packet that is not sent. */
async function noiseInOpus(frames: number): Promise<(Uint8Array | null)[]> {
  const encoder = await OpusEncoder.open();
  encoder.dtx = true;
  const noise = Int16Array.from(whiteNoise(2 * FRAME_SAMPLES * frames, 1000, 7));
  const gain = 10 ** ((QUIET_DBOV - levelDbov(noise)) / 20);
  let isPause = false;
  const packets = Array.from({ length: frames }, (_, frame) => {
    const part = noise.subarray(2 * FRAME_SAMPLES * frame, 2 * FRAME_SAMPLES * (frame + 1));
    const packet = encoder.encode(part.map((sample) => Math.round(sample * gain)));
    const wasPause = isPause;
    isPause = isOpusPause(packet.length);
    return isPause && wasPause ? null : packet;
  });
  encoder.close();
  expect(packets.filter((packet) => packet === null).length).toBeGreaterThan(frames / 3);
  return packets;
}
