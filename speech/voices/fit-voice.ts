import { clamp } from '../../runtime/clamp.ts';
import type { AvailableVoice } from '../speech-synthesis.ts';
import type { VoiceReference } from '../synthesizer.ts';
import { ESPEAK_VARIANTS, espeakMeasures } from './espeak-measures.ts';
import { languageCode } from './language-names.ts';
import type { VoiceMeasures } from './voice-measures.ts';
import { PLAIN_CHARACTER, recipeOf, type VoiceCharacter, type VoiceRecipe } from './voice-recipe.ts';

export interface FitOptions {
  /** ISO 639, or a BCP 47 tag if the dialect matters. */
  language: string;
  available: readonly AvailableVoice[];
}

/**
 * Finds the configurable voice nearest to a speaker, and shapes it to the measured pitch, range, pace and spectrum. Not
 * a clone, which would need more than these. Null if no engine speaks the language.
 */
export function fitVoice(speaker: VoiceMeasures, { language, available }: FitOptions): VoiceRecipe | null {
  const candidates = available
    .filter((voice) => !voice.clones && languageCode(voice.language) === languageCode(language))
    .flatMap(candidatesOf)
    .map((candidate) => ({ ...candidate, distance: distance(speaker, candidate, language.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const nearest = candidates[0];
  if (nearest === undefined) return null;
  const { voice, engineVoice, own } = nearest;
  const character = own === null ? PLAIN_CHARACTER : characterOf(speaker, own);
  return recipeOf(voice, { engineVoice, own, character });
}

/**
 * Builds the recipe of a cloned voice: pitch and timbre come from the reference; the pace is the speaker's if words
 * were counted.
 */
export function cloneRecipe(
  voice: AvailableVoice,
  { measures, language, reference }: { measures: VoiceMeasures; language: string; reference: VoiceReference },
): VoiceRecipe {
  const pace = measures.wordsPerMinute;
  const character = { ...PLAIN_CHARACTER, wordsPerMinute: pace === null ? null : keptPace(pace) };
  return recipeOf(voice, { language, character, reference });
}

interface Candidate {
  voice: AvailableVoice;
  engineVoice: string;
  own: VoiceMeasures | null;
}

/** eSpeak NG's voices have variants, and are measured; other voices cannot be shaped. */
function candidatesOf(voice: AvailableVoice): Candidate[] {
  if (voice.engine !== 'espeak-ng') return [{ voice, engineVoice: voice.name, own: null }];
  const names = [voice.name, ...ESPEAK_VARIANTS.map((variant) => `${voice.name}+${variant}`)];
  return names.map((engineVoice) => ({ voice, engineVoice, own: espeakMeasures(engineVoice) }));
}

/**
 * Difference that remains after shaping. A large pitch shift makes a different person, and formants, which the spectrum
 * shows, do not change: so both count.
 */
function distance(speaker: VoiceMeasures, { voice, own }: Candidate, language: string): number {
  if (own === null) return UNMEASURED;
  const semitones = Math.abs(semitonesBetween(own.pitchHz, speaker.pitchHz));
  const spectrumDb = Math.sqrt(
    own.spectrumDb.reduce((sum, level, band) => sum + (level - (speaker.spectrumDb[band] ?? 0)) ** 2, 0) /
      own.spectrumDb.length,
  );
  return semitones + spectrumDb / DB_PER_SEMITONE + (voice.language === language ? 0 : ANOTHER_DIALECT);
}

/** Decibels of spectrum that weigh as much as a semitone: the equaliser corrects much of them. */
const DB_PER_SEMITONE = 2;
/** In semitones. Decides between voices that are otherwise about equal. */
const ANOTHER_DIALECT = 1;
const UNMEASURED = 1000;

function characterOf(speaker: VoiceMeasures, own: VoiceMeasures): VoiceCharacter {
  const range =
    speaker.pitchRangeSemitones === null || !own.pitchRangeSemitones
      ? 1
      : speaker.pitchRangeSemitones / own.pitchRangeSemitones;
  return {
    wordsPerMinute: paceOf(speaker, own),
    pitchSemitones: round(clamp(semitonesBetween(own.pitchHz, speaker.pitchHz), -MOST_SEMITONES, MOST_SEMITONES), 2),
    pitchRange: round(clamp(range, LEAST_RANGE, MOST_RANGE), 2),
    levelDb: round(clamp(speaker.levelDbov - USUAL_LEVEL_DBOV, -MOST_LEVEL_DB, MOST_LEVEL_DB), 1),
    spectrumDb: speaker.pitchHz === null ? null : speaker.spectrumDb.map((level) => round(level, 1)),
  };
}

/**
 * By words if they were counted, else by syllable nuclei: a speaker with nine tenths of the voice's syllables per
 * second of speech has nine tenths of its pace. Both are counted by the same method, so its errors cancel out.
 */
function paceOf(speaker: VoiceMeasures, own: VoiceMeasures): number | null {
  const pace =
    speaker.wordsPerMinute ??
    (speaker.syllablesPerSecond && own.syllablesPerSecond && own.wordsPerMinute
      ? (own.wordsPerMinute * speaker.syllablesPerSecond) / own.syllablesPerSecond
      : null);
  return pace === null ? null : keptPace(pace);
}

function keptPace(wordsPerMinute: number): number {
  return Math.round(clamp(wordsPerMinute, SLOWEST, FASTEST));
}

function semitonesBetween(fromHz: number | null, toHz: number | null): number {
  return fromHz === null || toHz === null ? 0 : 12 * Math.log2(toHz / fromHz);
}

const MOST_SEMITONES = 12;
const [LEAST_RANGE, MOST_RANGE] = [0.3, 3];
/** Recordings differ more by microphone than by speaker. */
const USUAL_LEVEL_DBOV = -26;
const MOST_LEVEL_DB = 3;
/** Words per minute: limits of the API. */
const [SLOWEST, FASTEST] = [60, 400];

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits)) + 0;
}
