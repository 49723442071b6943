/**
 * What crosses between whoever hears (`media/`), whoever understands (`speech/`) and whoever tells (`actors/`). An
 * utterance is what one party says between two pauses. Audio is 16 kHz mono, 16 bit; it goes from a listening worker
 * to the speech thread over a MessagePort of its own and never through the main thread. Times are milliseconds of the
 * stream, counted from its first sample.
 */

/** How audio arrives. G.711 (ITU-T G.711) or 16-bit little-endian PCM; channels are interleaved. */
export interface AudioFormat {
  encoding: 'linear16' | 'mulaw' | 'alaw';
  sampleRateHz: number;
  channels: 1 | 2;
}

export const RECOGNITION_RATE_HZ = 16_000;

/** As the API tells times of speech: seconds, to the millisecond. */
export function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}

/** A live utterance that gets this long is cut, so no longer pause can end one. */
export const LONGEST_LIVE_UTTERANCE_MS = 30_000;

/** Why an utterance has no text of its own: a `processing_mode` that is never billed. */
export type UnusableReason =
  | 'speech_end_no_result'
  | 'speech_end_too_short'
  | 'hallucination_rejected'
  | 'low_snr_dropped';

export interface UtteranceSummary {
  /** 0, or the channel of a stereo file. */
  channel: number;
  /** Of its first sample, which is up to 0.3 s before the first word: onsets are quiet. */
  startMs: number;
  /** Where speech ended; the pause that told so is not part of it. */
  endMs: number;
  /** How much of it was speech by the voice detector. */
  speechMs: number;
  /** Of this utterance over the background around it; null when there was too little to tell. */
  snrDb: number | null;
}

/**
 * What a listener posts, in order. Utterances of one channel follow one another; those of two channels interleave. `pauseMs` is how long
 * speech had ended when that was noticed.
 */
export type UtteranceMessage =
  | { type: 'utterance.begin'; utteranceId: number; channel: number; startMs: number }
  | { type: 'utterance.audio'; utteranceId: number; samples: Int16Array<ArrayBuffer> }
  | { type: 'utterance.end'; utteranceId: number; summary: UtteranceSummary; pauseMs: number }
  /** Nothing to recognise after all. What was recognised so far is forgotten. */
  | {
      type: 'utterance.discard';
      utteranceId: number;
      summary: UtteranceSummary;
      reason: 'speech_end_too_short' | 'low_snr_dropped';
      pauseMs: number;
    }
  /** Nothing follows. */
  | { type: 'stream.end' };

/** What goes back on the same port: so many samples have come to a recogniser or were discarded. A file waits for it. */
export interface SamplesTaken {
  type: 'samples.taken';
  samples: number;
}

/** What a listener tells its owner. */
export type ListeningEvent =
  | { type: 'speech.started'; utteranceId: number; atMs: number }
  /** Who listened broke, or its worker died. Nothing follows. */
  | { type: 'listening.lost'; detail: string };

export interface RecognisedWord {
  /** As written, without spaces. */
  word: string;
  /** In the time of the stream. */
  startMs: number;
  endMs: number;
  /** Posterior probability, 0 to 1; null where the engine has none. */
  confidence: number | null;
  /** Label of who said it, such as `speaker_1`; null without diarisation. */
  speaker: string | null;
  /** What was understood before a keyword took its place; null otherwise. */
  original: string | null;
}

export interface Recognition {
  text: string;
  words: RecognisedWord[];
  /** ISO 639-1. */
  language: string;
  /** 0 to 1 when the engine detected the language; null when it was told or has one only. */
  languageProbability: number | null;
  /** Mean of the words'; null where the engine has none. */
  confidence: number | null;
  /** Engine and model, such as `pocketsphinx/en-us`. */
  model: string;
}

/** What the recognition of one stream tells its owner: outcomes in the order of utterances, one for each. */
export type RecognitionEvent =
  /** What is understood so far of an utterance that goes on. */
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
      /** From the end of speech to this event, in time of the wall: with the pause that showed the end. */
      lagMs: number;
    }
  | {
      type: 'utterance.unusable';
      utteranceId: number;
      summary: UtteranceSummary;
      reason: UnusableReason;
      /** What was understood before it was rejected; null when nothing was. */
      rejectedText: string | null;
      lagMs: number;
    }
  /** So much audio waits to be recognised. Hypotheses are left out while `isShedding`. Posted when that changes. */
  | { type: 'recognition.lagging'; lagMs: number; isShedding: boolean }
  /** An upstream server refused an utterance, which is told as unusable; later ones may succeed. The code is one of the catalogue. */
  | { type: 'recognition.impaired'; code: string; message: string }
  /** The engine cannot keep up: nothing follows. */
  | { type: 'recognition.overloaded'; lagMs: number }
  /** No engine can do it, or the upstream refuses: nothing follows. The code is one of the catalogue. */
  | { type: 'recognition.failed'; code: string; message: string; retryAfterS: number | null }
  /** All that was posted before `stream.end` is told. Nothing follows. */
  | { type: 'recognition.ended' };
