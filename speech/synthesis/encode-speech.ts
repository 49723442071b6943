import { encodeG711 } from '../../media/dsp/g711.ts';
import { Resampler } from '../../media/dsp/resample.ts';
import type { SpeechFormat } from '../synthesizer.ts';

/** Brings the samples of one clause to the rate and encoding that are asked for. */
export function encodeSpeech(
  blocks: readonly Int16Array[],
  { sampleRateHz, format }: { sampleRateHz: number; format: SpeechFormat },
): Buffer {
  const samples = resample(blocks, { from: sampleRateHz, to: format.sampleRateHz });
  if (format.encoding === 'LINEAR16') return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  const octets = Buffer.alloc(samples.length);
  encodeG711(format.encoding === 'MULAW' ? 'PCMU' : 'PCMA', samples, octets);
  return octets;
}

function resample(blocks: readonly Int16Array[], { from, to }: { from: number; to: number }): Int16Array<ArrayBuffer> {
  const count = blocks.reduce((sum, block) => sum + block.length, 0);
  const input = new Float32Array(count);
  let filled = 0;
  for (const block of blocks) {
    input.set(block, filled);
    filled += block.length;
  }
  if (from === to) return Int16Array.from(input);
  const resampler = new Resampler(from, to);
  const output = new Float32Array(resampler.outputBound(count) + resampler.outputBound(0));
  let written = resampler.process(input, count, output);
  written += resampler.flush(output.subarray(written));
  const samples = new Int16Array(written);
  for (let index = 0; index < written; index++) {
    samples[index] = Math.max(-32768, Math.min(32767, Math.round(output[index]!)));
  }
  return samples;
}
