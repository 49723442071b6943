import type { G711Codec } from '../codecs/g711.ts';
import { framesOf, TELEPHONY_SAMPLE_RATE_HZ } from './tones.ts';

/** Hold music: four bars of broken chords, generated here, so that no licence fees apply. */

const NOTE_MS = 400;
const NOTES_PER_BAR = 8;
const LEVEL = 32_767 * 10 ** (-20 / 20);
/** A note decays under the next ones, to half its level in this time. */
const HALF_LIFE_MS = 350;
const NOTE_RINGS_MS = 4 * NOTE_MS;
const OVERTONE = 0.3;

/** MIDI numbers: C major, A minor, F major, G major, each up and down. */
const CHORDS = [
  [60, 64, 67, 72],
  [57, 60, 64, 69],
  [53, 57, 60, 65],
  [55, 59, 62, 67],
] as const;
const ORDER = [0, 1, 2, 3, 2, 1, 2, 1] as const;

/**
 * Four bars (12.8 s) as G.711 frames of 160 octets that loop seamlessly. Computed once per codec and shared: treat as
 * read-only.
 */
export function holdMusicFrames(codec: G711Codec): readonly Uint8Array[] {
  const cached = framesByCodec.get(codec);
  if (cached !== undefined) return cached;
  samples ??= holdMusic();
  const frames = framesOf(codec, samples);
  framesByCodec.set(codec, frames);
  return frames;
}

let samples: Int16Array | null = null;
const framesByCodec = new Map<G711Codec, readonly Uint8Array[]>();

function holdMusic(): Int16Array {
  const sum = new Float64Array((CHORDS.length * NOTES_PER_BAR * NOTE_MS * TELEPHONY_SAMPLE_RATE_HZ) / 1000);
  let start = 0;
  for (const chord of CHORDS) {
    for (const index of ORDER) {
      addNote(sum, start, chord[index]);
      start += (NOTE_MS * TELEPHONY_SAMPLE_RATE_HZ) / 1000;
    }
  }
  return Int16Array.from(sum, (sample) => Math.round(sample));
}

/** A sine by recurrence, ten times as fast as `Math.sin`, because its thread relays calls meanwhile. */
class Sine {
  readonly #factor: number;
  #last: number;
  #value = 0;

  constructor(frequencyHz: number) {
    const step = (2 * Math.PI * frequencyHz) / TELEPHONY_SAMPLE_RATE_HZ;
    this.#factor = 2 * Math.cos(step);
    this.#last = Math.sin(-step);
  }

  next(): number {
    const value = this.#value;
    this.#value = this.#factor * value - this.#last;
    this.#last = value;
    return value;
  }
}

function addNote(sum: Float64Array, start: number, midi: number): void {
  const frequencyHz = 440 * 2 ** ((midi - 69) / 12);
  const samples = (NOTE_RINGS_MS * TELEPHONY_SAMPLE_RATE_HZ) / 1000;
  const decay = 0.5 ** (1000 / (HALF_LIFE_MS * TELEPHONY_SAMPLE_RATE_HZ));
  const attack = TELEPHONY_SAMPLE_RATE_HZ / 100;
  const note = new Sine(frequencyHz);
  const overtone = new Sine(2 * frequencyHz);
  let level = LEVEL / 2;
  for (let i = 0; i < samples; i++) {
    const fade = Math.min(1, i / attack, (samples - i) / attack);
    const at = (start + i) % sum.length;
    sum[at] = sum[at]! + level * fade * (note.next() + OVERTONE * overtone.next());
    level *= decay;
  }
}
