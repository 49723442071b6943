import type { Synthesizer } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import { measureVoice } from './measure-voice.ts';
import { passageFor } from './passages.ts';
import type { VoiceMeasures } from './voice-measures.ts';

export interface VoiceToMeasure {
  /** `EngineVoice.name`. */
  voice: string;
  /** BCP 47. */
  language: string;
}

/**
 * Synthesises a passage at the voice's own pace and pitch, and measures it.
 * @throws SynthesizerError, the signal's reason
 */
export async function calibrateVoice(
  synthesizer: Synthesizer,
  { voice, language }: VoiceToMeasure,
  signal: AbortSignal,
): Promise<VoiceMeasures> {
  const { text, words } = passageFor(language);
  const spoken = new Int16Array(MOST_SECONDS * synthesizer.sampleRateHz);
  let length = 0;
  const clause = { words: wordsOf(text), voice, speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
  for await (const { samples } of synthesizer.speak(clause, signal)) {
    const room = samples.subarray(0, spoken.length - length);
    spoken.set(room, length);
    length += room.length;
  }
  const isWhole = length < spoken.length;
  return measureVoice(spoken.subarray(0, length), synthesizer.sampleRateHz, isWhole && words !== null ? { words } : {});
}

/** Beyond any voice's time for a passage. */
const MOST_SECONDS = 90;

/** In one clause, so that the pause between sentences is the engine's. */
function wordsOf(text: string): ScriptWord[] {
  return text.split(/\s+/u).map((word) => ({ written: word, spoken: word, phonemes: null }));
}
