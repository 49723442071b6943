/**
 * Messages between voice detection (`media/`), recognition (`speech/`) and sessions (`actors/`). An utterance is the
 * speech of one party between two pauses. Audio is 16 kHz mono, 16 bit. It goes from a listening worker to the speech
 * thread over its own MessagePort and never through the main thread. Times are milliseconds from the first sample of
 * the stream.
 */

/** Format of incoming audio: G.711 (ITU-T G.711) or 16-bit little-endian PCM, with interleaved channels. */
export interface AudioFormat {
  encoding: 'linear16' | 'mulaw' | 'alaw';
  sampleRateHz: number;
  channels: 1 | 2;
}

export const RECOGNITION_RATE_HZ = 16_000;

/** Seconds as in the API, rounded to the millisecond. */
export function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}

/** Decibels as in the API, rounded to a tenth. Null stays null. */
export function decibels(db: number | null): number | null {
  return db === null ? null : Math.round(db * 10) / 10;
}

/** Joins texts in speaking order. Chinese and Japanese have no space between sentences. */
export function joinedTexts(texts: readonly string[]): string {
  const written = texts.filter((text) => text !== '');
  return written.map((text, index) => `${index === 0 ? '' : spaceBetween(written[index - 1]!, text)}${text}`).join('');
}

function spaceBetween(before: string, after: string): string {
  return IS_UNSPACED.test([...before.slice(-2)].at(-1)!) && IS_UNSPACED.test(after) ? '' : ' ';
}

/** Starts with a character of Chinese or Japanese, or with their punctuation (CJK Symbols, Fullwidth Forms). */
const IS_UNSPACED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\u3001-\u303f\uff01-\uff65]/u;

/** A longer live utterance is split, so no longer pause can end one. */
export const LONGEST_LIVE_UTTERANCE_MS = 30_000;

/** Why an utterance has no usable text. As a `processing_mode`, never billed. */
export type UnusableReason =
  | 'speech_end_no_result'
  | 'speech_end_too_short'
  | 'hallucination_rejected'
  | 'low_snr_dropped';

export interface UtteranceSummary {
  /** 0, or the channel of a stereo file. */
  channel: number;
  /** Start of the first sample, up to 0.3 s before the first word, because onsets are quiet. */
  startMs: number;
  /** End of speech, without the pause after it. */
  endMs: number;
  /** Duration of speech according to the voice detector. */
  speechMs: number;
  /** Speech level over the background around it; null if too short to measure. */
  snrDb: number | null;
}

/**
 * Messages of a listener, in order. Utterances of one channel do not overlap; those of two channels may. `pauseMs` is
 * the time between the end of speech and its detection.
 */
export type UtteranceMessage =
  | { type: 'utterance.begin'; utteranceId: number; channel: number; startMs: number }
  | { type: 'utterance.audio'; utteranceId: number; samples: Int16Array<ArrayBuffer> }
  /** A pause that probably ends the utterance. If speech continues, audio from the pause on follows. */
  | { type: 'utterance.pause'; utteranceId: number }
  | { type: 'utterance.end'; utteranceId: number; summary: UtteranceSummary; pauseMs: number }
  /** Discard the utterance and its hypotheses. */
  | {
      type: 'utterance.discard';
      utteranceId: number;
      summary: UtteranceSummary;
      reason: 'speech_end_too_short' | 'low_snr_dropped';
      pauseMs: number;
    }
  /** The last message. */
  | { type: 'stream.end' };

/**
 * Backpressure on the same port: this number of samples has reached a recogniser or was discarded. A file waits for it.
 */
export interface SamplesTaken {
  type: 'samples.taken';
  samples: number;
}

export type ListeningEvent =
  | { type: 'speech.started'; utteranceId: number; atMs: number }
  /** The listener failed or its worker died. The last event. */
  | { type: 'listening.lost'; detail: string };

export interface RecognisedWord {
  /** As written, without spaces. */
  word: string;
  /** In stream time. */
  startMs: number;
  endMs: number;
  /** Posterior probability, 0 to 1; null if the engine does not report it. */
  confidence: number | null;
  /** Speaker label, such as `speaker_1`; null without diarisation. */
  speaker: string | null;
  /** The recognised word that a keyword replaced; null otherwise. */
  original: string | null;
}

export interface Recognition {
  text: string;
  words: RecognisedWord[];
  /** ISO 639-1. */
  language: string;
  /** 0 to 1 if the engine detected the language; null if it was given or is the only one. */
  languageProbability: number | null;
  /** Mean of the words; null if the engine does not report it. */
  confidence: number | null;
  /** Engine and model, such as `pocketsphinx/en-us`. */
  model: string;
}

/** Events of the recognition of one stream. Each utterance has one outcome; outcomes are in the order of utterances. */
export type RecognitionEvent =
  | {
      type: 'utterance.hypothesis';
      utteranceId: number;
      channel: number;
      text: string;
      words: RecognisedWord[];
      lagMs: number;
    }
  | {
      type: 'utterance.recognised';
      utteranceId: number;
      summary: UtteranceSummary;
      recognition: Recognition;
      /** Whether speakers were to be labelled when it began. */
      isDiarized: boolean;
      /** Wall time from the end of speech to this event, including the pause that showed the end. */
      lagMs: number;
    }
  | {
      type: 'utterance.unusable';
      utteranceId: number;
      summary: UtteranceSummary;
      reason: UnusableReason;
      /** The recognised text before the rejection; null without text. */
      rejectedText: string | null;
      lagMs: number;
    }
  /** Duration of audio in the queue, posted on change. While `isShedding`, no hypotheses are sent. */
  | { type: 'recognition.lagging'; lagMs: number; isShedding: boolean }
  /**
   * An upstream server refused an utterance, which is reported as unusable. Later ones may succeed. The code is in the
   * catalogue.
   */
  | { type: 'recognition.impaired'; code: string; message: string }
  | { type: 'recognition.overloaded'; lagMs: number }
  /** No engine is able to, or the upstream refuses. The code is in the catalogue. The last event. */
  | { type: 'recognition.failed'; code: string; message: string; retryAfterS: number | null }
  /** Everything before `stream.end` was reported. The last event. */
  | { type: 'recognition.ended' };
