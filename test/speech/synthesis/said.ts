import type { SpeakRequest, SpokenPart } from '../../../speech/speech-synthesis.ts';
import type { ScriptClause } from '../../../speech/text/script.ts';
import { NEUTRAL_PROSODY } from '../../../speech/text/script.ts';
import { PLAIN_CHARACTER, USUAL_STYLE, type VoiceRecipe } from '../../../speech/voices/voice-recipe.ts';

export const RECIPE: VoiceRecipe = {
  engine: 'espeak-ng',
  model: 'm',
  engineVoice: 'v',
  language: 'en-us',
  own: null,
  character: PLAIN_CHARACTER,
  reference: null,
};

/** A request whose clauses are separated by bars, without effects. */
export function request(text: string, more: Partial<SpeakRequest> = {}): SpeakRequest {
  return {
    script: { clauses: text.split('|').map(clause), characters: text.length },
    recipe: RECIPE,
    style: { ...USUAL_STYLE, enhance: false },
    format: { encoding: 'LINEAR16', sampleRateHz: 8000 },
    ...more,
  };
}

export function clause(text: string): ScriptClause {
  const words = text
    .trim()
    .split(/\s+/)
    .filter((word) => word !== '');
  return {
    words: words.map((written) => ({ written, spoken: written, phonemes: null })),
    prosody: NEUTRAL_PROSODY,
    pauseAfterMs: 0,
    voice: null,
    marks: [],
  };
}

export function samplesOf(parts: readonly SpokenPart[]): Int16Array {
  const bytes = Buffer.concat(parts.map(({ audio }) => audio));
  return Int16Array.from({ length: bytes.length >> 1 }, (_, index) => bytes.readInt16LE(index * 2));
}
