/**
 * The catalogue of all error codes that clients can see. Only `http/` converts an error to a response. `retryable`
 * means that the same request may succeed later; our own retry loops use it too.
 */
export const ERROR_CATALOGUE = {
  // Click-to-call placement (platform-api, Errors).
  INVALID_NUMBER: { status: 400, retryable: false },
  INVALID_ENDPOINT: { status: 400, retryable: false },
  SAME_NUMBER: { status: 400, retryable: false },
  INVALID_RING_TIMEOUT: { status: 400, retryable: false },
  INVALID_MAX_DURATION: { status: 400, retryable: false },
  INVALID_RECORD: { status: 400, retryable: false },
  INVALID_TRANSCRIBE: { status: 400, retryable: false },
  INVALID_MACHINE_DETECTION: { status: 400, retryable: false },
  INVALID_ANNOUNCE: { status: 400, retryable: false },
  INVALID_WHISPER: { status: 400, retryable: false },
  INVALID_METADATA: { status: 400, retryable: false },
  INVALID_REFERENCE: { status: 400, retryable: false },
  INVALID_CALLBACK_URL: { status: 400, retryable: false },
  INVALID_CALLBACK_SECRET: { status: 400, retryable: false },
  RECHARGE_REQUIRED: { status: 402, retryable: false },
  CALLER_ID_NOT_OWNED: { status: 403, retryable: false },
  destination_not_allowed: { status: 403, retryable: false },
  DESTINATION_BLOCKED: { status: 403, retryable: false },
  DO_NOT_CALL: { status: 403, retryable: false },
  OUTSIDE_CALLING_HOURS: { status: 403, retryable: false },
  DAILY_SPEND_CAP_REACHED: { status: 403, retryable: false },
  REFERENCE_NOT_OWNED: { status: 404, retryable: false },
  DIALER_NOT_PROVISIONED: { status: 409, retryable: false },
  REFERENCE_ALREADY_USED: { status: 409, retryable: false },
  REFERENCE_CONFLICT: { status: 409, retryable: false },
  C2C_RATE_LIMITED: { status: 429, retryable: true },
  DESTINATION_RATE_LIMITED: { status: 429, retryable: true },
  no_free_channel: { status: 429, retryable: true },
  CARRIER_LINE_DOWN: { status: 503, retryable: true },
  PLACEMENTS_OVERLOADED: { status: 503, retryable: true },
  C2C_NOT_CONFIGURED: { status: 503, retryable: true },
  C2C_CALLBACK_UNREACHABLE: { status: 503, retryable: true },
  C2C_OUTCOME_UNKNOWN: { status: 504, retryable: false },

  // Calls and recordings.
  CALL_NOT_FOUND: { status: 404, retryable: false },
  CALL_NOT_LIVE: { status: 409, retryable: false },
  CALL_IN_USE: { status: 409, retryable: true },
  ERASURE_NOT_FOUND: { status: 404, retryable: false },
  LEG_NOT_FOUND: { status: 404, retryable: false },
  TOO_MANY_LEGS: { status: 409, retryable: false },
  TRANSFER_IN_PROGRESS: { status: 409, retryable: true },
  TRANSFER_NOT_FOUND: { status: 404, retryable: false },
  TRANSFER_NOT_ANSWERED: { status: 409, retryable: true },
  LEG_NOT_LISTENING: { status: 409, retryable: true },
  PLAYBACK_NOT_FOUND: { status: 404, retryable: false },
  INVALID_PLAYBACK_URL: { status: 400, retryable: false },
  PLAYBACK_URL_UNREACHABLE: { status: 422, retryable: true },
  CONTROL_BUSY: { status: 429, retryable: true },
  WEBRTC_NOT_AVAILABLE: { status: 503, retryable: false },
  INVALID_DIGITS: { status: 400, retryable: false },
  RECORDING_NOT_OWNED: { status: 404, retryable: false },
  TRANSCRIPT_NOT_OWNED: { status: 404, retryable: false },
  RECORDING_UNAVAILABLE: { status: 404, retryable: false },
  RECORDING_DELETED: { status: 410, retryable: false },
  RECORDING_ENCODING: { status: 503, retryable: true },
  RECORDING_KEY_MISSING: { status: 503, retryable: false },
  RECORDING_DAMAGED: { status: 500, retryable: false },
  URL_EXPIRED: { status: 403, retryable: false },
  URL_SIGNATURE_INVALID: { status: 403, retryable: false },

  // Trunks and numbers.
  TRUNK_NOT_FOUND: { status: 404, retryable: false },
  TRUNK_HOST_NOT_ALLOWED: { status: 403, retryable: false },
  TRUNK_IN_USE: { status: 409, retryable: false },
  NOT_ON_DO_NOT_CALL: { status: 404, retryable: false },
  NUMBER_NOT_FOUND: { status: 404, retryable: false },
  NUMBER_NOT_AVAILABLE: { status: 409, retryable: false },
  NUMBER_NOT_VERIFIED: { status: 409, retryable: false },
  NUMBER_IN_USE: { status: 409, retryable: false },
  VERIFICATION_NOT_FOUND: { status: 404, retryable: false },

  // Wallet and payments.
  INSUFFICIENT_CREDITS: { status: 402, retryable: false },
  ZERO_BALANCE: { status: 402, retryable: false },
  PAYMENTS_NOT_CONFIGURED: { status: 404, retryable: false },
  WEBHOOK_SIGNATURE_INVALID: { status: 400, retryable: false },

  // Recognition and synthesis.
  STT_CONCURRENCY_LIMIT: { status: 429, retryable: true },
  STT_OVERLOADED: { status: 503, retryable: true },
  TTS_CONCURRENCY_LIMIT: { status: 429, retryable: true },
  TTS_UNAVAILABLE: { status: 503, retryable: true },
  INVALID_SSML: { status: 400, retryable: false },
  VOICE_NOT_FOUND: { status: 404, retryable: false },
  VOICE_NOT_READY: { status: 409, retryable: true },
  VOICE_NOT_EDITABLE: { status: 403, retryable: false },
  VOICE_CONSENT_REQUIRED: { status: 400, retryable: false },
  VOICE_LIMIT_REACHED: { status: 409, retryable: false },
  VOICE_SAMPLE_UNUSABLE: { status: 422, retryable: false },
  STT_UPSTREAM_RATE_LIMIT: { status: 429, retryable: true },
  STT_CLIENT_CANCELLED: { status: 499, retryable: false },
  STT_UPSTREAM_UNAVAILABLE: { status: 503, retryable: true },
  STT_TIMEOUT: { status: 504, retryable: false },
  unsupported_language: { status: 400, retryable: false },
  AUDIO_EMPTY: { status: 422, retryable: false },
  AUDIO_NOT_READABLE: { status: 422, retryable: false },
  AUDIO_STREAM_MISSING: { status: 422, retryable: false },
  AUDIO_TOO_LONG: { status: 422, retryable: false },
  INVALID_AUDIO_URL: { status: 400, retryable: false },
  AUDIO_URL_UNREACHABLE: { status: 422, retryable: true },

  // Language models and chats.
  LLM_NOT_CONFIGURED: { status: 503, retryable: false },
  LLM_UNAVAILABLE: { status: 503, retryable: true },
  LLM_RATE_LIMITED: { status: 429, retryable: true },
  LLM_TIMEOUT: { status: 504, retryable: true },
  LLM_REQUEST_REFUSED: { status: 400, retryable: false },
  CONTEXT_LENGTH_EXCEEDED: { status: 400, retryable: false },
  MODEL_NOT_FOUND: { status: 404, retryable: false },
  CHAT_NOT_FOUND: { status: 404, retryable: false },
  CHAT_BUSY: { status: 409, retryable: true },
  CHAT_CONCURRENCY_LIMIT: { status: 429, retryable: true },
  CHAT_CLIENT_CANCELLED: { status: 499, retryable: false },

  // Memory and documents.
  POLICY_DENY: { status: 403, retryable: false },
  MEMORY_NOT_FOUND: { status: 404, retryable: false },
  MEMORY_NOT_FAILED: { status: 409, retryable: false },
  COLLECTION_NOT_FOUND: { status: 404, retryable: false },
  COLLECTION_NAME_TAKEN: { status: 409, retryable: false },
  COLLECTION_LIMIT_REACHED: { status: 409, retryable: false },
  MEMORY_INFRA_NOT_READY: { status: 503, retryable: true },
  MEMORY_UNREACHABLE: { status: 503, retryable: true },
  DOCUMENT_UNSUPPORTED: { status: 422, retryable: false },
  DOCUMENT_ENCRYPTED: { status: 422, retryable: false },
  DOCUMENT_TOO_LARGE: { status: 422, retryable: false },
  DOCUMENT_NOT_READABLE: { status: 422, retryable: false },
  DOCUMENT_EMPTY: { status: 422, retryable: false },
  DOCUMENT_CONCURRENCY_LIMIT: { status: 429, retryable: true },

  // Judge.
  RUBRIC_NOT_FOUND: { status: 404, retryable: false },
  RUBRIC_NOT_OWNED: { status: 403, retryable: false },
  RUBRIC_NAME_TAKEN: { status: 409, retryable: false },
  RUBRIC_LIMIT_REACHED: { status: 409, retryable: false },
  JUDGE_ANSWER_INVALID: { status: 503, retryable: true },
  EVALUATION_NOT_FOUND: { status: 404, retryable: false },
  JUDGE_BATCH_NOT_FOUND: { status: 404, retryable: false },

  // Users, workspaces and keys.
  QUOTA_EXCEEDED: { status: 409, retryable: false },
  REGISTRATION_CLOSED: { status: 403, retryable: false },
  INVALID_INVITATION: { status: 400, retryable: false },
  INVITATION_NOT_FOUND: { status: 404, retryable: false },
  EMAIL_TAKEN: { status: 409, retryable: false },
  WEAK_PASSWORD: { status: 400, retryable: false },
  WRONG_PASSWORD: { status: 403, retryable: false },
  SESSION_NOT_FOUND: { status: 404, retryable: false },
  LOGIN_THROTTLED: { status: 429, retryable: true },
  USER_NOT_FOUND: { status: 404, retryable: false },
  MEMBER_NOT_FOUND: { status: 404, retryable: false },
  ALREADY_MEMBER: { status: 409, retryable: false },
  LAST_OWNER: { status: 409, retryable: false },
  KEY_NOT_FOUND: { status: 404, retryable: false },
  INVALID_RESET_TOKEN: { status: 400, retryable: false },
  INVALID_UNSUBSCRIBE_TOKEN: { status: 400, retryable: false },

  // Webhooks.
  INVALID_WEBHOOK_URL: { status: 400, retryable: false },
  WEBHOOK_NOT_FOUND: { status: 404, retryable: false },
  DELIVERY_NOT_FOUND: { status: 404, retryable: false },
  WEBHOOK_DISABLED: { status: 409, retryable: false },
  WEBHOOK_LIMIT_REACHED: { status: 409, retryable: false },
  WEBHOOK_URL_UNREACHABLE: { status: 503, retryable: true },

  // The platform as a whole.
  VALIDATION_FAILED: { status: 400, retryable: false },
  MALFORMED_JSON: { status: 400, retryable: false },
  IDEMPOTENCY_IN_PROGRESS: { status: 409, retryable: true },
  IDEMPOTENCY_NOT_REPLAYABLE: { status: 409, retryable: false },
  IDEMPOTENCY_KEY_REUSED: { status: 422, retryable: false },
  UNAUTHORIZED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  CROSS_ORIGIN_REQUEST: { status: 403, retryable: false },
  WORKSPACE_NOT_FOUND: { status: 404, retryable: false },
  NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false },
  RANGE_NOT_SATISFIABLE: { status: 416, retryable: false },
  RATE_LIMITED: { status: 429, retryable: true },
  CLIENT_CANCELLED: { status: 499, retryable: false },
  INTERNAL: { status: 500, retryable: true },
  NODE_UNREACHABLE: { status: 503, retryable: true },
  NOT_READY: { status: 503, retryable: true },
  SHUTTING_DOWN: { status: 503, retryable: true },
  STORAGE_UNAVAILABLE: { status: 503, retryable: true },
} as const satisfies Record<string, { status: number; retryable: boolean }>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export interface TandemErrorOptions {
  cause?: unknown;
  /** Seconds to wait before a retry. Sent as Retry-After. */
  retryAfterS?: number;
  /** Machine-readable details, such as `[{ path, message }]` for validation. Sent to the client. */
  details?: unknown;
}

/** An error with a stable code. The message is for people and says what to do next; code must not branch on it. */
export class TandemError extends Error {
  override readonly name = 'TandemError';
  readonly code: ErrorCode;
  readonly retryAfterS: number | null;
  readonly details: unknown;

  constructor(code: ErrorCode, message: string, options: TandemErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterS = options.retryAfterS ?? null;
    this.details = options.details;
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }

  get retryable(): boolean {
    return ERROR_CATALOGUE[this.code].retryable;
  }
}

export function shuttingDown(): TandemError {
  return new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.', { retryAfterS: 5 });
}
