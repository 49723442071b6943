import type { AudioFormat } from '../machines/utterances.ts';
import { encodeG711 } from '../media/codecs/g711.ts';
import { asMulaw8k, spokenUtterances, withNoise } from '../test/speech/spoken.ts';
import { asteriskPrompts } from './asterisk-prompts.ts';

/** Human speech with known texts, original and in telephone quality, with and without noise. */

export interface Condition {
  band: 'wide' | 'phone';
  /** Null without noise. */
  snrDb: number | null;
}

export interface Sample {
  name: string;
  text: string;
  format: AudioFormat;
  bytes: Uint8Array<ArrayBuffer>;
  durationMs: number;
  /** Whether each 10 ms contain speech, by the level of the recording without noise. */
  isSpeech: readonly boolean[];
}

export interface Collection {
  name: string;
  /** Recorded in better than telephone quality. */
  isWide: boolean;
  samplesIn(condition: Condition): Sample[];
}

export const FRAME_MS = 10;
/** Silence before and after, in which nothing may be recognised. */
export const PAD_MS = 1_500;

export function collections(mostPrompts: number): Collection[] {
  const spoken = spokenUtterances();
  const prompts = asteriskPrompts(mostPrompts, 'judging');
  const isSentence = (name: string) => name.startsWith('librivox');
  return [
    { name: 'read sentences', isWide: true, recordings: spoken.filter(({ name }) => isSentence(name)) },
    { name: 'commands, digits, cards', isWide: true, recordings: spoken.filter(({ name }) => !isSentence(name)) },
    { name: 'prompts of an exchange', isWide: false, recordings: prompts },
  ].map(({ name, isWide, recordings }) => ({
    name,
    isWide,
    samplesIn: (condition) => recordings.map((recording) => sampleOf(recording, condition)),
  }));
}

export interface Recording {
  name: string;
  text: string;
  samples: Int16Array;
  sampleRateHz: number;
}

export function sampleOf({ name, text, samples, sampleRateHz }: Recording, { band, snrDb }: Condition): Sample {
  const pad = (PAD_MS * sampleRateHz) / 1000;
  const clean = new Int16Array(samples.length + 2 * pad);
  clean.set(samples, pad);
  // The ratio compares noise with speech, not with a recording that is half silence.
  const dilution = 10 * Math.log10(samples.length / clean.length);
  const heard = snrDb === null ? clean : withNoise(clean, snrDb + dilution, seedOf(name));
  const phone = () => (sampleRateHz === 8_000 ? mulawOf(heard) : asMulaw8k(heard));
  return {
    name,
    text,
    ...(band === 'phone'
      ? { bytes: phone(), format: { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 } }
      : { bytes: new Uint8Array(heard.buffer), format: { encoding: 'linear16', sampleRateHz, channels: 1 } }),
    durationMs: (clean.length * 1000) / sampleRateHz,
    isSpeech: speechFrames(clean, sampleRateHz),
  };
}

function mulawOf(samples: Int16Array): Uint8Array<ArrayBuffer> {
  const octets = new Uint8Array(samples.length);
  encodeG711('PCMU', samples, octets);
  return octets;
}

/** Anything quieter, relative to the loudest, is background or the end of a breath. */
const SPEECH_RANGE_DB = 30;

function speechFrames(samples: Int16Array, sampleRateHz: number): boolean[] {
  const length = (sampleRateHz * FRAME_MS) / 1000;
  const levelsDb = Array.from({ length: Math.floor(samples.length / length) }, (_, frame) => {
    let energy = 0;
    for (let index = frame * length; index < (frame + 1) * length; index++) energy += samples[index]! * samples[index]!;
    return 10 * Math.log10(energy / length + 1);
  });
  const loudest = levelsDb.toSorted((a, b) => a - b)[Math.floor(levelsDb.length * 0.98)] ?? 0;
  return levelsDb.map((levelDb) => levelDb > loudest - SPEECH_RANGE_DB);
}

function seedOf(name: string): number {
  let seed = 0;
  for (const character of name) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) >>> 0;
  return seed;
}
