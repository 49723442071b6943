import { Biquad, highPass, peaking } from '../../../media/dsp/biquad.ts';
import { Compressor } from '../../../media/dsp/compressor.ts';
import { GraphicEqualiser } from '../../../media/dsp/graphic-equaliser.ts';
import { PeakLimiter } from '../../../media/dsp/peak-limiter.ts';
import { PitchShifter } from '../../../media/dsp/pitch-shifter.ts';
import { BAND_CENTRES_HZ } from '../../voices/voice-measures.ts';

export interface SpeechEffectSettings {
  /** Upwards, -24 to 24; 0 where the engine does it. */
  pitchSemitones: number;
  /** Factor on how far the pitch goes from its centre, 0 to 4; 1 where the engine does it. */
  pitchRange: number;
  /** The voice's usual pitch, from which `pitchRange` counts; without it the median of what was heard until then. */
  pitchCentreHz?: number | null;
  /** For each of `BAND_CENTRES_HZ`, -12 to 12; bands that the sample rate does not hold are left alone. */
  equaliserDb: readonly number[] | null;
  /** -Infinity for silence. */
  gainDb: number;
  enhance: boolean;
}

/**
 * The active level (ITU-T P.56) to which speech is brought. Telephony's nominal -26 dBov (ITU-T G.191) is quiet beside
 * whatever else is listened to; from here the peaks of speech, some 18 dB above, still fit.
 */
export const ACTIVE_LEVEL_DBOV = -20;

export interface EffectChain {
  /** In samples: by so much the output is late. */
  readonly delay: number;
  /** The first `count` in place. */
  process(samples: Float32Array, count: number): void;
}

/** In this order; nothing at all for settings that change nothing. */
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

/** No sample leaves the effects above it: codecs and resamplers behind them overshoot. */
const CEILING_DBFS = -1;
const MOST_BAND_DB = 12;
/** Engines speak louder than that; sounds 30 dB below are not taken for a voice. */
const USUAL_PEAK = 8000;

/**
 * What `enhance` does besides the level that the gain brings:
 * - a Butterworth high-pass of 70 Hz, 12 dB an octave, against rumble and hum below any voice;
 * - 3 dB more around 2.8 kHz (half of that at 2.0 and 4.0 kHz), where consonants are told apart and telephones are dull;
 * - compression 2:1 of what is louder than the level that speech is brought to, with 6 dB of knee, within 1 ms and back
 *   in 80 ms, and 3 dB of gain that make up for it: the loudest parts of people who read aloud come 2 dB nearer to the
 *   usual ones. The highest peaks do so by 0 to 3 dB only, because the high-pass shifts what adds up to them.
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
