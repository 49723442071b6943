import { ERROR_CATALOGUE, type ErrorCode } from '../machines/errors.ts';

/** What the document knows of an operation when it looks for its refusals. */
export interface OperationTraits {
  operationId: string;
  isPublic: boolean;
  /** Takes parameters. */
  hasInput: boolean;
  /** May have a body, whether or not it looks at it. */
  mayHaveBody: boolean;
}

/**
 * Every code an operation can be refused with, its own first. A test sends everything it can think
 * of to every operation and fails on a code that is not here.
 */
export function refusalsOf(traits: OperationTraits): ErrorCode[] {
  const { operationId, isPublic, hasInput, mayHaveBody } = traits;
  const codes: ErrorCode[] = [
    ...(OWN_REFUSALS[operationId] ?? []),
    ...(hasInput || mayHaveBody ? (['VALIDATION_FAILED'] as const) : []),
    ...(mayHaveBody ? (['MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const) : []),
    // Any request may name a workspace, and must not name another one than its key has.
    ...(isPublic ? [] : (['UNAUTHORIZED', 'FORBIDDEN', 'WORKSPACE_NOT_FOUND'] as const)),
    'RATE_LIMITED',
    'INTERNAL',
    'STORAGE_UNAVAILABLE',
  ];
  return [...new Set(codes)];
}

const CALL: ErrorCode[] = ['CALL_NOT_FOUND'];
const RECORDING: ErrorCode[] = [
  'CALL_NOT_FOUND',
  'RECORDING_NOT_OWNED',
  'RECORDING_UNAVAILABLE',
  'DIALER_NOT_PROVISIONED',
];

const SPEECH: ErrorCode[] = [
  'INVALID_SSML',
  'VOICE_NOT_FOUND',
  'VOICE_NOT_READY',
  'TTS_CONCURRENCY_LIMIT',
  'INSUFFICIENT_CREDITS',
  'TTS_UNAVAILABLE',
  'SHUTTING_DOWN',
];

const TRANSCRIPTION: ErrorCode[] = [
  'STT_CONCURRENCY_LIMIT',
  'ZERO_BALANCE',
  'INSUFFICIENT_CREDITS',
  'unsupported_language',
  'AUDIO_EMPTY',
  'AUDIO_NOT_READABLE',
  'AUDIO_STREAM_MISSING',
  'AUDIO_TOO_LONG',
  'STT_UPSTREAM_RATE_LIMIT',
  'STT_CLIENT_CANCELLED',
  'STT_UPSTREAM_UNAVAILABLE',
  'SHUTTING_DOWN',
  'STT_TIMEOUT',
];

const VOICE_SAMPLES: ErrorCode[] = [
  'VOICE_CONSENT_REQUIRED',
  'VOICE_SAMPLE_UNUSABLE',
  'AUDIO_EMPTY',
  'AUDIO_NOT_READABLE',
  'AUDIO_STREAM_MISSING',
  'AUDIO_TOO_LONG',
  'SHUTTING_DOWN',
];

const COMPLETION: ErrorCode[] = [
  'LLM_NOT_CONFIGURED',
  'LLM_UNAVAILABLE',
  'LLM_RATE_LIMITED',
  'LLM_TIMEOUT',
  'LLM_REQUEST_REFUSED',
  'CONTEXT_LENGTH_EXCEEDED',
  'MODEL_NOT_FOUND',
];

const MEMORY_INGEST: ErrorCode[] = [
  'INSUFFICIENT_CREDITS',
  'POLICY_DENY',
  'COLLECTION_NOT_FOUND',
  'COLLECTION_LIMIT_REACHED',
  'MEMORY_INFRA_NOT_READY',
  'MEMORY_UNREACHABLE',
  'SHUTTING_DOWN',
];

const MEMORY_SEARCH: ErrorCode[] = [
  'INSUFFICIENT_CREDITS',
  'COLLECTION_NOT_FOUND',
  'MEMORY_INFRA_NOT_READY',
  'MEMORY_UNREACHABLE',
  'SHUTTING_DOWN',
];

const OWN_REFUSALS: Readonly<Record<string, readonly ErrorCode[]>> = {
  getHealth: ['C2C_NOT_CONFIGURED'],

  ingestMemory: MEMORY_INGEST,
  ingestMemories: MEMORY_INGEST,
  extractMemoryDocument: [
    'DOCUMENT_CONCURRENCY_LIMIT',
    'DOCUMENT_UNSUPPORTED',
    'DOCUMENT_ENCRYPTED',
    'DOCUMENT_TOO_LARGE',
    'DOCUMENT_NOT_READABLE',
    'DOCUMENT_EMPTY',
    'CLIENT_CANCELLED',
    ...MEMORY_INGEST,
  ],
  searchMemory: MEMORY_SEARCH,
  assembleMemoryContext: MEMORY_SEARCH,
  getMemory: ['MEMORY_NOT_FOUND'],
  getMemoryStatus: ['MEMORY_NOT_FOUND'],
  retryMemory: [
    'MEMORY_NOT_FOUND',
    'MEMORY_NOT_FAILED',
    'POLICY_DENY',
    'INSUFFICIENT_CREDITS',
    'MEMORY_INFRA_NOT_READY',
    'MEMORY_UNREACHABLE',
    'SHUTTING_DOWN',
  ],
  deleteMemory: ['MEMORY_NOT_FOUND', 'POLICY_DENY'],
  createMemoryCollection: ['POLICY_DENY', 'COLLECTION_NAME_TAKEN', 'COLLECTION_LIMIT_REACHED', 'MEMBER_NOT_FOUND'],
  deleteMemoryCollection: ['COLLECTION_NOT_FOUND', 'POLICY_DENY'],

  placeCall: [
    'INVALID_NUMBER',
    'SAME_NUMBER',
    'INVALID_REFERENCE',
    'INVALID_CALLBACK_URL',
    'INVALID_CALLBACK_SECRET',
    'INVALID_RING_TIMEOUT',
    'INVALID_MAX_DURATION',
    'INVALID_RECORD',
    'INVALID_METADATA',
    'INVALID_TRANSCRIBE',
    'INVALID_ANNOUNCE',
    'INVALID_WHISPER',
    'VOICE_NOT_FOUND',
    'VOICE_NOT_READY',
    'RECHARGE_REQUIRED',
    'CALLER_ID_NOT_OWNED',
    'destination_not_allowed',
    'REFERENCE_NOT_OWNED',
    'TRUNK_NOT_FOUND',
    'DIALER_NOT_PROVISIONED',
    'REFERENCE_ALREADY_USED',
    'C2C_RATE_LIMITED',
    'no_free_channel',
    'CARRIER_LINE_DOWN',
    'C2C_NOT_CONFIGURED',
    'C2C_CALLBACK_UNREACHABLE',
    'SHUTTING_DOWN',
    'C2C_OUTCOME_UNKNOWN',
  ],
  getCall: CALL,
  listCallEvents: CALL,
  streamCallEvents: CALL,
  hangUpCall: CALL,
  getCallTranscript: ['CALL_NOT_FOUND', 'TRANSCRIPT_NOT_OWNED'],
  mintCallRecordingUrl: RECORDING,
  mintPlaybackUrl: RECORDING,
  getMedia: ['URL_EXPIRED', 'URL_SIGNATURE_INVALID', 'NOT_FOUND', 'RANGE_NOT_SATISFIABLE'],

  getPool: ['DIALER_NOT_PROVISIONED'],
  setCallerId: ['INVALID_NUMBER', 'CALLER_ID_NOT_OWNED', 'DIALER_NOT_PROVISIONED'],
  rentNumber: [
    'DIALER_NOT_PROVISIONED',
    'INVALID_NUMBER',
    'NUMBER_NOT_FOUND',
    'NUMBER_NOT_AVAILABLE',
    'INSUFFICIENT_CREDITS',
  ],
  releaseNumber: ['DIALER_NOT_PROVISIONED', 'INVALID_NUMBER', 'NUMBER_NOT_FOUND', 'NUMBER_IN_USE'],

  createTrunk: ['NUMBER_NOT_AVAILABLE', 'INVALID_NUMBER'],
  getTrunk: ['TRUNK_NOT_FOUND'],
  updateTrunk: ['TRUNK_NOT_FOUND', 'NUMBER_NOT_AVAILABLE', 'NUMBER_IN_USE', 'INVALID_NUMBER'],
  deleteTrunk: ['TRUNK_NOT_FOUND', 'TRUNK_IN_USE'],

  streamSpeech: SPEECH,
  streamSpeechByAlias: SPEECH,
  synthesizeSpeech: SPEECH,

  getVoice: ['VOICE_NOT_FOUND'],
  updateVoice: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE'],
  deleteVoice: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE'],
  createProfessionalVoice: ['unsupported_language', 'VOICE_LIMIT_REACHED'],
  cloneVoice: ['unsupported_language', 'VOICE_LIMIT_REACHED', ...VOICE_SAMPLES],
  addVoiceSamples: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE', 'VOICE_NOT_READY', ...VOICE_SAMPLES],

  transcribe: TRANSCRIPTION,
  transcribeByAlias: TRANSCRIPTION,

  createChatCompletion: [
    ...COMPLETION,
    'CHAT_NOT_FOUND',
    'CHAT_BUSY',
    'CHAT_CONCURRENCY_LIMIT',
    'CHAT_CLIENT_CANCELLED',
    'INSUFFICIENT_CREDITS',
    'SHUTTING_DOWN',
  ],
  getChat: ['CHAT_NOT_FOUND'],
  deleteChat: ['CHAT_NOT_FOUND'],

  listJudgeModels: ['LLM_UNAVAILABLE'],
  createRubric: ['RUBRIC_NAME_TAKEN', 'RUBRIC_LIMIT_REACHED'],
  getRubric: ['RUBRIC_NOT_FOUND'],
  updateRubric: ['RUBRIC_NOT_FOUND', 'RUBRIC_NOT_OWNED', 'RUBRIC_NAME_TAKEN'],
  deleteRubric: ['RUBRIC_NOT_FOUND', 'RUBRIC_NOT_OWNED'],
  evaluate: [
    'RUBRIC_NOT_FOUND',
    'CALL_NOT_FOUND',
    'TRANSCRIPT_NOT_OWNED',
    'CHAT_CONCURRENCY_LIMIT',
    'INSUFFICIENT_CREDITS',
    ...COMPLETION,
    'JUDGE_ANSWER_INVALID',
    'SHUTTING_DOWN',
  ],
  getEvaluation: ['EVALUATION_NOT_FOUND'],
  startJudgeBatch: [
    'RUBRIC_NOT_FOUND',
    'CALL_NOT_FOUND',
    'TRANSCRIPT_NOT_OWNED',
    'LLM_NOT_CONFIGURED',
    'LLM_UNAVAILABLE',
    'MODEL_NOT_FOUND',
  ],
  getJudgeBatch: ['JUDGE_BATCH_NOT_FOUND'],

  createWebhook: ['INVALID_WEBHOOK_URL', 'WEBHOOK_LIMIT_REACHED', 'WEBHOOK_URL_UNREACHABLE'],
  getWebhook: ['WEBHOOK_NOT_FOUND'],
  updateWebhook: ['WEBHOOK_NOT_FOUND', 'INVALID_WEBHOOK_URL', 'WEBHOOK_URL_UNREACHABLE'],
  deleteWebhook: ['WEBHOOK_NOT_FOUND'],
  listWebhookDeliveries: ['WEBHOOK_NOT_FOUND'],
  testWebhook: ['WEBHOOK_NOT_FOUND', 'WEBHOOK_DISABLED'],
  rotateWebhookSecret: ['WEBHOOK_NOT_FOUND'],
  replayWebhookDelivery: ['DELIVERY_NOT_FOUND', 'WEBHOOK_DISABLED'],

  getModelForOpenai: ['MODEL_NOT_FOUND'],

  receiveStripeEvent: ['PAYMENTS_NOT_CONFIGURED', 'WEBHOOK_SIGNATURE_INVALID', 'WORKSPACE_NOT_FOUND'],

  register: ['EMAIL_TAKEN', 'WEAK_PASSWORD', 'LOGIN_THROTTLED'],
  login: ['UNAUTHORIZED', 'LOGIN_THROTTLED'],
  showUnsubscribe: ['INVALID_UNSUBSCRIBE_TOKEN'],
  unsubscribe: ['INVALID_UNSUBSCRIBE_TOKEN'],

  addMember: ['USER_NOT_FOUND', 'ALREADY_MEMBER'],
  changeMemberRole: ['MEMBER_NOT_FOUND', 'LAST_OWNER'],
  removeMember: ['MEMBER_NOT_FOUND', 'LAST_OWNER'],
  deleteApiKey: ['KEY_NOT_FOUND'],
};

/** What a client might read; the fields that matter to it are in `details`. */
export function exampleRefusal(code: ErrorCode): { message: string; details?: unknown } {
  return EXAMPLES[code] ?? { message: `${code}, which is ${ERROR_CATALOGUE[code].status}.` };
}

const EXAMPLES: Partial<Record<ErrorCode, { message: string; details?: unknown }>> = {
  INVALID_NUMBER: {
    message: 'agent_number must be an Indian mobile number such as +919812345678.',
    details: [{ path: 'agent_number', message: 'must be an Indian mobile number such as +919812345678' }],
  },
  SAME_NUMBER: { message: 'customer_number must differ from agent_number.' },
  INVALID_RING_TIMEOUT: { message: 'agent_ring_timeout must be an integer from 5 to 60.' },
  INVALID_MAX_DURATION: { message: 'max_duration must be an integer from 30 to 7200.' },
  INVALID_RECORD: { message: 'record must be true or false.' },
  INVALID_TRANSCRIBE: { message: 'transcribe must be true or false.' },
  INVALID_ANNOUNCE: { message: 'announce must be 1 to 500 characters of text or SSML, none of them control.' },
  INVALID_WHISPER: { message: 'whisper must be 1 to 500 characters of text or SSML, none of them control.' },
  INVALID_METADATA: { message: 'metadata must be an object of at most 2048 bytes.' },
  INVALID_REFERENCE: { message: 'reference_id must be 1 to 128 characters of A-Z a-z 0-9 . _ : -.' },
  INVALID_CALLBACK_URL: { message: 'callback_url must be an https URL of a public host.' },
  INVALID_CALLBACK_SECRET: { message: 'callback_secret must be 16 to 256 characters.' },
  RECHARGE_REQUIRED: { message: 'The wallet does not cover a call of this length. Recharge it.' },
  CALLER_ID_NOT_OWNED: { message: 'The number is not rented by the workspace.' },
  destination_not_allowed: { message: 'The trunk does not call numbers that begin like this one.' },
  REFERENCE_NOT_OWNED: { message: 'The reference is bound to a call of another workspace.' },
  DIALER_NOT_PROVISIONED: { message: 'The workspace has no trunk to call over. Add one with POST /dialer/trunks.' },
  REFERENCE_ALREADY_USED: { message: 'The reference is bound to a call that is over. Use another reference_id.' },
  C2C_RATE_LIMITED: { message: 'At most 20 calls per minute may be placed.' },
  no_free_channel: { message: 'All channels of the trunk are in use.' },
  CARRIER_LINE_DOWN: { message: 'The carrier does not answer.' },
  C2C_NOT_CONFIGURED: { message: 'Calls cannot be placed: the media workers are starting.' },
  C2C_CALLBACK_UNREACHABLE: { message: 'The host of callback_url cannot be looked up now.' },
  C2C_OUTCOME_UNKNOWN: { message: 'Whether the call was placed is not known. Ask for it by its reference_id.' },
  CALL_NOT_FOUND: { message: 'There is no such call in the workspace.' },
  RECORDING_NOT_OWNED: { message: 'The recording is of a call that somebody else placed.' },
  TRANSCRIPT_NOT_OWNED: { message: 'The transcript is of a call that somebody else placed.' },
  RECORDING_UNAVAILABLE: { message: 'No recording was asked for.' },
  URL_EXPIRED: { message: 'The URL has expired. Mint another one.' },
  URL_SIGNATURE_INVALID: { message: 'The URL was not signed by this server.' },
  TRUNK_NOT_FOUND: { message: 'There is no such trunk.' },
  TRUNK_IN_USE: { message: 'The trunk has live calls.' },
  NUMBER_NOT_FOUND: { message: 'No trunk of the workspace has this number.' },
  NUMBER_NOT_AVAILABLE: { message: 'The number is rented already.' },
  NUMBER_IN_USE: { message: 'A live call uses the number.' },
  INSUFFICIENT_CREDITS: {
    message: 'The wallet has less than this costs.',
    details: { required: 2, available: 0.5, shortfall: 1.5 },
  },
  ZERO_BALANCE: { message: 'The wallet is empty. Top it up.' },
  VOICE_NOT_FOUND: { message: 'There is no such voice. en-us, hi and the like name built-in ones.' },
  INVALID_SSML: { message: 'Line 1: there is no element <voice>.' },
  VOICE_NOT_READY: { message: 'The voice is being made. Try again shortly.', details: { status: 'processing' } },
  VOICE_NOT_EDITABLE: { message: 'This voice comes with the platform and cannot be changed.' },
  VOICE_CONSENT_REQUIRED: { message: 'Send consent=true when the speaker agrees to have a voice made of theirs.' },
  VOICE_LIMIT_REACHED: {
    message: 'A workspace has at most 100 voices of its own. Delete one first.',
    details: { limit: 100 },
  },
  VOICE_SAMPLE_UNUSABLE: {
    message: 'The voice needs at least 5 seconds of speech; there are 3 seconds.',
    details: { least_seconds: 5 },
  },
  TTS_CONCURRENCY_LIMIT: {
    message: 'All 5 texts that a user may have spoken at a time are under way. Wait for one to finish.',
    details: { limit: 5 },
  },
  TTS_UNAVAILABLE: { message: 'The speech engine failed. Nothing is charged; try again.' },
  STT_CONCURRENCY_LIMIT: {
    message: 'All 8 transcriptions that a user may have at a time are under way. Wait for one to finish.',
    details: { limit: 8 },
  },
  STT_UPSTREAM_RATE_LIMIT: {
    message: 'The transcription server takes no more for now.',
    details: { retry_after: 20 },
  },
  STT_CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  STT_UPSTREAM_UNAVAILABLE: { message: 'The transcription server does not answer.' },
  STT_TIMEOUT: { message: 'It took longer than a request may.' },
  unsupported_language: { message: 'Nothing that is installed understands Hindi (hi).' },
  AUDIO_EMPTY: { message: 'There is no audio in the file.' },
  AUDIO_NOT_READABLE: { message: 'The file is no audio, or of a kind that cannot be decoded.' },
  AUDIO_STREAM_MISSING: { message: 'The file has no audio in it.' },
  AUDIO_TOO_LONG: {
    message: 'The audio is longer than 70 minutes. Send it in parts.',
    details: { longest_seconds: 4200 },
  },
  DOCUMENT_UNSUPPORTED: {
    message:
      'The file seems to be a ZIP archive. PDF, DOCX, XLSX, PNG, JPEG, WebP, plain text, Markdown and CSV are read.',
    details: { seems_to_be: 'a ZIP archive' },
  },
  DOCUMENT_ENCRYPTED: { message: 'The document opens with a password. Save it without one.' },
  DOCUMENT_TOO_LARGE: { message: 'The document has 2400 pages. 2000 are read.' },
  DOCUMENT_NOT_READABLE: { message: 'The document is damaged, or of a kind that cannot be read.' },
  DOCUMENT_EMPTY: { message: 'There is no text in the document.' },
  DOCUMENT_CONCURRENCY_LIMIT: {
    message: 'All 2 readings of documents that a user may have at a time are under way. Wait for one to finish.',
    details: { limit: 2 },
  },
  PAYMENTS_NOT_CONFIGURED: { message: 'Payments by Stripe are off: set STRIPE_WEBHOOK_SECRET.' },
  WEBHOOK_SIGNATURE_INVALID: { message: 'The signature is not one of this body.' },
  EMAIL_TAKEN: { message: 'There is an account with this e-mail address. Log in.' },
  WEAK_PASSWORD: { message: 'It is among the passwords that are guessed first: use four words.' },
  LOGIN_THROTTLED: { message: 'Too many attempts. Try again later.' },
  USER_NOT_FOUND: { message: 'Nobody has registered with this e-mail address.' },
  MEMBER_NOT_FOUND: { message: 'The workspace has no such member.' },
  ALREADY_MEMBER: { message: 'The user is a member already.' },
  LAST_OWNER: { message: 'The workspace would be without an owner.' },
  KEY_NOT_FOUND: { message: 'There is no such API key, or it was deleted before.' },
  INVALID_UNSUBSCRIBE_TOKEN: { message: 'This link is not complete. Follow the one in the mail again.' },
  INVALID_WEBHOOK_URL: { message: 'url must be an https URL of a public host.' },
  LLM_NOT_CONFIGURED: { message: 'No language model is configured: set LLM_BASE_URL or LLM_MODEL_PATH.' },
  LLM_UNAVAILABLE: { message: 'The server of the language model cannot be reached. Nothing is charged; try again.' },
  LLM_RATE_LIMITED: { message: 'The server of the language model has too much to do. Try again later.' },
  LLM_TIMEOUT: { message: 'The language model took too long. Try again.' },
  LLM_REQUEST_REFUSED: { message: 'The server of the language model refused the request.' },
  CONTEXT_LENGTH_EXCEEDED: { message: 'The messages are longer than the model takes. Send less.' },
  MODEL_NOT_FOUND: { message: 'There is no such language model. GET /models lists them.' },
  CHAT_NOT_FOUND: { message: 'You have no such chat in this workspace. GET /chats lists them.' },
  CHAT_BUSY: { message: 'The chat is being answered already. Wait for that answer, or close its connection.' },
  CHAT_CONCURRENCY_LIMIT: {
    message: 'All 8 completions and evaluations that a user may have at a time are under way. Wait for one to finish.',
    details: { limit: 8 },
  },
  CHAT_CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  WEBHOOK_NOT_FOUND: { message: 'There is no such webhook.' },
  DELIVERY_NOT_FOUND: { message: 'There is no such delivery.' },
  WEBHOOK_DISABLED: { message: 'The webhook is disabled. Take it into service again with status: active.' },
  WEBHOOK_LIMIT_REACHED: { message: 'The workspace has as many webhooks as it may have.' },
  WEBHOOK_URL_UNREACHABLE: { message: 'The host of url cannot be looked up now.' },
  POLICY_DENY: { message: 'Viewers may look for memories but not make any.' },
  MEMORY_NOT_FOUND: { message: 'There is no such memory, or it is not shared with you.' },
  MEMORY_NOT_FAILED: { message: 'The memory has not failed: it is ready.', details: { status: 'ready' } },
  COLLECTION_NOT_FOUND: { message: 'There is no such collection, or it is not shared with you.' },
  COLLECTION_NAME_TAKEN: { message: 'A team collection of this name is there already.' },
  COLLECTION_LIMIT_REACHED: {
    message: 'A workspace has at most 200 collections. Delete one first.',
    details: { limit: 200 },
  },
  MEMORY_INFRA_NOT_READY: { message: 'Memory is being set up. Try again in about 10 seconds.' },
  MEMORY_UNREACHABLE: {
    message:
      'Processing cannot be started now. The memories are stored and wait for it, and what was charged is paid back.',
    details: { ids: ['3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11'] },
  },
  RUBRIC_NOT_FOUND: { message: 'There is no such rubric.' },
  RUBRIC_NOT_OWNED: { message: 'Somebody else made this rubric: they, owners and admins may change it.' },
  RUBRIC_NAME_TAKEN: { message: 'Another rubric of the workspace has this name. Choose another one.' },
  RUBRIC_LIMIT_REACHED: {
    message: 'A workspace has at most 500 rubrics. Delete one first.',
    details: { limit: 500 },
  },
  JUDGE_ANSWER_INVALID: {
    message: 'The model gave no answer that the rubric has. Nothing is charged; try again, or choose another model.',
    details: { unanswered: ['greeting'] },
  },
  EVALUATION_NOT_FOUND: { message: 'You have no such evaluation.' },
  JUDGE_BATCH_NOT_FOUND: { message: 'You have no such batch.' },
  VALIDATION_FAILED: {
    message: 'limit must be at most 100.',
    details: [{ path: 'limit', message: 'must be at most 100' }],
  },
  MALFORMED_JSON: { message: 'The body is not valid JSON.' },
  UNAUTHORIZED: { message: 'Send an API key: Authorization: Bearer sk_...' },
  FORBIDDEN: { message: 'Viewers may look but not act. Ask an owner or admin of the workspace for another role.' },
  WORKSPACE_NOT_FOUND: { message: 'You are not a member of a workspace with this id.' },
  NOT_FOUND: { message: 'The audio is gone.' },
  PAYLOAD_TOO_LARGE: { message: 'The body is larger than 64 KiB.' },
  UNSUPPORTED_MEDIA_TYPE: { message: 'Send the body as application/json.' },
  RANGE_NOT_SATISFIABLE: { message: 'The audio has 48044 bytes.' },
  CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  RATE_LIMITED: { message: 'At most 60 requests per minute are answered.' },
  INTERNAL: { message: 'Something went wrong here. The request id helps to find it.' },
  SHUTTING_DOWN: { message: 'The server is shutting down. Try again.' },
  STORAGE_UNAVAILABLE: { message: 'The database cannot be reached. Try again shortly.' },
};
