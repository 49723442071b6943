import type {
  ListeningEvent,
  RecognisedWord,
  RecognitionEvent,
  UnusableReason,
  UtteranceSummary,
} from './utterances.ts';

/** Input, events, emitted events and context of the live transcription machine. */

export interface SttSessionInput {
  sessionId: string;
  /** Whether the plan includes refinement. Without it the client's context is dropped. */
  mayRefine: boolean;
}

/** Transcription settings of the client: defaults filled in, values clamped. */
export interface SttSettings {
  /** ISO 639-1; null: detect the language. */
  languages: readonly string[] | null;
  encoding: 'linear' | 'mulaw';
  sampleRateHz: number;
  /** Silence that ends an utterance. */
  utteranceEndMs: number;
  /** False: the session ends after the first final with text. */
  isContinuous: boolean;
  /** Null: no interim results. */
  interimEveryMs: number | null;
  enhancement: 'off' | 'light' | 'adaptive';
  diarize: boolean;
  minSpeakers: number | null;
  maxSpeakers: number | null;
  removeFillers: boolean;
}

/** The client's description of the conversation. It enables refinement. */
export interface TalkContext {
  general: readonly { key: string; value: string }[];
  text: string | null;
  terms: readonly string[];
}

export interface SttSessionContext extends SttSessionInput {
  settings: SttSettings | null;
  talk: TalkContext | null;
  warnings: readonly string[];
  speakingId: number | null;
  /** The latest interim, kept for an utterance that is rejected. */
  interim: { utteranceId: number; text: string; words: readonly RecognisedWord[] } | null;
  /** Ended utterances that are not reported yet, oldest first. */
  finals: readonly FinalUtterance[];
  /** Refinement of the oldest. */
  refined: RefinedText | null;
  isRecognitionOver: boolean;
  billFailures: number;
  billedMs: number;
  chargedNano: bigint;
  /** Reported text, as far as a webhook can carry it. */
  transcript: string;
  /** Language of the last final with text. */
  language: string | null;
  snrDb: number | null;
  ending: SttEnding | null;
}

/** An ended utterance: recognised, or unusable and not billed. */
export interface FinalUtterance {
  utteranceId: number;
  summary: UtteranceSummary;
  mode: 'speech_end' | UnusableReason;
  text: string;
  words: readonly RecognisedWord[];
  /** Null if nothing was recognised. */
  language: string | null;
  lagMs: number;
  diarized: boolean;
  /** Setting at the end of the utterance. */
  removeFillers: boolean;
}

export type SttSessionEvent =
  | ListeningEvent
  | RecognitionEvent
  | { type: 'start.requested'; settings: SttSettings; talk: TalkContext | null }
  | { type: 'config.requested'; change: Partial<SttSettings> }
  | { type: 'stop.requested' }
  | { type: 'client.alive' }
  | {
      type: 'end.requested';
      ending: Extract<SttEnding, { kind: 'disconnected' | 'credentials' | 'shutdown' | 'overloaded' }>;
    }
  /** `ignoresTerms`: the model does not support the given terms; below too. */
  | { type: 'pipeline.opened'; ignoresTerms: boolean }
  /** Opening failed; the code is in the catalogue. */
  | { type: 'pipeline.refused'; code: string; message: string }
  | { type: 'pipeline.configured'; settings: SttSettings; ignoresTerms: boolean }
  | { type: 'pipeline.config_refused'; code: string; message: string }
  /** All received audio was analysed. `snrDb` is for the whole session; null if unknown. */
  | { type: 'pipeline.analysed'; snrDb: number | null };

export type PipelineCommand =
  | { type: 'configure'; change: Partial<SttSettings> }
  /** Ends the open utterance. Answered by `pipeline.analysed` and, after the last result, `recognition.ended`. */
  | { type: 'finish' };

export interface PipelineInput {
  sessionId: string;
  settings: SttSettings;
  /** Terms that are likely to occur. */
  terms: readonly string[];
}

export interface BillInput {
  sessionId: string;
  utteranceId: number;
  durationMs: number;
  diarized: boolean;
}

export type Bill =
  | { outcome: 'billed'; amountNano: bigint }
  /** The wallet does not cover it; nothing was charged. */
  | { outcome: 'insufficient'; message: string; details: unknown };

export interface RefineInput {
  text: string;
  words: readonly RecognisedWord[];
  language: string;
  talk: TalkContext;
  removeFillers: boolean;
}

export interface RefinedText {
  text: string;
  words: readonly RecognisedWord[];
  llmApplied: boolean;
  llmReason: string | null;
  llmLatencyMs: number | null;
}

export interface ConcludeInput {
  sessionId: string;
  ending: SttEnding;
  transcript: string;
  language: string | null;
  snrDb: number | null;
}

export interface Conclusion {
  /** Received audio, computed from its bytes. */
  receivedMs: number;
}

export type SttEnding =
  /** The client sent stop, or its only requested utterance was reported. */
  | { kind: 'stopped' }
  | { kind: 'disconnected' }
  /** The client never started the session. */
  | { kind: 'unstarted' }
  | { kind: 'credentials' }
  | { kind: 'shutdown' }
  | { kind: 'overloaded' }
  | { kind: 'exhausted'; message: string; details: unknown }
  | { kind: 'failed'; code: string; message: string; retryAfterS?: number | null };
