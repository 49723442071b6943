import { describe, expect, it } from 'vitest';
import type { Codec } from '../../machines/events.ts';
import { OpusDecoder } from '../../media/codecs/opus.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { Resampler } from '../../media/dsp/resample.ts';
import { FRAME_SAMPLES, tone } from '../../media/dsp/tones.ts';
import { NarrowSound } from '../../media/relay/narrow-sound.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

const FRAMES = 50;
const WIDE_HZ = 5500;
const NARROW_HZ = 700;
const OTHER_HZ = 1300;
const EACH_DBOV = levelDbov(tone({ frequenciesHz: [NARROW_HZ], durationMs: 1000 })) - 6;

const sound = () => ({
  samples: tone({ frequenciesHz: [NARROW_HZ, WIDE_HZ], durationMs: 20 * FRAMES, sampleRateHz: 16_000 }),
  sampleRateHz: 16_000 as const,
});

async function receivedBy(phone: RtpPhone, codec: Codec): Promise<Int16Array> {
  if (codec !== 'OPUS') return phone.receivedWideSamples(codec);
  const decoder = await OpusDecoder.open();
  const frame = new Int16Array(1920);
  const received = phone.received.flatMap(({ payload }) => [...frame.subarray(0, decoder.decode(payload, frame))]);
  decoder.close();
  return Int16Array.from(received);
}

/** Levels of both tones and of the alias of 5.5 kHz at 8 kHz, after the filters settled. */
function levelsIn(received: Int16Array) {
  const middle = received.subarray(3200, 14_400);
  const [narrow, wide, alias] = [NARROW_HZ, WIDE_HZ, 8000 - WIDE_HZ].map((hz) => toneLevelDbov(middle, hz, 16_000));
  return { narrow: narrow!, wide: wide!, alias: alias!, other: toneLevelDbov(middle, OTHER_HZ, 16_000) };
}

/** The customer sends a tone at 16 kHz if the codec allows. */
async function customerSays(bench: Bench, codec: 'PCMU' | 'G722'): Promise<void> {
  const samples = tone({ frequenciesHz: [OTHER_HZ], durationMs: 20 * FRAMES });
  const encoder = new PacketEncoder(FRAME_SAMPLES);
  for (let frame = 0; frame < FRAMES; frame++) {
    const octets = new Uint8Array(FRAME_SAMPLES);
    encoder.encode(codec, samples.subarray(frame * FRAME_SAMPLES), FRAME_SAMPLES, octets, 0);
    bench.customer.say(bench.ports.customer, codec, octets);
    await bench.settled('customer');
    bench.pace(1);
  }
}

describe('16 kHz sound', () => {
  it.each(['G722', 'OPUS'] as const)('keeps content above 4 kHz for a leg with %s', async (codec) => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote(codec) });
    const end = bench.session.play('agent', { ...sound(), over: false });
    bench.pace(FRAMES);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(FRAMES);
    const { narrow, wide } = levelsIn(await receivedBy(bench.agent, codec));
    expect(Math.abs(narrow - EACH_DBOV)).toBeLessThan(1.5);
    expect(wide).toBeGreaterThan(EACH_DBOV - 10);
  });

  it.each(['PCMU', 'PCMA'] as const)('loses content above 4 kHz for a leg with %s', async (codec) => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote(codec) });
    const end = bench.session.play('agent', { ...sound(), over: false });
    bench.pace(FRAMES);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(FRAMES);
    expect(bench.agent.received).toHaveLength(FRAMES);
    const { narrow, alias } = levelsIn(await receivedBy(bench.agent, codec));
    expect(Math.abs(narrow - EACH_DBOV)).toBeLessThan(0.5);
    expect(alias).toBeLessThan(-50);
  });

  it.each([
    ['G722', 'G722'],
    ['PCMU', 'G722'],
    ['PCMU', 'OPUS'],
    ['G722', 'PCMU'],
    ['PCMU', 'PCMU'],
  ] as const)('mixes with a party in %s for a leg with %s', async (customer, agent) => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote(agent), customer: bench.customer.remote(customer) });
    bench.setPath('bridged');
    void bench.session.play('agent', { ...sound(), over: true });
    await customerSays(bench, customer);
    await bench.agent.untilReceived(FRAMES - 4);
    const { narrow, wide, other, alias } = levelsIn(await receivedBy(bench.agent, agent));
    expect(Math.abs(narrow - EACH_DBOV)).toBeLessThan(1.5);
    expect(Math.abs(other - (EACH_DBOV + 6 - 12))).toBeLessThan(1.5);
    if (agent === 'PCMU') expect(alias).toBeLessThan(-50);
    else expect(wide).toBeGreaterThan(EACH_DBOV - 10);
  });

  it('continues at its position when the leg changes its codec', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: bench.agent.remote('G722') });
    const end = bench.session.play('agent', { ...sound(), over: false });
    bench.pace(25);
    await bench.session.connectParty('agent', bench.agent.remote('PCMU'));
    bench.pace(25);
    expect(await end).toBe('played');
    await bench.agent.untilReceived(FRAMES);
    const received = bench.agent.receivedSamples('PCMU', 25);
    expect(Math.abs(toneLevelDbov(received.subarray(160), NARROW_HZ) - EACH_DBOV)).toBeLessThan(0.5);
  });
});

describe('lazy conversion to 8 kHz', () => {
  it('matches a full conversion in any order of access', () => {
    const asked = fc.array(
      fc.record({ from: fc.integer({ min: 0, max: 900 }), ticks: fc.integer({ min: 1, max: 300 }) }),
    );
    const sounds = fc.array(fc.integer({ min: -20_000, max: 20_000 }), { maxLength: 1500 });
    fc.assert(
      fc.property(sounds, asked, (values, parts) => {
        const wide = Int16Array.from(values.slice(0, values.length & ~1));
        const resampler = new Resampler(16_000, 8000);
        const all = new Float32Array(2000);
        const count = resampler.process(Float32Array.from(wide), wide.length, all);
        resampler.flush(all.subarray(count));
        const narrow = new NarrowSound(wide, false);
        for (const { from, ticks } of parts) {
          narrow.prepare(from, from + ticks);
          for (let i = from; i < Math.min(from + ticks, wide.length / 2); i++) {
            expect(Math.abs(narrow.samples[i]! - Math.max(-32_768, Math.min(32_767, all[i]!)))).toBeLessThan(1);
          }
        }
      }),
    );
  });

  it('repeats without a seam', () => {
    // 500 Hz: whole periods in 100 ms.
    const wide = tone({ frequenciesHz: [500], durationMs: 100, sampleRateHz: 16_000 });
    const narrow = new NarrowSound(wide, true);
    narrow.prepare(0, 800);
    expect(levelDbov(narrow.samples) - toneLevelDbov(narrow.samples, 500)).toBeLessThan(0.01);
    narrow.prepare(400, 500);
    narrow.prepare(0, 100);
    expect(levelDbov(narrow.samples) - toneLevelDbov(narrow.samples, 500)).toBeLessThan(0.01);
  });
});
