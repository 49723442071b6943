import { ERROR_CATALOGUE, type ErrorCode } from '../machines/errors.ts';

/** Properties that determine an operation's common errors. */
export interface OperationTraits {
  operationId: string;
  isPublic: boolean;
  /** Accepts a body, even if it ignores it. */
  mayHaveBody: boolean;
  isIdempotent: boolean;
}

/**
 * Returns every error code of an operation, its own codes first. A fuzz test calls every operation and fails for a
 * missing code.
 */
export function refusalsOf(traits: OperationTraits): ErrorCode[] {
  const { operationId, isPublic, mayHaveBody, isIdempotent } = traits;
  const codes: ErrorCode[] = [
    ...(OWN_REFUSALS[operationId] ?? []),
    // Every query may have an unknown parameter.
    'VALIDATION_FAILED',
    ...(mayHaveBody ? (['MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const) : []),
    ...(isIdempotent ? IDEMPOTENCY : []),
    // Every request may name a workspace, which must match its key's.
    ...(isPublic ? [] : (['UNAUTHORIZED', 'CROSS_ORIGIN_REQUEST', 'FORBIDDEN', 'WORKSPACE_NOT_FOUND'] as const)),
    'RATE_LIMITED',
    'INTERNAL',
    'STORAGE_UNAVAILABLE',
  ];
  return [...new Set(codes)];
}

const IDEMPOTENCY: ErrorCode[] = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_NOT_REPLAYABLE', 'IDEMPOTENCY_KEY_REUSED'];
const CALL: ErrorCode[] = ['CALL_NOT_FOUND'];
const CALL_CONTROL: ErrorCode[] = ['CALL_NOT_FOUND', 'CALL_NOT_LIVE', 'NODE_UNREACHABLE'];
const LEG_CONTROL: ErrorCode[] = [...CALL_CONTROL, 'LEG_NOT_FOUND'];
const CALL_PERMISSION: ErrorCode[] = [
  'DESTINATION_BLOCKED',
  'DO_NOT_CALL',
  'OUTSIDE_CALLING_HOURS',
  'DAILY_SPEND_CAP_REACHED',
  'DESTINATION_RATE_LIMITED',
];
const NEW_LEG: ErrorCode[] = [
  ...CALL_CONTROL,
  'TOO_MANY_LEGS',
  'DIALER_NOT_PROVISIONED',
  'destination_not_allowed',
  ...CALL_PERMISSION,
  'no_free_channel',
  'WEBRTC_NOT_AVAILABLE',
  'MEMBER_NOT_FOUND',
];
const RECORDING_CONTROL: ErrorCode[] = [...CALL_CONTROL, 'RECORDING_UNAVAILABLE'];
const RECORDING: ErrorCode[] = [
  'CALL_NOT_FOUND',
  'RECORDING_NOT_OWNED',
  'RECORDING_UNAVAILABLE',
  'RECORDING_DELETED',
  'RECORDING_ENCODING',
  'RECORDING_KEY_MISSING',
  'RECORDING_DAMAGED',
  'DIALER_NOT_PROVISIONED',
  'SHUTTING_DOWN',
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
  getReadiness: ['NOT_READY'],
  getMetrics: ['UNAUTHORIZED'],

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
  createEmbeddings: [
    'MODEL_NOT_FOUND',
    'CHAT_CONCURRENCY_LIMIT',
    'INSUFFICIENT_CREDITS',
    'MEMORY_UNREACHABLE',
    'CLIENT_CANCELLED',
    'SHUTTING_DOWN',
  ],
  getMemory: ['MEMORY_NOT_FOUND'],
  getMemoryStatus: ['MEMORY_NOT_FOUND'],
  updateMemory: [
    'MEMORY_NOT_FOUND',
    'POLICY_DENY',
    'INSUFFICIENT_CREDITS',
    'MEMORY_INFRA_NOT_READY',
    'MEMORY_UNREACHABLE',
    'SHUTTING_DOWN',
  ],
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
    'INVALID_ENDPOINT',
    'WEBRTC_NOT_AVAILABLE',
    'MEMBER_NOT_FOUND',
    'SAME_NUMBER',
    'INVALID_REFERENCE',
    'INVALID_CALLBACK_URL',
    'INVALID_CALLBACK_SECRET',
    'INVALID_RING_TIMEOUT',
    'INVALID_MAX_DURATION',
    'INVALID_RECORD',
    'INVALID_METADATA',
    'INVALID_TRANSCRIBE',
    'INVALID_MACHINE_DETECTION',
    'INVALID_ANNOUNCE',
    'INVALID_WHISPER',
    'VOICE_NOT_FOUND',
    'VOICE_NOT_READY',
    'RECHARGE_REQUIRED',
    'CALLER_ID_NOT_OWNED',
    'destination_not_allowed',
    ...CALL_PERMISSION,
    'REFERENCE_NOT_OWNED',
    'TRUNK_NOT_FOUND',
    'DIALER_NOT_PROVISIONED',
    'REFERENCE_ALREADY_USED',
    'REFERENCE_CONFLICT',
    'C2C_RATE_LIMITED',
    'no_free_channel',
    'CARRIER_LINE_DOWN',
    'PLACEMENTS_OVERLOADED',
    'C2C_NOT_CONFIGURED',
    'C2C_CALLBACK_UNREACHABLE',
    'SHUTTING_DOWN',
    'C2C_OUTCOME_UNKNOWN',
  ],
  getCall: CALL,
  listCallEvents: CALL,
  createStreamToken: CALL,
  streamCallEvents: CALL,
  hangUpCall: [...CALL, 'NODE_UNREACHABLE'],
  deleteCall: ['CALL_NOT_FOUND', 'CALL_IN_USE'],
  getErasure: ['ERASURE_NOT_FOUND'],
  muteCallLeg: LEG_CONTROL,
  unmuteCallLeg: LEG_CONTROL,
  holdCallLeg: LEG_CONTROL,
  resumeCallLeg: LEG_CONTROL,
  sendCallDigits: [...LEG_CONTROL, 'INVALID_DIGITS', 'LEG_NOT_LISTENING', 'CONTROL_BUSY'],
  playToCall: [
    ...LEG_CONTROL,
    'LEG_NOT_LISTENING',
    'CONTROL_BUSY',
    'INVALID_PLAYBACK_URL',
    'PLAYBACK_URL_UNREACHABLE',
    'AUDIO_EMPTY',
    'AUDIO_NOT_READABLE',
    'AUDIO_STREAM_MISSING',
    'AUDIO_TOO_LONG',
    'INVALID_SSML',
    'VOICE_NOT_FOUND',
    'VOICE_NOT_READY',
    'INSUFFICIENT_CREDITS',
    'TTS_UNAVAILABLE',
  ],
  stopPlayback: [...CALL_CONTROL, 'PLAYBACK_NOT_FOUND'],
  addCallLeg: NEW_LEG,
  createPhoneToken: ['CALL_NOT_FOUND', 'WEBRTC_NOT_AVAILABLE'],
  removeCallLeg: LEG_CONTROL,
  transferCall: [...NEW_LEG, 'LEG_NOT_FOUND', 'TRANSFER_IN_PROGRESS'],
  completeCallTransfer: [...CALL_CONTROL, 'TRANSFER_NOT_FOUND', 'TRANSFER_NOT_ANSWERED'],
  cancelCallTransfer: [...CALL_CONTROL, 'TRANSFER_NOT_FOUND'],
  completeNamedTransfer: [...CALL_CONTROL, 'TRANSFER_NOT_FOUND', 'TRANSFER_NOT_ANSWERED'],
  cancelNamedTransfer: [...CALL_CONTROL, 'TRANSFER_NOT_FOUND'],
  superviseCall: NEW_LEG,
  changeSupervision: LEG_CONTROL,
  endSupervision: LEG_CONTROL,
  pauseCallRecording: RECORDING_CONTROL,
  resumeCallRecording: RECORDING_CONTROL,
  getCallSip: ['CALL_NOT_FOUND'],
  getCallQuality: CALL,
  getCallLedger: CALL,
  listCallDeliveries: CALL,
  replayCallDelivery: ['CALL_NOT_FOUND', 'DELIVERY_NOT_FOUND', 'WEBHOOK_DISABLED'],
  downloadCallSip: ['CALL_NOT_FOUND'],
  getCallTranscript: ['CALL_NOT_FOUND', 'TRANSCRIPT_NOT_OWNED'],
  mintCallRecordingUrl: RECORDING,
  mintPlaybackUrl: RECORDING,
  getMedia: [
    'URL_EXPIRED',
    'URL_SIGNATURE_INVALID',
    'NOT_FOUND',
    'RANGE_NOT_SATISFIABLE',
    'RECORDING_KEY_MISSING',
    'RECORDING_DAMAGED',
  ],

  getPool: ['DIALER_NOT_PROVISIONED'],
  setCallerId: ['INVALID_NUMBER', 'CALLER_ID_NOT_OWNED', 'DIALER_NOT_PROVISIONED'],
  setInboundRule: [
    'NUMBER_NOT_FOUND',
    'INVALID_CALLBACK_URL',
    'C2C_CALLBACK_UNREACHABLE',
    'INVALID_ANNOUNCE',
    'VOICE_NOT_FOUND',
    'VOICE_NOT_READY',
  ],
  rentNumber: [
    'DIALER_NOT_PROVISIONED',
    'INVALID_NUMBER',
    'NUMBER_NOT_FOUND',
    'NUMBER_NOT_VERIFIED',
    'NUMBER_NOT_AVAILABLE',
    'INSUFFICIENT_CREDITS',
  ],
  verifyNumber: [
    'INVALID_NUMBER',
    'TRUNK_NOT_FOUND',
    'FORBIDDEN',
    'NUMBER_NOT_FOUND',
    'NUMBER_NOT_AVAILABLE',
    'DIALER_NOT_PROVISIONED',
    'destination_not_allowed',
    'DESTINATION_BLOCKED',
    'DESTINATION_RATE_LIMITED',
    'DAILY_SPEND_CAP_REACHED',
    'INSUFFICIENT_CREDITS',
    'CARRIER_LINE_DOWN',
  ],
  getNumberVerification: ['VERIFICATION_NOT_FOUND'],
  releaseNumber: ['DIALER_NOT_PROVISIONED', 'INVALID_NUMBER', 'NUMBER_NOT_FOUND', 'NUMBER_IN_USE'],

  addToDoNotCall: ['QUOTA_EXCEEDED'],
  removeFromDoNotCall: ['NOT_ON_DO_NOT_CALL'],
  createTrunk: ['TRUNK_HOST_NOT_ALLOWED', 'QUOTA_EXCEEDED', 'NUMBER_NOT_AVAILABLE', 'INVALID_NUMBER'],
  getTrunk: ['TRUNK_NOT_FOUND'],
  updateTrunk: [
    'TRUNK_NOT_FOUND',
    'TRUNK_HOST_NOT_ALLOWED',
    'QUOTA_EXCEEDED',
    'NUMBER_NOT_AVAILABLE',
    'NUMBER_IN_USE',
    'INVALID_NUMBER',
  ],
  probeTrunk: ['TRUNK_NOT_FOUND', 'CARRIER_LINE_DOWN'],
  deleteTrunk: ['TRUNK_NOT_FOUND', 'TRUNK_IN_USE'],

  streamSpeech: SPEECH,
  streamSpeechByAlias: SPEECH,
  synthesizeSpeech: SPEECH,
  createSpeech: ['MODEL_NOT_FOUND', ...SPEECH],

  getVoice: ['VOICE_NOT_FOUND'],
  updateVoice: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE'],
  deleteVoice: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE'],
  createProfessionalVoice: ['unsupported_language', 'VOICE_LIMIT_REACHED'],
  cloneVoice: ['unsupported_language', 'VOICE_LIMIT_REACHED', ...VOICE_SAMPLES],
  addVoiceSamples: ['VOICE_NOT_FOUND', 'VOICE_NOT_EDITABLE', 'VOICE_NOT_READY', ...VOICE_SAMPLES],

  transcribe: [...TRANSCRIPTION, 'INVALID_AUDIO_URL', 'AUDIO_URL_UNREACHABLE'],
  transcribeByAlias: [...TRANSCRIPTION, 'INVALID_AUDIO_URL', 'AUDIO_URL_UNREACHABLE'],
  createTranscription: ['MODEL_NOT_FOUND', ...TRANSCRIPTION],

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
  listEvaluations: CALL,
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

  register: [
    'CROSS_ORIGIN_REQUEST',
    'REGISTRATION_CLOSED',
    'INVALID_INVITATION',
    'EMAIL_TAKEN',
    'WEAK_PASSWORD',
    'LOGIN_THROTTLED',
  ],
  login: ['UNAUTHORIZED', 'CROSS_ORIGIN_REQUEST', 'LOGIN_THROTTLED'],
  logInWithLink: ['UNAUTHORIZED', 'CROSS_ORIGIN_REQUEST', 'LOGIN_THROTTLED'],
  showPasswordReset: ['INVALID_RESET_TOKEN'],
  changePassword: ['WRONG_PASSWORD', 'WEAK_PASSWORD', 'LOGIN_THROTTLED'],
  endSession: ['SESSION_NOT_FOUND'],
  resetPassword: ['INVALID_RESET_TOKEN', 'WEAK_PASSWORD'],
  showUnsubscribe: ['INVALID_UNSUBSCRIBE_TOKEN'],
  unsubscribe: ['INVALID_UNSUBSCRIBE_TOKEN'],

  createWorkspace: ['QUOTA_EXCEEDED'],
  createInvitation: ['ALREADY_MEMBER'],
  revokeInvitation: ['INVITATION_NOT_FOUND'],
  acceptInvitation: ['INVALID_INVITATION', 'ALREADY_MEMBER'],
  addMember: ['USER_NOT_FOUND', 'ALREADY_MEMBER'],
  changeMemberRole: ['MEMBER_NOT_FOUND', 'LAST_OWNER'],
  removeMember: ['MEMBER_NOT_FOUND', 'LAST_OWNER'],
  deleteApiKey: ['KEY_NOT_FOUND'],
};

/** Example error for the document. Clients read the fields in `details`. */
export function exampleRefusal(code: ErrorCode): { message: string; details?: unknown } {
  return EXAMPLES[code] ?? { message: `${code} (${ERROR_CATALOGUE[code].status}).` };
}

const EXAMPLES: Partial<Record<ErrorCode, { message: string; details?: unknown }>> = {
  INVALID_NUMBER: {
    message: 'agent_number must be an Indian mobile number, such as +919812345678.',
    details: [{ path: 'agent_number', message: 'must be an Indian mobile number, such as +919812345678' }],
  },
  SAME_NUMBER: { message: 'customer_number must differ from agent_number.' },
  INVALID_RING_TIMEOUT: { message: 'agent_ring_timeout must be an integer from 5 to 60.' },
  INVALID_MAX_DURATION: { message: 'max_duration must be an integer from 30 to 7200.' },
  INVALID_RECORD: { message: 'record must be true or false.' },
  INVALID_TRANSCRIBE: { message: 'transcribe must be true or false.' },
  INVALID_MACHINE_DETECTION: {
    message: 'machine_detection.on_machine must be "continue" or "hangup".',
  },
  INVALID_ANNOUNCE: { message: 'announce must be 1 to 500 characters of text or SSML, without control characters.' },
  INVALID_WHISPER: { message: 'whisper must be 1 to 500 characters of text or SSML, without control characters.' },
  INVALID_METADATA: { message: 'metadata must be at most 2048 bytes of JSON.' },
  INVALID_REFERENCE: { message: 'reference_id must be 1 to 128 characters of A-Z a-z 0-9 . _ : -.' },
  INVALID_CALLBACK_URL: { message: 'callback_url must be an https URL of a public host.' },
  INVALID_CALLBACK_SECRET: { message: 'callback_secret must be 16 to 256 characters without control characters.' },
  RECHARGE_REQUIRED: { message: 'The wallet balance does not cover this call. Top up the wallet.' },
  CALLER_ID_NOT_OWNED: { message: 'The workspace does not rent this number. Rent it with POST /dialer/numbers.' },
  destination_not_allowed: { message: 'The trunk may not call numbers with this prefix. Add it to allowed_prefixes.' },
  DESTINATION_BLOCKED: {
    message: 'Calls to the prefix of this customer_number are blocked. See GET /dialer/calling-rules.',
  },
  DO_NOT_CALL: { message: 'This customer_number is on the do-not-call list of the workspace.' },
  OUTSIDE_CALLING_HOURS: {
    message: 'Calls are allowed from 09:00 to 21:00 (Asia/Kolkata). Call within these hours.',
    details: { time_zone: 'Asia/Kolkata', start: '09:00', end: '21:00' },
  },
  DAILY_SPEND_CAP_REACHED: {
    message: 'The calls of the workspace have reached their cap for this day. It ends at 2026-01-31T18:30:00.000Z.',
    details: { resets_at: '2026-01-31T18:30:00.000Z' },
  },
  DESTINATION_RATE_LIMITED: {
    message: 'The limit of 15 calls per minute to +91 is reached. Try again later.',
    details: { prefix: '+91', limit: 15 },
  },
  NOT_ON_DO_NOT_CALL: { message: 'The do-not-call list of the workspace does not have this number.' },
  REFERENCE_NOT_OWNED: { message: 'Another workspace has used this reference_id. Use another one.' },
  DIALER_NOT_PROVISIONED: { message: 'The workspace has no active trunk. Create one with POST /dialer/trunks.' },
  REFERENCE_CONFLICT: {
    message:
      'This reference_id belongs to a live call that was placed with another customer_number. Use another one for another call.',
    details: { call_id: 'call_3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11', fields: ['customer_number'] },
  },
  REFERENCE_ALREADY_USED: { message: 'This reference_id belongs to a finished call. Use another one.' },
  C2C_RATE_LIMITED: { message: 'The limit of 20 calls per minute is reached. Try again in 12 s.' },
  no_free_channel: { message: 'All channels of the trunk are in use. Try again when a call has ended.' },
  CARRIER_LINE_DOWN: { message: 'The carrier does not respond. Try again later.' },
  PLACEMENTS_OVERLOADED: {
    message: 'The server gets more placements than it can admit. Nothing was placed. Try again.',
  },
  NOT_READY: {
    message: 'Not ready. sip_server: The SIP server is not connected.',
    details: {
      checks: [
        { name: 'database', ok: true, reason: null },
        { name: 'sip_server', ok: false, reason: 'The SIP server is not connected.' },
      ],
    },
  },
  C2C_NOT_CONFIGURED: { message: 'The server cannot place calls: the media workers are starting. Try again shortly.' },
  C2C_CALLBACK_UNREACHABLE: { message: 'The host of callback_url cannot be resolved at the moment. Try again.' },
  C2C_OUTCOME_UNKNOWN: {
    message: 'It is unknown whether the call was placed. Look it up by its reference_id before you retry.',
  },
  CALL_NOT_FOUND: { message: 'No call in this workspace has this id or reference_id.' },
  NODE_UNREACHABLE: {
    message: 'The server that runs this call does not respond. If it stopped, its call ends soon. Try again.',
  },
  CALL_IN_USE: { message: 'The call has not ended. Hang it up first.' },
  ERASURE_NOT_FOUND: { message: 'No erasure in this workspace has this id.' },
  CALL_NOT_LIVE: {
    message: 'The two parties are not talking. Only a call in state `bridged` can be controlled.',
  },
  LEG_NOT_FOUND: { message: 'The call has no such leg. Name `agent`, `customer` or a leg_id of the call.' },
  TRANSFER_IN_PROGRESS: { message: 'Another transfer of this call is under way. Complete or cancel it first.' },
  TRANSFER_NOT_FOUND: {
    message:
      'The call has no such transfer under way. Start one with POST .../transfer. A blind one completes by itself.',
  },
  TRANSFER_NOT_ANSWERED: {
    message: 'The target of the transfer has not answered yet. Try again when it has, or cancel the transfer.',
  },
  TOO_MANY_LEGS: { message: 'The call has 8 further legs, which is the most. Remove one first.' },
  PLAYBACK_NOT_FOUND: { message: 'The call plays no sound with this playback_id, or not any more.' },
  INVALID_PLAYBACK_URL: { message: 'url must be an https URL.' },
  PLAYBACK_URL_UNREACHABLE: { message: 'The file could not be fetched: HTTP 404.' },
  LEG_NOT_LISTENING: {
    message: 'The phone of this leg has put the call on hold. Try again when it is back.',
  },
  CONTROL_BUSY: { message: 'Too many digits or sounds were sent to this leg at once. Try again in a few seconds.' },
  INVALID_ENDPOINT: { message: 'agent_endpoint must not be combined with agent_number.' },
  WEBRTC_NOT_AVAILABLE: {
    message:
      'Browsers cannot take part in calls: the worker program of mediasoup is not installed. Run bin/tandem webrtc install, or set MEDIASOUP_WORKER_BIN to the worker program of mediasoup.',
  },
  INVALID_DIGITS: { message: 'digits may contain 0 to 9, *, #, A to D, w and W only.' },
  RECORDING_NOT_OWNED: {
    message: 'Only the user who placed this call can play its recording; of an inbound call, admins and owners.',
  },
  TRANSCRIPT_NOT_OWNED: { message: 'Another user placed this call. Only that user can read its transcript.' },
  RECORDING_UNAVAILABLE: { message: 'The call was placed without record: true, so it has no recording.' },
  RECORDING_DELETED: { message: 'The recording was deleted after 30 days, as the workspace is set to.' },
  RECORDING_ENCODING: { message: 'The recording is being encoded. Repeat the request in a few seconds.' },
  RECORDING_KEY_MISSING: {
    message:
      'The recording is encrypted with a key that this server does not have. Add the key to RECORDING_KEY_PREVIOUS and restart the server.',
  },
  RECORDING_DAMAGED: {
    message: 'The recording was changed or cut off in storage, so it cannot be played. Restore it from a backup.',
  },
  URL_EXPIRED: { message: 'The URL has expired. Create a new one.' },
  URL_SIGNATURE_INVALID: { message: 'The signature of the URL is invalid. Create a new URL.' },
  TRUNK_NOT_FOUND: { message: 'No trunk in this workspace has this id.' },
  TRUNK_IN_USE: { message: 'The trunk has live calls. Delete it when they have ended.' },
  NUMBER_NOT_FOUND: { message: 'No trunk of the workspace has this number.' },
  NUMBER_NOT_AVAILABLE: { message: 'The number is already rented.' },
  NUMBER_IN_USE: { message: 'A live call uses this number. Release it when the call has ended.' },
  INSUFFICIENT_CREDITS: {
    message: 'The wallet balance does not cover this request. Top up the wallet.',
    details: { required: 2, available: 0.5, shortfall: 1.5 },
  },
  ZERO_BALANCE: { message: 'The wallet is empty. Top up the wallet.' },
  VOICE_NOT_FOUND: { message: 'No voice has this id. GET /voices lists the available ones.' },
  INVALID_SSML: { message: 'Line 1: the element <voice> is not supported.' },
  VOICE_NOT_READY: {
    message: 'The voice is still being processed. Try again when its status is ready.',
    details: { status: 'processing' },
  },
  VOICE_NOT_EDITABLE: { message: 'This is a built-in voice, which cannot be changed.' },
  VOICE_CONSENT_REQUIRED: {
    message: 'consent must be true. Send it only if the speaker agrees to the voice being cloned.',
  },
  VOICE_LIMIT_REACHED: {
    message: 'The workspace has 100 voices, the maximum. Delete one first.',
    details: { limit: 100 },
  },
  VOICE_SAMPLE_UNUSABLE: {
    message: 'The samples have 3 seconds of speech. At least 5 seconds are required.',
    details: { least_seconds: 5 },
  },
  TTS_CONCURRENCY_LIMIT: {
    message: 'You have 5 synthesis requests in progress, the maximum. Wait for one to finish.',
    details: { limit: 5 },
  },
  TTS_UNAVAILABLE: { message: 'The speech engine failed. You were not charged. Try again.' },
  STT_CONCURRENCY_LIMIT: {
    message: 'You have 8 transcriptions in progress, the maximum. Wait for one to finish.',
    details: { limit: 8 },
  },
  STT_UPSTREAM_RATE_LIMIT: {
    message: 'The transcription server is at its rate limit. Try again in 20 s.',
    details: { retry_after: 20 },
  },
  STT_CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  STT_UPSTREAM_UNAVAILABLE: { message: 'The transcription server does not respond. Try again later.' },
  STT_TIMEOUT: { message: 'The transcription took too long. Send shorter audio.' },
  unsupported_language: {
    message: 'No installed model transcribes Hindi (hi). GET /stt/languages lists the languages.',
  },
  AUDIO_EMPTY: { message: 'The file contains no audio.' },
  AUDIO_NOT_READABLE: { message: 'Unsupported or invalid audio file.' },
  AUDIO_STREAM_MISSING: { message: 'The file has no audio stream.' },
  AUDIO_TOO_LONG: {
    message: 'The audio is longer than 70 minutes. Split it into shorter files.',
    details: { longest_seconds: 4200 },
  },
  INVALID_AUDIO_URL: { message: 'url must be an https URL.' },
  AUDIO_URL_UNREACHABLE: { message: 'The file could not be fetched: HTTP 404.' },
  DOCUMENT_UNSUPPORTED: {
    message:
      'The file is a ZIP archive. Send PDF, DOCX, XLSX, PNG, JPEG, WebP, GIF, TIFF, plain text, Markdown or CSV.',
    details: { seems_to_be: 'a ZIP archive' },
  },
  DOCUMENT_ENCRYPTED: { message: 'The document is protected by a password. Save it without one.' },
  DOCUMENT_TOO_LARGE: { message: 'The document has 2400 pages. At most 2000 are allowed.' },
  DOCUMENT_NOT_READABLE: { message: 'The document is damaged or in an unsupported variant of its format.' },
  DOCUMENT_EMPTY: { message: 'The document contains no text.' },
  DOCUMENT_CONCURRENCY_LIMIT: {
    message: 'You have 2 documents in progress, the maximum. Wait for one to finish.',
    details: { limit: 2 },
  },
  PAYMENTS_NOT_CONFIGURED: { message: 'Stripe payments are not configured. Set STRIPE_WEBHOOK_SECRET.' },
  WEBHOOK_SIGNATURE_INVALID: { message: 'The signature does not match the body.' },
  NUMBER_NOT_VERIFIED: {
    message: 'The trunk claims this number, but it is not verified. Call POST /dialer/numbers/verifications.',
  },
  VERIFICATION_NOT_FOUND: { message: 'Verification not found.' },
  TRUNK_HOST_NOT_ALLOWED: {
    message: 'sip_uri leads to a private network. Ask the operator to list it in TRUNK_ALLOW_CIDRS.',
  },
  QUOTA_EXCEEDED: {
    message: 'The workspace has 20 trunks, the most that this server allows. Delete one, or ask the operator.',
    details: { limit: 20 },
  },
  REGISTRATION_CLOSED: {
    message: 'Registration is closed on this server. Ask the operator for an account, or to set REGISTRATION=invite.',
  },
  INVALID_INVITATION: {
    message: 'This invitation is invalid, expired, used, or for another e-mail address. Ask for a new one.',
  },
  INVITATION_NOT_FOUND: { message: 'The workspace has no pending invitation with this id.' },
  EMAIL_TAKEN: { message: 'An account with this e-mail address already exists. Log in instead.' },
  WEAK_PASSWORD: {
    message: 'Choose another password. It is one of the most common passwords. Use several words.',
  },
  WRONG_PASSWORD: { message: 'current_password is wrong. Send the password that you log in with.' },
  SESSION_NOT_FOUND: { message: 'You have no session with this id, or it has ended.' },
  LOGIN_THROTTLED: { message: 'Too many attempts. Try again later.' },
  USER_NOT_FOUND: {
    message: 'No account has this e-mail address. Invite the person with POST /workspaces/{id}/invitations.',
  },
  MEMBER_NOT_FOUND: { message: 'The workspace has no member with this user id.' },
  ALREADY_MEMBER: { message: 'The user is already a member of the workspace.' },
  LAST_OWNER: { message: 'The workspace must keep at least one owner. Add another owner first.' },
  KEY_NOT_FOUND: { message: 'No API key has this id, or it has been deleted.' },
  INVALID_RESET_TOKEN: { message: 'This link is invalid, expired or already used. Ask for a new one.' },
  INVALID_UNSUBSCRIBE_TOKEN: { message: 'This link is incomplete. Open the link in the e-mail again.' },
  INVALID_WEBHOOK_URL: { message: 'url must be an https URL of a public host.' },
  LLM_NOT_CONFIGURED: { message: 'No language model is configured. Set LLM_BASE_URL or LLM_MODEL_PATH.' },
  LLM_UNAVAILABLE: { message: 'The language model server cannot be reached. You were not charged. Try again.' },
  LLM_RATE_LIMITED: { message: 'The language model server is at its rate limit. Try again later.' },
  LLM_TIMEOUT: { message: 'The language model took too long. Try again.' },
  LLM_REQUEST_REFUSED: { message: 'The language model server rejected the request.' },
  CONTEXT_LENGTH_EXCEEDED: {
    message: 'The messages exceed the context length of the model. Send fewer or shorter ones.',
  },
  MODEL_NOT_FOUND: { message: 'No model has this id. GET /models lists the available ones.' },
  CHAT_NOT_FOUND: { message: 'You have no chat with this id in this workspace. GET /chats lists your chats.' },
  CHAT_BUSY: { message: 'The chat has a completion in progress. Wait for it to finish, or close its connection.' },
  CHAT_CONCURRENCY_LIMIT: {
    message: 'You have 8 completions and evaluations in progress, the maximum. Wait for one to finish.',
    details: { limit: 8 },
  },
  CHAT_CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  WEBHOOK_NOT_FOUND: { message: 'No webhook in this workspace has this id.' },
  DELIVERY_NOT_FOUND: { message: 'No delivery in this workspace has this id.' },
  WEBHOOK_DISABLED: { message: 'The webhook is disabled. Enable it with status: active.' },
  WEBHOOK_LIMIT_REACHED: { message: 'The workspace has the maximum number of webhooks. Delete one first.' },
  WEBHOOK_URL_UNREACHABLE: { message: 'The host of url cannot be resolved at the moment. Try again.' },
  POLICY_DENY: { message: 'Viewers can search memories, but not write them.' },
  MEMORY_NOT_FOUND: { message: 'No memory that you can access has this id.' },
  MEMORY_NOT_FAILED: {
    message: 'Only failed memories can be retried. This one is ready.',
    details: { status: 'ready' },
  },
  COLLECTION_NOT_FOUND: { message: 'No collection that you can access has this id.' },
  COLLECTION_NAME_TAKEN: { message: 'A team collection with this name already exists. Choose another name.' },
  COLLECTION_LIMIT_REACHED: {
    message: 'The workspace has 200 collections, the maximum. Delete one first.',
    details: { limit: 200 },
  },
  MEMORY_INFRA_NOT_READY: { message: 'Memory is starting. Try again in about 10 seconds.' },
  MEMORY_UNREACHABLE: {
    message:
      'Processing cannot start at the moment. The memories are stored and queued, and their charge was refunded.',
    details: { ids: ['3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11'] },
  },
  RUBRIC_NOT_FOUND: { message: 'You have access to no rubric with this id.' },
  RUBRIC_NOT_OWNED: {
    message: 'Another user created this rubric. Only that user, owners and admins can change it.',
  },
  RUBRIC_NAME_TAKEN: { message: 'Another rubric in the workspace has this name. Choose another one.' },
  RUBRIC_LIMIT_REACHED: {
    message: 'The workspace has 500 rubrics, the maximum. Delete one first.',
    details: { limit: 500 },
  },
  JUDGE_ANSWER_INVALID: {
    message:
      'The model did not answer with criteria of the rubric. You were not charged. Try again or use another model.',
    details: { unanswered: ['greeting'] },
  },
  EVALUATION_NOT_FOUND: { message: 'You have no evaluation with this id.' },
  JUDGE_BATCH_NOT_FOUND: { message: 'You have no batch with this id.' },
  VALIDATION_FAILED: {
    message: 'limit must be at most 100.',
    details: [{ path: 'limit', message: 'must be at most 100' }],
  },
  MALFORMED_JSON: { message: 'The body is not valid JSON.' },
  IDEMPOTENCY_IN_PROGRESS: { message: 'A request with this Idempotency-Key is in progress. Repeat it later.' },
  IDEMPOTENCY_NOT_REPLAYABLE: {
    message:
      'The request with this Idempotency-Key was carried out, but its response was a stream or too large to keep. Use a new key to run it again.',
    details: { status: 200, request_id: '5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42' },
  },
  IDEMPOTENCY_KEY_REUSED: {
    message: 'This Idempotency-Key was used with a different request. Use a new key for each request.',
  },
  UNAUTHORIZED: { message: 'Send an API key: Authorization: Bearer sk_...' },
  CROSS_ORIGIN_REQUEST: {
    message:
      'A request with a session cookie must come from a page of this server. Elsewhere, send Authorization: Bearer with a session token or an API key.',
  },
  FORBIDDEN: { message: 'Viewers have read-only access. Ask an owner or admin of the workspace for another role.' },
  WORKSPACE_NOT_FOUND: { message: 'You are not a member of a workspace with this id.' },
  NOT_FOUND: { message: 'The audio no longer exists.' },
  PAYLOAD_TOO_LARGE: { message: 'The body must be at most 64 KiB.' },
  UNSUPPORTED_MEDIA_TYPE: { message: 'Send the body as application/json.' },
  RANGE_NOT_SATISFIABLE: { message: 'The range is outside the audio, which has 48044 bytes.' },
  CLIENT_CANCELLED: { message: 'The client closed the connection.' },
  RATE_LIMITED: { message: 'The limit of 60 requests per minute is reached. Try again in 20 s.' },
  INTERNAL: { message: 'Internal error. Report it with the request id.' },
  SHUTTING_DOWN: { message: 'The server is shutting down. Try again.' },
  STORAGE_UNAVAILABLE: { message: 'The database cannot be reached. Try again shortly.' },
};
