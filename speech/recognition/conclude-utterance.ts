import type { RecognisedWord, RecognitionEvent, UnusableReason } from '../../machines/utterances.ts';
import { judgeHallucination } from '../hallucination.ts';
import { boostKeywords } from '../keyword-boost.ts';
import type { RecognitionSettings } from '../speech-recognition.ts';
import { type Decoded, millisecondsOf } from './decode-utterance.ts';
import type { SpeakerLabels } from './speaker-labels.ts';
import type { Utterance, UtteranceEnd } from './utterance.ts';

export type Outcome = Extract<RecognitionEvent, { type: 'utterance.recognised' | 'utterance.unusable' }>;

export interface Concluded {
  utterance: Utterance;
  end: UtteranceEnd;
  /** Null if it was discarded. */
  decoded: Exclude<Decoded, { type: 'refused' }> | null;
  /** Settings at the utterance's start. */
  settings: RecognitionSettings;
}

/**
 * Turns an engine's result into events: drops invented text, applies keywords, converts to stream time and labels
 * speakers. Requires the utterances of a stream in order, one at a time, because each is judged against the last.
 */
export class UtteranceConcluder {
  readonly #speakers: SpeakerLabels;
  #lastText: string | null = null;

  constructor(speakers: SpeakerLabels) {
    this.#speakers = speakers;
  }

  async conclude({ utterance, end, decoded, settings }: Concluded): Promise<Outcome> {
    const { summary } = end;
    const unusable = (reason: UnusableReason, rejectedText: string | null = null): Outcome => ({
      type: 'utterance.unusable',
      utteranceId: utterance.utteranceId,
      summary,
      reason,
      rejectedText,
      lagMs: performance.now() - end.atMs,
    });
    if (end.type === 'discarded') return unusable(end.reason);
    if (decoded?.type !== 'recognised' || decoded.recognition.text.trim() === '') {
      return unusable('speech_end_no_result');
    }
    const { text, words, confidence } = decoded.recognition;
    const previousTexts = this.#lastText === null ? [] : [this.#lastText];
    if (judgeHallucination({ text, confidence, summary, previousTexts }).rejected) {
      return unusable('hallucination_rejected', text);
    }
    this.#lastText = text;
    const boosted = boostKeywords({ text, words }, settings.keywords);
    const placed = inStreamTime(boosted.words, utterance);
    return {
      type: 'utterance.recognised',
      utteranceId: utterance.utteranceId,
      summary,
      recognition: {
        ...decoded.recognition,
        text: boosted.text,
        words: await this.#speakers.label(utterance, placed, settings.diarization),
      },
      isDiarized: settings.diarization !== null,
      lagMs: performance.now() - end.atMs,
    };
  }
}

/** Remote engines may return invalid times: makes words ordered and within the utterance. */
export function inStreamTime(words: readonly RecognisedWord[], { startMs, length }: Utterance): RecognisedWord[] {
  const lastMs = startMs + millisecondsOf(length);
  let reachedMs = startMs;
  const within = (ms: number) => Math.min(Math.max(reachedMs, startMs + ms), lastMs);
  return words.map((word) => {
    reachedMs = within(word.startMs);
    return { ...word, startMs: reachedMs, endMs: within(word.endMs) };
  });
}
