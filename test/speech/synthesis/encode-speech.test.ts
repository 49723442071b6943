import { describe, expect, it } from 'vitest';
import { decodeG711 } from '../../../media/dsp/g711.ts';
import { encodeSpeech } from '../../../speech/synthesis/encode-speech.ts';

const SAMPLE_RATE_HZ = 22_050;
const tone = Int16Array.from({ length: SAMPLE_RATE_HZ }, (_, index) =>
  Math.round(10_000 * Math.sin((2 * Math.PI * 440 * index) / SAMPLE_RATE_HZ)),
);
const blocks = [tone.subarray(0, 100), tone.subarray(100, 101), tone.subarray(101)];
const encode = (encoding: 'LINEAR16' | 'MULAW' | 'ALAW', sampleRateHz: number) =>
  encodeSpeech(blocks, { sampleRateHz: SAMPLE_RATE_HZ, format: { encoding, sampleRateHz } });

describe('the audio of a clause', () => {
  it('is untouched at the rate of the engine', () => {
    const audio = encode('LINEAR16', SAMPLE_RATE_HZ);
    expect(new Int16Array(audio.buffer, audio.byteOffset, audio.byteLength / 2)).toEqual(tone);
  });

  it.each([8000, 16_000, 24_000, 48_000])('is the same tone at %i Hz', (sampleRateHz) => {
    const audio = encode('LINEAR16', sampleRateHz);
    expect(audio.byteLength / 2).toBe(sampleRateHz);
    const expected = (index: number) => 10_000 * Math.sin((2 * Math.PI * 440 * index) / sampleRateHz);
    // The first and last milliseconds know silence on one side.
    for (let index = sampleRateHz / 50; index < sampleRateHz - sampleRateHz / 50; index += 1) {
      expect(Math.abs(audio.readInt16LE(2 * index) - expected(index))).toBeLessThan(10);
    }
  });

  it.each([
    ['MULAW', 'PCMU'],
    ['ALAW', 'PCMA'],
  ] as const)('is the same in %s but for the noise of G.711', (encoding, codec) => {
    const linear = encode('LINEAR16', 8000);
    const octets = encode(encoding, 8000);
    const decoded = new Int16Array(octets.byteLength);
    decodeG711(codec, octets, decoded);
    let signal = 0;
    let noise = 0;
    for (let index = 0; index < decoded.length; index += 1) {
      const sample = linear.readInt16LE(2 * index);
      signal += sample ** 2;
      noise += (sample - decoded[index]!) ** 2;
    }
    expect(decoded.length).toBe(linear.byteLength / 2);
    expect(10 * Math.log10(signal / noise)).toBeGreaterThan(35);
  });

  it('is limited where the filter swings over', () => {
    const square = Int16Array.from({ length: 2000 }, (_, index) => (index % 100 < 50 ? 32_767 : -32_768));
    const format = { encoding: 'LINEAR16', sampleRateHz: 48_000 } as const;
    const audio = encodeSpeech([square], { sampleRateHz: SAMPLE_RATE_HZ, format });
    const samples = new Int16Array(audio.buffer, audio.byteOffset, audio.byteLength / 2);
    // A wrap-around would be a jump over nearly the whole range within one sample.
    for (let index = 1; index < samples.length; index += 1) {
      expect(Math.abs(samples[index]! - samples[index - 1]!)).toBeLessThan(60_000);
    }
  });
});
