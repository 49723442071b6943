import type { WordOnWire } from '../../machines/stt-messages.ts';

/**
 * Transcription of files as `http/` sees it. Implemented in `transcriber.actor.ts`; HTTP tests use a fake of this
 * interface.
 */
export interface Transcriber {
  /**
   * Takes one of the user's slots, before anything is uploaded.
   * @throws TandemError `STT_CONCURRENCY_LIMIT`, `SHUTTING_DOWN`
   */
  begin(request: BeginTranscription): Promise<PendingTranscription>;
  languages(): readonly PublicLanguage[];
  /** What transcripts call the models that recognise them, of all engines that can be used. */
  models(): Promise<readonly string[]>;
}

export interface BeginTranscription {
  userId: number;
  /** What webhooks and the usage log call it. */
  requestId: string;
  /** Aborting cancels it, for the `TandemError` that is the reason; nothing is charged. */
  signal: AbortSignal;
}

export interface PendingTranscription {
  /** Where the upload goes; removed with everything else in its folder when this ends. */
  readonly uploadPath: string;
  /** Aborted when it is over before it was transcribed: cancelled, or out of time. The reason says so. */
  readonly signal: AbortSignal;
  /**
   * Fetches the file from a public https address instead, or from one of the operator's `CALLBACK_ALLOW_CIDRS`.
   * @throws TandemError `INVALID_AUDIO_URL`, `AUDIO_URL_UNREACHABLE`; the reason of `signal`
   */
  download(url: string, options: { maxBytes: number }): Promise<{ fileName: string | null; mediaType: string | null }>;
  /**
   * @throws TandemError `ZERO_BALANCE`, `INSUFFICIENT_CREDITS`, the `AUDIO_` codes, `unsupported_language`,
   * `STT_UPSTREAM_RATE_LIMIT`, `STT_UPSTREAM_UNAVAILABLE`, `STT_TIMEOUT`, `STT_CLIENT_CANCELLED`, `SHUTTING_DOWN`
   */
  transcribe(request: TranscribeRequest): Promise<Transcribed>;
  /** Gives the slot back and removes the files. Whoever began calls it, however it went. Idempotent. */
  end(): Promise<void>;
}

/** Parsed: defaults are filled in, everything is within bounds. */
export interface TranscribeRequest extends TranscriptOptions {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  plan: string;
  /** As its sender calls it. */
  fileName: string | null;
  mediaType: string | null;
  /** ISO 639-1 codes of the catalogue; null for whatever is spoken. */
  languages: readonly string[] | null;
  diarize: boolean;
  minSpeakers: number | null;
  maxSpeakers: number | null;
  /** What the talk is about; null without refinement. */
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
  /** Null when nothing was charged. */
  charge: { entryId: string; chargedNano: bigint; balanceAfterNano: bigint } | null;
}

/** As the response has it, but for `success` and `request_id`. */
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
  /** Nothing could be understood over the noise: no text, no charge. */
  'low_snr_dropped',
  /** The same of parts of the file. */
  'low_snr_partial',
  'no_speech_detected',
  /** What engines made up without anybody saying it is left out. */
  'hallucination_rejected',
  /** The file breaks off or is damaged. */
  'audio_incomplete',
  /** The model has no use for `keywords`: they only replace words that sound like them. */
  'keywords_not_boosted',
  /** The free plan has no refinement: `context` was not looked at. */
  'llm_refinement_not_in_plan',
] as const;

export type WarningCode = (typeof WARNING_CODES)[number];
