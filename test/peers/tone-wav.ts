import { tone } from '../../media/dsp/tones.ts';
import { wavHeader } from '../../media/wav.ts';

export function toneWav(frequencyHz: number): Buffer {
  const samples = tone({ frequenciesHz: [frequencyHz], durationMs: 20_000 });
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  return Buffer.concat([wavHeader({ channels: 1, sampleRateHz: 8000 }, bytes.length), bytes]);
}
