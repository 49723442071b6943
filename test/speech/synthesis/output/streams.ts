import { Resampler } from '../../../../media/dsp/resample.ts';
import type { SpeechEncoder } from '../../../../speech/synthesis/output/speech-encoder.ts';
import * as fc from '../../../properties.ts';
import { spokenUtterances } from '../../spoken.ts';

export const SAMPLE_RATES_HZ = [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000];

export function speechAt(sampleRateHz: number, seconds: number): Int16Array<ArrayBuffer> {
  const { samples } = spokenUtterances()[0]!;
  return resampled(samples.subarray(0, seconds * 16_000), 16_000, sampleRateHz);
}

export function resampled(samples: Int16Array, fromHz: number, toHz: number): Int16Array<ArrayBuffer> {
  const resampler = new Resampler(fromHz, toHz);
  const output = new Float32Array(resampler.outputBound(samples.length) + resampler.outputBound(0));
  let written = resampler.process(Float32Array.from(samples), samples.length, output);
  written += resampler.flush(output.subarray(written));
  return Int16Array.from(output.subarray(0, written), (value) => Math.max(-32768, Math.min(32767, Math.round(value))));
}

export function encodeAll(encoder: SpeechEncoder, samples: Int16Array, blockSamples = 480): Buffer {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < samples.length; at += blockSamples) {
    parts.push(encoder.encode(samples.subarray(at, at + blockSamples)));
  }
  parts.push(encoder.finish());
  encoder.close();
  return Buffer.concat(parts);
}

/** Random block sizes, including empty and tiny ones; the rest comes last. */
export const blockSizes: fc.Arbitrary<number[]> = fc.array(
  fc.oneof(fc.constantFrom(0, 1), fc.integer({ min: 2, max: 3000 })),
  { maxLength: 20 },
);

export function cut(samples: Int16Array<ArrayBuffer>, sizes: readonly number[]): Int16Array<ArrayBuffer>[] {
  const blocks: Int16Array<ArrayBuffer>[] = [];
  let at = 0;
  for (const size of sizes) {
    blocks.push(samples.subarray(at, at + size));
    at = Math.min(samples.length, at + size);
  }
  blocks.push(samples.subarray(at));
  return blocks;
}

/** Normalised correlation over the shorter length, independent of level. */
export function correlation(a: Int16Array, b: Int16Array): number {
  let ab = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    ab += a[i]! * b[i]!;
    aa += a[i]! * a[i]!;
    bb += b[i]! * b[i]!;
  }
  return ab / Math.sqrt(aa * bb);
}
