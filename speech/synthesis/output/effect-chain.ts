import { Biquad, highPass, peaking } from '../../../media/dsp/biquad.ts';
import { Compressor } from '../../../media/dsp/compressor.ts';
import { GraphicEqualiser } from '../../../media/dsp/graphic-equaliser.ts';
import { PeakLimiter } from '../../../media/dsp/peak-limiter.ts';
import { PitchShifter } from '../../../media/dsp/pitch-shifter.ts';
import { BAND_CENTRES_HZ } from '../../voices/voice-measures.ts';

export interface SpeechEffectSettings {
  /** Upwards, -24 to 24; 0 if the engine does it. */
  pitchSemitones: number;
  /** Factor on the deviation of the pitch from its centre, 0 to 4; 1 if the engine does it. */
  pitchRange: number;
  /** The voice's usual pitch, the centre for `pitchRange`; without it the median so far. */
  pitchCentreHz?: number | null;
  /** For each of `BAND_CENTRES_HZ`, -12 to 12; bands beyond the sample rate are ignored. */
  equaliserDb: readonly number[] | null;
  /** -Infinity for silence. */
  gainDb: number;
  enhance: boolean;
}

/**
 * Target active level of speech (ITU-T P.56). Telephony's nominal -26 dBov (ITU-T G.191) is quiet beside other media;
 * at this level the peaks of speech, some 18 dB above, still fit.
 */
export const ACTIVE_LEVEL_DBOV = -20;

export interface EffectChain {
  /** Delay of the output, in samples. */
  readonly delay: number;
  /** Processes the first `count` in place. */
  process(samples: Float32Array, count: number): void;
}

/** In this order; empty for settings that change nothing. */
export function createEffectChain(sampleRateHz: number, settings: SpeechEffectSettings): EffectChain {
  const { pitchSemitones, pitchRange, pitchCentreHz = null, equaliserDb, gainDb, enhance } = settings;
  if (isIdentity(settings)) return new Chain([]);
  const stages: (Omit<EffectChain, 'delay'> & { delay?: number })[] = [];
  if (changesPitch(settings)) {
    stages.push(
      new PitchShifter({
        sampleRateHz,
        semitones: pitchSemitones,
        range: pitchRange,
        centreHz: pitchCentreHz,
        usualPeak: USUAL_PEAK,
      }),
    );
  }
  if (changesSpectrum(settings)) {
    const gainsDb = equaliserDb!.map((gain) => Math.max(-MOST_BAND_DB, Math.min(MOST_BAND_DB, gain)));
    stages.push(new GraphicEqualiser({ centresHz: BAND_CENTRES_HZ, gainsDb, sampleRateHz }));
  }
  if (gainDb !== 0) stages.push(gainOf(gainDb));
  if (enhance) stages.push(...enhancement(sampleRateHz));
  stages.push(new PeakLimiter({ sampleRateHz, ceiling: 32_768 * 10 ** (CEILING_DBFS / 20) }));
  return new Chain(stages);
}

export function isIdentity(settings: SpeechEffectSettings): boolean {
  return !changesPitch(settings) && !changesSpectrum(settings) && settings.gainDb === 0 && !settings.enhance;
}

/** Ceiling of the samples, because codecs and resamplers after the effects overshoot. */
const CEILING_DBFS = -1;
const MOST_BAND_DB = 12;
/** Assumed peak of engines, usually exceeded; sounds 30 dB below it are not a voice. */
const USUAL_PEAK = 8000;

/**
 * Effects of `enhance`, besides the level set by the gain:
 * - a Butterworth high-pass at 70 Hz, 12 dB per octave, against rumble and hum below any voice;
 * - 3 dB more around 2.8 kHz (half of that at 2.0 and 4.0 kHz), where consonants differ and telephones are dull;
 * - compression 2:1 above the target level, with 6 dB of knee, 1 ms attack and 80 ms release, and 3 dB of make-up gain:
 *   the loudest parts of people reading aloud come 2 dB nearer to the usual ones. The highest peaks do so by only 0 to
 *   3 dB, because the high-pass shifts the phases of their components.
 */
function enhancement(sampleRateHz: number): Omit<EffectChain, 'delay'>[] {
  return [
    new Biquad(highPass(70, sampleRateHz)),
    new Biquad(peaking({ centreHz: 2800, octaves: 1, gainDb: 3, sampleRateHz })),
    new Compressor({
      sampleRateHz,
      thresholdDbov: ACTIVE_LEVEL_DBOV,
      ratio: 2,
      kneeDb: 6,
      attackMs: 1,
      releaseMs: 80,
      makeUpDb: 3,
    }),
  ];
}

function changesPitch({ pitchSemitones, pitchRange }: SpeechEffectSettings): boolean {
  return pitchSemitones !== 0 || pitchRange !== 1;
}

function changesSpectrum({ equaliserDb }: SpeechEffectSettings): boolean {
  return equaliserDb?.some((gain) => gain !== 0) ?? false;
}

function gainOf(gainDb: number): Omit<EffectChain, 'delay'> {
  const gain = 10 ** (gainDb / 20);
  return {
    process(samples, count) {
      for (let i = 0; i < count; i++) samples[i] = samples[i]! * gain;
    },
  };
}

class Chain implements EffectChain {
  readonly delay: number;
  readonly #stages: readonly Omit<EffectChain, 'delay'>[];

  constructor(stages: readonly (Omit<EffectChain, 'delay'> & { delay?: number })[]) {
    this.delay = stages.reduce((sum, { delay = 0 }) => sum + delay, 0);
    this.#stages = stages;
  }

  process(samples: Float32Array, count: number): void {
    for (const stage of this.#stages) stage.process(samples, count);
  }
}
