import type {
  ListeningEvent,
  RecognisedWord,
  RecognitionEvent,
  UnusableReason,
  UtteranceSummary,
} from './utterances.ts';

/** What goes into the machine of a live transcription, what it is told, what it says, and what it remembers. */

export interface SttSessionInput {
  sessionId: string;
  /** Whether the plan includes refinement: without it the client's context is dropped. */
  mayRefine: boolean;
}

/** How the client wants to be transcribed: defaults filled in, values clamped. */
export interface SttSettings {
  /** ISO 639-1; null: whatever is spoken. */
  languages: readonly string[] | null;
  encoding: 'linear' | 'mulaw';
  sampleRateHz: number;
  /** Silence after which an utterance is over. */
  utteranceEndMs: number;
  /** False: the session ends after the first final that has text. */
  isContinuous: boolean;
  /** Null: no interims. */
  interimEveryMs: number | null;
  enhancement: 'off' | 'light' | 'adaptive';
  diarize: boolean;
  minSpeakers: number | null;
  maxSpeakers: number | null;
  removeFillers: boolean;
}

/** What the client says the talk is about; opens refinement. */
export interface TalkContext {
  general: readonly { key: string; value: string }[];
  text: string | null;
  terms: readonly string[];
}

export interface SttSessionContext extends SttSessionInput {
  settings: SttSettings | null;
  talk: TalkContext | null;
  /** What the client is warned of when it is started. */
  warnings: readonly string[];
  /** The utterance that is being spoken. */
  speakingId: number | null;
  /** The newest interim: what is left of an utterance that is rejected. */
  interim: { utteranceId: number; text: string; words: readonly RecognisedWord[] } | null;
  /** Utterances that are over and not told so far, the oldest first. */
  finals: readonly FinalUtterance[];
  /** Of the oldest. */
  refined: RefinedText | null;
  isRecognitionOver: boolean;
  billFailures: number;
  billedMs: number;
  chargedNano: bigint;
  /** What was told, as far as a webhook can carry it. */
  transcript: string;
  /** Of the last final with text. */
  language: string | null;
  snrDb: number | null;
  ending: SttEnding | null;
}

/** An utterance that is over: recognised, or unusable and then not billed. */
export interface FinalUtterance {
  utteranceId: number;
  summary: UtteranceSummary;
  mode: 'speech_end' | UnusableReason;
  text: string;
  words: readonly RecognisedWord[];
  /** Null where nothing was recognised. */
  language: string | null;
  lagMs: number;
  /** As the settings were when it ended. */
  diarized: boolean;
  removeFillers: boolean;
}

export type SttSessionEvent =
  | ListeningEvent
  | RecognitionEvent
  | { type: 'start.requested'; settings: SttSettings; talk: TalkContext | null }
  | { type: 'config.requested'; change: Partial<SttSettings> }
  | { type: 'stop.requested' }
  /** The client wants its connection kept. */
  | { type: 'client.alive' }
  | {
      type: 'end.requested';
      ending: Extract<SttEnding, { kind: 'disconnected' | 'credentials' | 'shutdown' | 'overloaded' }>;
    }
  /** `ignoresTerms`: the terms were given to a model that has no use for them. The same below. */
  | { type: 'pipeline.opened'; ignoresTerms: boolean }
  /** It did not open; the code is one of the catalogue. */
  | { type: 'pipeline.refused'; code: string; message: string }
  | { type: 'pipeline.configured'; settings: SttSettings; ignoresTerms: boolean }
  | { type: 'pipeline.config_refused'; code: string; message: string }
  /** All that was sent has been heard. */
  | { type: 'pipeline.heard'; snrDb: number | null };

export type PipelineCommand =
  | { type: 'configure'; change: Partial<SttSettings> }
  /** Ends the open utterance; answered by `pipeline.heard` and, once all is told, `recognition.ended`. */
  | { type: 'finish' };

export interface PipelineInput {
  sessionId: string;
  settings: SttSettings;
  /** Terms that are likely to be said. */
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
  /** The wallet does not cover it: nothing was taken. */
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
  /** Why it was not applied. */
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
  /** Audio that came in, counted in bytes. */
  receivedMs: number;
}

export type SttEnding =
  /** The client said stop, or the one utterance it wanted is told. */
  | { kind: 'stopped' }
  /** Nobody is there to be told anything. */
  | { kind: 'disconnected' }
  /** It never began. */
  | { kind: 'unstarted' }
  | { kind: 'credentials' }
  | { kind: 'shutdown' }
  | { kind: 'overloaded' }
  | { kind: 'exhausted'; message: string; details: unknown }
  | { kind: 'failed'; code: string; message: string; retryAfterS?: number | null };
