import type { FinalUtterance, RefinedText, SttEnding, SttSettings, TalkContext } from './stt-session-events.ts';
import { decibels, type RecognisedWord, type RecognitionEvent, seconds, type UnusableReason } from './utterances.ts';

/** A message to the client of a live transcription (platform specification, STT WebSocket server messages). */
export type SttMessage =
  | {
      type: 'session_started';
      session_id: string;
      diarize: boolean;
      llm_refinement: boolean;
      /** All warnings in effect, not only new ones; below too. */
      warning_codes: string[];
      config: ConfigOnWire;
    }
  | { type: 'config_updated'; warning_codes: string[]; config: ConfigOnWire }
  | { type: 'speech_started'; sentence_id: string; start: number }
  | TranscriptionMessage
  | {
      type: 'billing_summary';
      total_duration_seconds: number;
      client_estimated_seconds: number;
      amount: number;
      currency: 'USD';
    }
  | { type: 'session_stopped' }
  | { type: 'connection_closed'; code: number; reason: string }
  | ErrorMessage
  /** The only error in a running session whose fields are nested. */
  | { type: 'error'; error: { code: 'INSUFFICIENT_CREDITS'; message: string; details?: unknown } };

/** Events that the session machine emits. */
export type SttSessionEmitted =
  /** To send to the client. */
  | { type: 'message'; message: SttMessage }
  /** The last event. */
  | { type: 'closed'; code: number; reason: string };

export interface ErrorMessage {
  type: 'error';
  code: string;
  message: string;
  details?: unknown;
  retry_after?: number;
}

export interface TranscriptionMessage {
  type: 'transcription';
  text: string;
  is_final: boolean;
  /** The canonical final: the billed one, and the only one that a consumer needs. */
  speech_final: boolean;
  sentence_id: string;
  language: string | null;
  start: number;
  end: number;
  words: WordOnWire[];
  snr_db: number | null;
  processing_mode: 'interim' | 'speech_end' | UnusableReason;
  /** Only of finals with diarisation: the speakers in it. */
  speakers?: string[];
  llm_applied: boolean;
  llm_reason: string | null;
  llm_latency_ms: number | null;
  tentative: boolean;
  tentative_reason: 'hallucination_rejected' | null;
  lag_ms: number;
}

export interface WordOnWire {
  word: string;
  start: number;
  end: number;
  confidence?: number;
  speaker?: string;
  boosted?: true;
  original?: string;
}

export interface ConfigOnWire {
  languages: readonly string[] | null;
  encoding: 'linear' | 'mulaw';
  sample_rate: number;
  utterance_end_ms: number;
  continuous_mode: boolean;
  interim_results_frequency: number | null;
  audio_enhancement: 'off' | 'light' | 'adaptive';
  diarize: boolean;
  min_speakers: number | null;
  max_speakers: number | null;
  remove_fillers: boolean;
}

/** The settings in effect. Fillers are removed from refined text only, and speaker counts apply to diarisation only. */
export function configOnWire(settings: SttSettings, talk: TalkContext | null): ConfigOnWire {
  return {
    languages: settings.languages,
    encoding: settings.encoding,
    sample_rate: settings.sampleRateHz,
    utterance_end_ms: settings.utteranceEndMs,
    continuous_mode: settings.isContinuous,
    interim_results_frequency: settings.interimEveryMs,
    audio_enhancement: settings.enhancement,
    diarize: settings.diarize,
    min_speakers: settings.diarize ? settings.minSpeakers : null,
    max_speakers: settings.diarize ? settings.maxSpeakers : null,
    remove_fillers: settings.removeFillers && talk !== null,
  };
}

export function interimMessage(hypothesis: Extract<RecognitionEvent, { type: 'utterance.hypothesis' }>) {
  const { utteranceId, text, words, lagMs } = hypothesis;
  return {
    type: 'transcription',
    text,
    is_final: false,
    speech_final: false,
    sentence_id: sentenceId(utteranceId),
    language: null,
    start: seconds(words[0]?.startMs ?? 0),
    end: seconds(words.at(-1)?.endMs ?? 0),
    words: words.map(wordOnWire),
    snr_db: null,
    processing_mode: 'interim',
    ...UNREFINED,
    tentative: false,
    tentative_reason: null,
    lag_ms: Math.round(lagMs),
  } as const satisfies TranscriptionMessage;
}

