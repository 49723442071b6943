/** Data of each event (contracts.md, Webhooks). */
export interface WebhookEventData {
  /** `audio_url` plays for 24 hours; null if the audio could not be stored. */
  'tts.completed': { id: string; text: string; voice_id: string; audio_url: string | null; duration: number };
  'tts.failed': { id: string; voice_id: string; error: string };
  'stt.completed': {
    id: string;
    text: string;
    language: string;
    duration: number;
    snr_db: number | null;
    source: 'rest' | 'websocket';
  };
  'stt.failed': { id: string; error: string };
  'voice.created': { voice_id: string; name: string; language: string };
  'voice.ready': { voice_id: string; name: string; language: string };
  'voice.failed': { voice_id: string; error: string };
  'trunk.down': TrunkNews;
  'trunk.up': TrunkNews;
  'call.initiated': CallNews;
  'call.ringing': CallNews;
  'call.answered': CallNews;
  'call.bridged': CallNews;
  'call.completed': CallNews;
  'call.not_answered': CallNews;
  'call.failed': CallNews;
  'call.temporaryfailed': CallNews;
}

/** Fields as in the call's event log. Deliveries may arrive in any order; `sequence` orders those of one call. */
interface CallNews {
  call_id: string;
  reference_id: string;
  sequence: number;
  state: string;
  direction: 'outbound' | 'inbound';
  /** Leg that rang, answered or ended the call. */
  leg: 'agent' | 'customer' | null;
  sip_status: number | null;
  hangup_cause: string | null;
  metadata: Readonly<Record<string, unknown>> | null;
}

/** `reason` and `since` as in the trunk's `reachability`. */
interface TrunkNews {
  trunk_id: string;
  name: string;
  reason: string;
  since: string;
}

export type WebhookEvent = keyof WebhookEventData;
export type CallWebhookEvent = Extract<WebhookEvent, `call.${string}`>;

const CALL_NEWS: CallNews = {
  call_id: 'call_00000000-0000-4000-8000-000000000000',
  reference_id: 'order-1042',
  sequence: 5,
  state: 'initiated',
  direction: 'outbound',
  leg: null,
  sip_status: null,
  hangup_cause: null,
  metadata: { order: 1042 },
};

/** Example events for tests of an endpoint and for the documentation. */
export const WEBHOOK_EXAMPLES: { readonly [Event in WebhookEvent]: WebhookEventData[Event] } = {
  'tts.completed': {
    id: 'tts_example',
    text: 'Hello, how may I help you?',
    voice_id: '00000000-0000-4000-8000-000000000000',
    audio_url:
      'https://voice.example.com/media/speech/example/tts_example.wav?expires=1767322800&signature=c2lnbmF0dXJl',
    duration: 1.62,
  },
  'tts.failed': { id: 'tts_example', voice_id: '00000000-0000-4000-8000-000000000000', error: 'TTS_UNAVAILABLE' },
  'stt.completed': {
    id: 'stt_example',
    text: 'Hello, how may I help you?',
    language: 'en',
    duration: 1.62,
    snr_db: 24.5,
    source: 'rest',
  },
  'stt.failed': { id: 'stt_example', error: 'RECOGNITION_FAILED' },
  'voice.created': { voice_id: '00000000-0000-4000-8000-000000000000', name: 'Example', language: 'en' },
  'voice.ready': { voice_id: '00000000-0000-4000-8000-000000000000', name: 'Example', language: 'en' },
  'voice.failed': { voice_id: '00000000-0000-4000-8000-000000000000', error: 'TRAINING_FAILED' },
  'trunk.down': {
    trunk_id: '00000000-0000-4000-8000-000000000000',
    name: 'Carrier',
    reason: 'no_response',
    since: '2026-01-31T09:31:52.300Z',
  },
  'trunk.up': {
    trunk_id: '00000000-0000-4000-8000-000000000000',
    name: 'Carrier',
    reason: 'options_answered',
    since: '2026-01-31T09:35:52.300Z',
  },
  'call.initiated': { ...CALL_NEWS, sequence: 2 },
  'call.ringing': { ...CALL_NEWS, sequence: 3, leg: 'agent', sip_status: 180 },
  'call.answered': { ...CALL_NEWS, sequence: 4, leg: 'agent', sip_status: 200 },
  'call.bridged': { ...CALL_NEWS, sequence: 8, state: 'bridged' },
  'call.completed': { ...CALL_NEWS, sequence: 9, state: 'completed', leg: 'customer', hangup_cause: 'NORMAL_CLEARING' },
  'call.not_answered': { ...CALL_NEWS, state: 'failed', leg: 'customer', hangup_cause: 'NO_ANSWER' },
  'call.failed': {
    ...CALL_NEWS,
    state: 'failed',
    leg: 'customer',
    sip_status: 404,
    hangup_cause: 'UNALLOCATED_NUMBER',
  },
  'call.temporaryfailed': {
    ...CALL_NEWS,
    state: 'failed',
    leg: 'agent',
    sip_status: 503,
    hangup_cause: 'NORMAL_TEMPORARY_FAILURE',
  },
};

export const WEBHOOK_EVENTS = Object.keys(WEBHOOK_EXAMPLES) as readonly WebhookEvent[];

/** Receivers and gateways accept small bodies; Standard Webhooks recommends less than 20 kB. */
export const MAX_WEBHOOK_BODY_BYTES = 19_999;

export interface WebhookMessage<Event extends WebhookEvent> {
  event: Event;
  data: WebhookEventData[Event];
  at: Date;
  test?: boolean;
}

/**
 * Returns the bytes to sign and send: `{event, timestamp, data}`. If they exceed the limit, cuts the longest text
 * between characters and sets `data.truncated: true`. The whole text is available under `data.id`.
 * @throws RangeError if there is no text left to cut, which the types rule out
 */
export function webhookBody<Event extends WebhookEvent>({ event, data, at, test }: WebhookMessage<Event>): string {
  const marked: Record<string, unknown> = test ? { ...data, test: true } : { ...data };
  const whole = bodyOf(event, at, marked);
  if (fits(whole)) return whole;
  marked.truncated = true;
  for (;;) {
    const excessBytes = Buffer.byteLength(bodyOf(event, at, marked)) - MAX_WEBHOOK_BODY_BYTES;
    if (excessBytes <= 0) return bodyOf(event, at, marked);
    const [field, text] = longestText(marked);
    if (text === '') throw new RangeError(`a ${event} event does not fit into ${MAX_WEBHOOK_BODY_BYTES} bytes`);
    marked[field] = withoutLastBytes(text, excessBytes);
  }
}

function bodyOf(event: WebhookEvent, at: Date, data: Record<string, unknown>): string {
  return JSON.stringify({ event, timestamp: at.toISOString(), data });
}

function fits(body: string): boolean {
  return Buffer.byteLength(body) <= MAX_WEBHOOK_BODY_BYTES;
}

function longestText(data: Record<string, unknown>): [field: string, text: string] {
  const texts = Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return texts.reduce((longest, entry) => (entry[1].length > longest[1].length ? entry : longest), ['', '']);
}

/** Removes characters that take at least this many bytes in JSON, where a line feed takes two and some take six. */
function withoutLastBytes(text: string, bytes: number): string {
  const characters = Array.from(text);
  let left = bytes;
  while (left > 0 && characters.length > 0) {
    left -= Buffer.byteLength(JSON.stringify(characters.pop())) - 2;
  }
  return characters.join('');
}
