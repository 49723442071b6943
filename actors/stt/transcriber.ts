import type { WordOnWire } from '../../machines/stt-messages.ts';

/** Transcribes files for `http/`. Implemented in `transcriber.actor.ts`; HTTP tests use a fake. */
export interface Transcriber {
  /**
   * Takes one of the user's slots, before the upload.
   * @throws TandemError `STT_CONCURRENCY_LIMIT`, `SHUTTING_DOWN`
   */
  begin(request: BeginTranscription): Promise<PendingTranscription>;
  languages(): readonly PublicLanguage[];
  /** Names of all usable recognition models, as in transcripts. */
  models(): Promise<readonly string[]>;
}

export interface BeginTranscription {
  userId: number;
  /** Id in webhooks and the usage log. */
  requestId: string;
  /** Abort with a `TandemError` to cancel; nothing is charged. */
  signal: AbortSignal;
}

export interface PendingTranscription {
  /** Path of the upload; its folder is removed at the end. */
  readonly uploadPath: string;
  /** Aborts if the transcription is cancelled or times out. The reason says which. */
  readonly signal: AbortSignal;
  /**
   * Downloads the file from a public https address, or one in the operator's `CALLBACK_ALLOW_CIDRS`.
   * @throws TandemError `INVALID_AUDIO_URL`, `AUDIO_URL_UNREACHABLE`; the reason of `signal`
   */
  download(url: string, options: { maxBytes: number }): Promise<{ fileName: string | null; mediaType: string | null }>;
  /**
   * @throws TandemError `ZERO_BALANCE`, `INSUFFICIENT_CREDITS`, the `AUDIO_` codes, `unsupported_language`,
   * `STT_UPSTREAM_RATE_LIMIT`, `STT_UPSTREAM_UNAVAILABLE`, `STT_TIMEOUT`, `STT_CLIENT_CANCELLED`, `SHUTTING_DOWN`
   */
  transcribe(request: TranscribeRequest): Promise<Transcribed>;
  /** Releases the slot and removes the files. Always call it. Idempotent. */
  end(): Promise<void>;
}

/** Already parsed: defaults are filled in, values are within bounds. */
export interface TranscribeRequest extends TranscriptOptions {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  plan: string;
  fileName: string | null;
  mediaType: string | null;
  /** Null: any language. */
  languages: readonly string[] | null;
  diarize: boolean;
  minSpeakers: number | null;
  maxSpeakers: number | null;
  /** Topic of the conversation; null without refinement. */
  context: string | null;
  keywords: readonly { term: string; weight: number }[];
  scriptCorrection: boolean;
  minSplitMs: number;
}

export interface TranscriptOptions {
  includeWords: boolean;
  includeConfidence: boolean;
}

export interface Transcribed {
  transcript: PublicTranscript;
  /** Null if nothing was charged. */
  charge: { entryId: string; chargedNano: bigint; balanceAfterNano: bigint } | null;
}

/** Response body without `success` and `request_id`. */
export interface PublicTranscript {
  text: string;
  language: string | null;
  language_source: 'requested' | 'detected' | 'long_audio_chunked';
  language_probability: number | null;
  /** Seconds. */
  duration: number;
  snr_db: number | null;
  warning_codes: WarningCode[];
  words: WordOnWire[];
  segments: PublicSegment[];
  speakers: string[];
  llm_applied: boolean;
  llm_reason: string | null;
  model: string;
  processing_time_ms: number;
  cost_usd: number;
}

export interface PublicSegment {
  id: number;
  chunk_idx: number;
  start: number;
  end: number;
  text: string;
  speaker?: string;
  language: string;
}

export interface PublicLanguage {
  /** ISO 639-1, or `auto`. */
  language_id: string;
  name: string;
  auto: boolean;
  rest: boolean;
  websocket: boolean;
}

export const WARNING_CODES = [
  /** Noise covered all speech: no text, no charge. */
  'low_snr_dropped',
  /** Noise covered the speech in parts of the file. */
  'low_snr_partial',
  'no_speech_detected',
  /** Text that engines hallucinated was dropped. */
  'hallucination_rejected',
  /** The file is truncated or damaged. */
  'audio_incomplete',
  /** The model cannot boost `keywords`: they only replace words that sound alike. */
  'keywords_not_boosted',
  /** The free plan has no refinement: `context` was ignored. */
  'llm_refinement_not_in_plan',
] as const;

export type WarningCode = (typeof WARNING_CODES)[number];