/** `refined` is set on the canonical final of two; null on the first of two and on an only one. */
export function finalMessage(
  final: FinalUtterance,
  { isCanonical, refined }: { isCanonical: boolean; refined: RefinedText | null },
): TranscriptionMessage {
  const { text, words } = refined ?? final;
  const isTentative = final.mode === 'hallucination_rejected' && text !== '';
  return {
    type: 'transcription',
    text,
    is_final: true,
    speech_final: isCanonical,
    sentence_id: sentenceId(final.utteranceId),
    language: final.language,
    start: seconds(final.summary.startMs),
    end: seconds(final.summary.endMs),
    words: words.map(wordOnWire),
    snr_db: decibels(final.summary.snrDb),
    processing_mode: final.mode,
    ...UNREFINED,
    ...(refined && {
      llm_applied: refined.llmApplied,
      llm_reason: refined.llmReason,
      llm_latency_ms: refined.llmLatencyMs === null ? null : Math.round(refined.llmLatencyMs),
    }),
    ...(final.diarized && { speakers: speakersOf(words) }),
    tentative: isTentative,
    tentative_reason: isTentative ? 'hallucination_rejected' : null,
    lag_ms: Math.round(final.lagMs),
  };
}

const OVERLOADED_RETRY_AFTER_S = 5;

/** The error that the client receives for an ending; null if it requested the end or is gone. */
export function endingError(ending: SttEnding): SttMessage | null {
  switch (ending.kind) {
    case 'stopped':
    case 'disconnected':
      return null;
    case 'exhausted': {
      const { message, details } = ending;
      return {
        type: 'error',
        error: { code: 'INSUFFICIENT_CREDITS', message, ...(details !== undefined && { details }) },
      };
    }
    case 'failed': {
      const { code, message, retryAfterS = code === 'STT_OVERLOADED' ? OVERLOADED_RETRY_AFTER_S : null } = ending;
      return { type: 'error', code, message, ...(retryAfterS != null && { retry_after: Math.ceil(retryAfterS) }) };
    }
    default:
      return { type: 'error', ...ENDINGS[ending.kind].error };
  }
}

/** Close codes of RFC 6455 §7.4.1 and its registry: 1008 policy, 1011 internal, 1012 restart, 1013 try again later. */
export function closeOf(ending: SttEnding): { code: number; reason: string } {
  if (ending.kind === 'failed') return { code: ending.code === 'STT_OVERLOADED' ? 1013 : 1011, reason: ending.code };
  return ENDINGS[ending.kind].close;
}

const GOOD_BYE = { close: { code: 1000, reason: 'session stopped' } };

const ENDINGS = {
  stopped: GOOD_BYE,
  disconnected: GOOD_BYE,
  exhausted: { close: { code: 1008, reason: 'INSUFFICIENT_CREDITS' } },
  credentials: {
    close: { code: 1008, reason: 'AUTH_FAILED' },
    error: { code: 'AUTH_FAILED', message: 'The credentials have expired or were revoked. Connect with others.' },
  },
  shutdown: {
    close: { code: 1012, reason: 'SHUTTING_DOWN' },
    error: { code: 'SHUTTING_DOWN', message: 'The server is shutting down. Connect again shortly.' },
  },
  unstarted: {
    close: { code: 1008, reason: 'start_timeout' },
    error: { code: 'start_timeout', message: 'No start came within a minute. Connect again when there is audio.' },
  },
  overloaded: {
    close: { code: 1013, reason: 'overloaded' },
    error: { code: 'overloaded', message: 'Audio comes faster than it can be recognised. Connect again later.' },
  },
} as const;

export const RECOGNITION_LOST: SttEnding = {
  kind: 'failed',
  code: 'STT_UPSTREAM_UNAVAILABLE',
  message: 'Recognition was lost. Nothing more is charged. Connect again.',
};

export const STORAGE_LOST: SttEnding = {
  kind: 'failed',
  code: 'STORAGE_UNAVAILABLE',
  message: 'The database cannot be reached. Connect again shortly.',
};

const UNREFINED = { llm_applied: false, llm_reason: null, llm_latency_ms: null };

export function sentenceId(utteranceId: number): string {
  return `sentence-${utteranceId}`;
}

export function wordOnWire({ word, startMs, endMs, confidence, speaker, original }: RecognisedWord): WordOnWire {
  return {
    word,
    start: seconds(startMs),
    end: seconds(endMs),
    ...(confidence !== null && { confidence: Math.round(confidence * 1000) / 1000 }),
    ...(speaker !== null && { speaker }),
    ...(original !== null && { boosted: true as const, original }),
  };
}

function speakersOf(words: readonly RecognisedWord[]): string[] {
  return [...new Set(words.flatMap(({ speaker }) => speaker ?? []))];
}
