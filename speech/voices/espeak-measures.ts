import table from './espeak-ng-measures.json' with { type: 'json' };
import type { VoiceMeasures } from './voice-measures.ts';

/** Variants of eSpeak NG's voices that sound human, five women and seven men. */
export const ESPEAK_VARIANTS = ['f1', 'f2', 'f3', 'f4', 'f5', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'] as const;

/**
 * Returns what `calibrate-espeak.ts` measured of an eSpeak NG voice, such as `en-us` or `en-us+f2`. A variant that was
 * not measured in the language is estimated from its effect in American English. Null for unknown voices.
 */
export function espeakMeasures(engineVoice: string): VoiceMeasures | null {
  const measured = MEASURES.get(engineVoice);
  if (measured !== undefined) return measured;
  const [base, variant] = engineVoice.split('+');
  const [plain, from, to] = [base!, REFERENCE, `${REFERENCE}+${variant}`].map((name) => MEASURES.get(name));
  return plain === undefined || from === undefined || to === undefined ? null : varied(plain, { from, to });
}

const MEASURES: ReadonlyMap<string, VoiceMeasures> = new Map(Object.entries(table));

/** The voice with which all variants were measured. */
export const REFERENCE = 'en-us';

function varied(plain: VoiceMeasures, { from, to }: { from: VoiceMeasures; to: VoiceMeasures }): VoiceMeasures {
  const times = (key: 'wordsPerMinute' | 'syllablesPerSecond' | 'pitchHz' | 'pitchRangeSemitones') => {
    const [value, before, after] = [plain[key], from[key], to[key]];
    return value === null || !before || after === null ? null : (value * after) / before;
  };
  return {
    wordsPerMinute: times('wordsPerMinute'),
    syllablesPerSecond: times('syllablesPerSecond'),
    pitchHz: times('pitchHz'),
    pitchRangeSemitones: times('pitchRangeSemitones'),
    levelDbov: plain.levelDbov + to.levelDbov - from.levelDbov,
    spectrumDb: plain.spectrumDb.map((level, band) => level + to.spectrumDb[band]! - from.spectrumDb[band]!),
  };
}
