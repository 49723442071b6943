import { ActiveSpeechLevel } from '../../media/dsp/active-speech-level.ts';
import { SILENCE_DBOV } from '../../media/dsp/level.ts';
import { trackPitch } from '../../media/dsp/pitch.ts';
import { longTermSpectrum } from './long-term-spectrum.ts';
import { syllableNuclei } from './syllable-nuclei.ts';
import { BAND_CENTRES_HZ, type VoiceMeasures } from './voice-measures.ts';

/**
 * Measures the voice in a mono recording: floating-point samples between -1 and 1, or 16 bit ones. `words` is the
 * number of spoken words, for the pace. Accepts any input: silence, short recordings and invalid rates give nulls.
 *
 * Level and pace cover the whole recording; the rest covers the first three minutes, after which it no longer changes.
 */
export function measureVoice(
  samples: Float32Array | Int16Array,
  sampleRateHz: number,
  { words }: { words?: number } = {},
): VoiceMeasures {
  const rateHz = Math.round(sampleRateHz);
  if (!(rateHz >= LOWEST_RATE_HZ && rateHz <= HIGHEST_RATE_HZ)) return NOTHING_MEASURED;
  const reader = new SampleReader(samples);
  const levelDbov = activeLevel(reader, rateHz);
  if (levelDbov <= SILENCE_DBOV) return NOTHING_MEASURED;
  const span = reader.spanAbove(levelDbov - QUIETEST_SPEECH_DB, rateHz);
  const analysed = reader.copy(span.from, Math.min(span.to, span.from + MOST_ANALYSED_S * rateHz));
  const { stepMs, hz } = trackPitch(analysed, rateHz);
  const voiced = hz.filter((value) => value > 0).sort();
  const hasPitch = voiced.length * stepMs >= LEAST_VOICED_MS;
  const { nuclei, speechSeconds } = syllableNuclei(analysed, {
    sampleRateHz: rateHz,
    isVoicedAt: (seconds) => hz[Math.round((seconds * 1000) / stepMs)]! > 0,
  });
  const spanSeconds = (span.to - span.from) / rateHz;
  const isPaceKnown = words !== undefined && words > 0 && words <= MOST_WORDS && spanSeconds >= LEAST_SPEECH_S;
  return {
    wordsPerMinute: isPaceKnown ? (words * 60) / spanSeconds : null,
    syllablesPerSecond: nuclei > 0 && speechSeconds >= LEAST_SPEECH_S ? nuclei / speechSeconds : null,
    pitchHz: hasPitch ? quantile(voiced, 0.5) : null,
    pitchRangeSemitones: hasPitch ? 12 * Math.log2(quantile(voiced, 0.9) / quantile(voiced, 0.1)) : null,
    levelDbov,
    spectrumDb: longTermSpectrum(analysed, {
      sampleRateHz: rateHz,
      fromPower: 10 ** ((levelDbov - SPECTRUM_BELOW_DB) / 10),
    }),
  };
}

const [LOWEST_RATE_HZ, HIGHEST_RATE_HZ] = [4000, 192_000];
const MOST_ANALYSED_S = 180;
/** Below the active level, in 20 ms: final consonants are louder, breath is quieter. */
const QUIETEST_SPEECH_DB = 30;
/** P.56's margin: anything further below is a pause. */
const SPECTRUM_BELOW_DB = 15.9;
const LEAST_VOICED_MS = 100;
const LEAST_SPEECH_S = 1;
const MOST_WORDS = 1_000_000;

const NOTHING_MEASURED: VoiceMeasures = {
  wordsPerMinute: null,
  syllablesPerSecond: null,
  pitchHz: null,
  pitchRangeSemitones: null,
  levelDbov: SILENCE_DBOV,
  spectrumDb: BAND_CENTRES_HZ.map(() => 0),
};

function activeLevel(reader: SampleReader, sampleRateHz: number): number {
  const meter = new ActiveSpeechLevel(sampleRateHz);
  const block = new Float32Array(BLOCK_SAMPLES);
  for (let from = 0; from < reader.length; from += BLOCK_SAMPLES) {
    meter.add(block, reader.read(from, block));
  }
  return Math.min(0, meter.levelDbov);
}

const BLOCK_SAMPLES = 8192;

/** Reads either kind of samples as finite numbers between -1 and 1. */
class SampleReader {
  readonly #samples: Float32Array | Int16Array;
  readonly #scale: number;

  constructor(samples: Float32Array | Int16Array) {
    this.#samples = samples;
    this.#scale = samples instanceof Int16Array ? 1 / 32768 : 1;
  }

  get length(): number {
    return this.#samples.length;
  }

  /** Fills the block from an offset; returns the number of samples. */
  read(from: number, block: Float32Array): number {
    const samples = this.#samples;
    const scale = this.#scale;
    const count = Math.min(block.length, samples.length - from);
    for (let i = 0; i < count; i++) {
      const sample = samples[from + i]! * scale;
      block[i] = sample >= -1 && sample <= 1 ? sample : sample > 1 ? 1 : sample < -1 ? -1 : 0;
    }
    return count;
  }

  copy(from: number, to: number): Float32Array {
    const copied = new Float32Array(to - from);
    this.read(from, copied);
    return copied;
  }

  /** From the first to the last 20 ms at or above the level. */
  spanAbove(levelDbov: number, sampleRateHz: number): { from: number; to: number } {
    const block = new Float32Array(Math.ceil(sampleRateHz / 50));
    const leastEnergy = block.length * 10 ** (levelDbov / 10);
    const isLoud = (from: number) => {
      const count = this.read(from, block);
      let energy = 0;
      for (let i = 0; i < count; i++) energy += block[i]! * block[i]!;
      return energy >= leastEnergy;
    };
    let from = 0;
    while (from < this.length && !isLoud(from)) from += block.length;
    let to = this.length;
    while (to > from && !isLoud(Math.max(from, to - block.length))) to -= block.length;
    return { from: Math.min(from, this.length), to: Math.max(from, to) };
  }
}

function quantile(sorted: Float32Array, part: number): number {
  return sorted[Math.round((sorted.length - 1) * part)]!;
}
