import { decodeG711, encodeG711 } from '../../../media/codecs/g711.ts';
import { Resampler } from '../../../media/dsp/resample.ts';
import { tone } from '../../../media/dsp/tones.ts';
import type { seededRandom } from '../../../runtime/seeded-random.ts';
import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import type { Synthesizer } from '../../../speech/synthesizer.ts';

/** Speech of answered calls as received on a telephone line: 8 kHz, through G.711. */

const RATE_HZ = 8000;
const NEVER = new AbortController().signal;

export type Random = ReturnType<typeof seededRandom>;

export interface Sentences {
  voices: readonly string[];
  /** Greetings of people, who then wait. */
  human: readonly string[];
  /** Announcements of machines, by sentence. */
  machine: readonly (readonly string[])[];
}

export class Speakers implements AsyncDisposable {
  readonly #espeak: Synthesizer;
  readonly #said = new Map<string, Promise<Int16Array<ArrayBuffer>>>();

  private constructor(espeak: Synthesizer) {
    this.#espeak = espeak;
  }

  static async start(): Promise<Speakers> {
    return new Speakers(await createEspeakEngine({ processes: 1 }).start({ model: 'espeak-ng', signal: NEVER }));
  }

  /** Speech at 8 kHz, without silence around it. */
  say(text: string, voice: string, speed = 1): Promise<Int16Array<ArrayBuffer>> {
    const key = `${voice} ${speed} ${text}`;
    const said = this.#said.get(key) ?? this.#say(text, voice, speed);
    this.#said.set(key, said);
    return said;
  }

  async #say(text: string, voice: string, speed: number): Promise<Int16Array<ArrayBuffer>> {
    const words = text.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null }));
    const resampler = new Resampler(this.#espeak.sampleRateHz, RATE_HZ);
    const clause = { words, voice, speed, pitchSemitones: 0, pitchRange: 1, reference: null };
    const parts: number[] = [];
    for await (const { samples } of this.#espeak.speak(clause, NEVER)) {
      const output = new Float32Array(resampler.outputBound(samples.length));
      const count = resampler.process(Float32Array.from(samples), samples.length, output);
      for (let i = 0; i < count; i++) parts.push(Math.max(-32_768, Math.min(32_767, Math.round(output[i]!))));
    }
    return trimmed(Int16Array.from(parts));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#espeak.close();
  }
}

export function silence(ms: number): Int16Array<ArrayBuffer> {
  return new Int16Array(Math.round((ms * RATE_HZ) / 1000));
}

export function beep(frequencyHz: number, durationMs: number, levelDbfs = -12): Int16Array<ArrayBuffer> {
  return tone({ frequenciesHz: [frequencyHz], durationMs, levelDbfs });
}

export function joined(...parts: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

export function lengthMs(samples: Int16Array): number {
  return (samples.length * 1000) / RATE_HZ;
}

/** Random level and white, brown or hum noise below it, through G.711. */
export function overLine(samples: Int16Array, random: Random): Int16Array<ArrayBuffer> {
  const gain = 10 ** (-(random() * 18) / 20);
  const noise = noiseOf(samples.length, random);
  const snrDb = 12 + random() * 33;
  const noiseGain = Math.sqrt(loudPower(samples) / 10 ** (snrDb / 10) / Math.max(1e-9, powerOf(noise)));
  const mixed = new Int16Array(samples.length);
  for (let i = 0; i < mixed.length; i++) {
    mixed[i] = Math.max(-32_768, Math.min(32_767, Math.round(gain * (samples[i]! + noiseGain * noise[i]!))));
  }
  const codec = random() < 0.5 ? 'PCMU' : 'PCMA';
  const octets = new Uint8Array(mixed.length);
  encodeG711(codec, mixed, octets);
  decodeG711(codec, octets, mixed);
  return mixed;
}

function noiseOf(count: number, random: Random): Float64Array {
  const smoothing = [0, 0.7, 0.95][Math.floor(random() * 3)]!;
  const hum = random() < 0.2 ? 1 : 0;
  const noise = new Float64Array(count);
  let value = 0;
  for (let i = 0; i < count; i++) {
    value = smoothing * value + (2 * random() - 1);
    noise[i] = value + (hum === 0 ? 0 : hum * Math.sin((2 * Math.PI * 100 * i) / RATE_HZ));
  }
  return noise;
}

function powerOf(samples: Float64Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return sum / Math.max(1, samples.length);
}

function loudPower(samples: Int16Array): number {
  let [sum, count] = [0, 0];
  for (const sample of samples) {
    if (Math.abs(sample) <= 100) continue;
    sum += sample * sample;
    count += 1;
  }
  return sum / Math.max(1, count);
}

function trimmed(samples: Int16Array<ArrayBuffer>): Int16Array<ArrayBuffer> {
  const isLoud = (sample: number) => Math.abs(sample) > 200;
  const first = samples.findIndex(isLoud);
  return first < 0 ? samples.slice(0, 0) : samples.slice(first, samples.findLastIndex(isLoud) + 1);
}
