import { speechSnrDb } from '../../media/dsp/speech-snr.ts';
import type { VoiceMeasures } from './voice-measures.ts';

/**
 * Lists problems of a mono recording as a voice sample, as advice, worst first; none if it is usable. Does not check
 * that there is only one speaker.
 */
export function sampleProblems(
  samples: Float32Array | Int16Array,
  sampleRateHz: number,
  { levelDbov, pitchHz }: Pick<VoiceMeasures, 'levelDbov' | 'pitchHz'>,
): string[] {
  if (pitchHz === null) return ['No speech found. Record a speaker close to the microphone.'];
  const { speechSeconds, snrDb, clippedPart } = listen(samples, { sampleRateHz, levelDbov });
  const problems: string[] = [];
  if (speechSeconds < LEAST_SPEECH_S) {
    const seconds = Math.floor(speechSeconds * 10) / 10;
    problems.push(`There are ${seconds} seconds of speech, and ${LEAST_SPEECH_S} are the least. Record for longer.`);
  }
  if (levelDbov < QUIETEST_DBOV) {
    problems.push('The speech is too quiet. Speak closer to the microphone, or raise the level of the recording.');
  }
  if (snrDb < LEAST_SNR_DB) {
    problems.push(
      `The speech is only ${Math.round(snrDb)} dB above the background, and ${LEAST_SNR_DB} are the least. Record in a quiet room, without music or others who speak.`,
    );
  }
  if (clippedPart > MOST_CLIPPED_PART) {
    problems.push('The recording is overdriven: its peaks are cut off. Lower the level of the recording.');
  }
  return problems;
}

/** Pitch, pace and spectrum settle within a sentence or two. */
const LEAST_SPEECH_S = 3;
const QUIETEST_DBOV = -50;
const LEAST_SNR_DB = 15;
/** Share of the samples: a few at full scale do no harm. */
const MOST_CLIPPED_PART = 0.002;
const FRAME_S = 0.02;
/** Without a better pause, the quietest part of the speech is the background. */
const BACKGROUND_PART = 0.1;
/** P.56's margin. */
const SPEECH_BELOW_LEVEL_DB = 15.9;
const FULL_SCALE_POWER = 32768 * 32768;

function listen(
  samples: Float32Array | Int16Array,
  { sampleRateHz, levelDbov }: { sampleRateHz: number; levelDbov: number },
): { speechSeconds: number; snrDb: number; clippedPart: number } {
  const fullScale = samples instanceof Int16Array ? 32767 : 32767 / 32768;
  const toSixteenBit = samples instanceof Int16Array ? 1 : 32768;
  const frameSamples = Math.max(1, Math.round(sampleRateHz * FRAME_S));
  const powers = new Float64Array(Math.floor(samples.length / frameSamples));
  let clipped = 0;
  for (let frame = 0; frame < powers.length; frame++) {
    let energy = 0;
    for (let i = frame * frameSamples; i < (frame + 1) * frameSamples; i++) {
      const sample = samples[i]!;
      if (Math.abs(sample) >= fullScale) clipped += 1;
      if (Number.isFinite(sample)) energy += (sample * toSixteenBit) ** 2;
    }
    powers[frame] = energy / frameSamples;
  }
  const speechFrom = FULL_SCALE_POWER * 10 ** ((levelDbov - SPEECH_BELOW_LEVEL_DB) / 10);
  const speechFrames = powers.reduce((count, power) => count + (power >= speechFrom ? 1 : 0), 0);
  const background = powers.toSorted()[Math.floor(powers.length * BACKGROUND_PART)] ?? 0;
  return {
    speechSeconds: speechFrames * FRAME_S,
    snrDb: speechSnrDb(FULL_SCALE_POWER * 10 ** (levelDbov / 10), background),
    clippedPart: clipped / Math.max(1, samples.length),
  };
}
