import { Type } from 'typebox';
import type { LiveSpeechEncoding } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { SAMPLE_RATES_HZ } from '../schemas/tts.ts';
import { compileCheck, type InvalidField, validationFailed } from '../validation.ts';
import { UnknownMessageType } from './client-messages.ts';

/** A parsed text message, with names as in Deepgram's API. Ignores unknown fields. */
export type TtsMessage = { type: 'Speak'; text: string } | { type: 'Flush' | 'Clear' | 'Close' | 'KeepAlive' };

const checkSpeak = compileCheck(Type.Object({ text: Type.String({ maxLength: 5000 }) }));

/** @throws TandemError `MALFORMED_JSON`, `VALIDATION_FAILED`; UnknownMessageType */
export function readTtsMessage(frame: string): TtsMessage {
  const message = parse(frame);
  const { type, text } = (message ?? {}) as { type?: unknown; text?: unknown };
  switch (type) {
    case 'Speak': {
      const refusal = checkSpeak(message);
      if (refusal !== null) throw refusal;
      return { type, text: text as string };
    }
    case 'Flush':
    case 'Clear':
    case 'Close':
    case 'KeepAlive':
      return { type };
    default:
      throw new UnknownMessageType(`unknown message type: ${typeof type === 'string' ? type.slice(0, 64) : 'none'}`);
  }
}

function parse(frame: string): unknown {
  try {
    return JSON.parse(frame);
  } catch (cause) {
    throw new TandemError('MALFORMED_JSON', 'A text frame must contain one JSON object.', { cause });
  }
}

export interface TtsQuery {
  voiceId: string | null;
  format: { encoding: LiveSpeechEncoding; sampleRateHz: number };
  speed: number;
}

const ENCODINGS = new Map<string, LiveSpeechEncoding>([
  ['linear16', 'LINEAR16'],
  ['mulaw', 'MULAW'],
  ['alaw', 'ALAW'],
]);

/** @throws TandemError `VALIDATION_FAILED` */
export function readTtsQuery(query: URLSearchParams): TtsQuery {
  const voiceId = query.get('voice_id');
  const encoding = ENCODINGS.get((query.get('encoding') ?? 'linear16').toLowerCase());
  const sampleRateHz = Number(query.get('sample_rate') ?? 24_000);
  const speed = Number(query.get('speed') ?? 1);
  const problems: InvalidField[] = [];
  if (voiceId !== null && (voiceId === '' || voiceId.length > 64)) {
    problems.push({ path: 'voice_id', message: 'must have 1 to 64 characters' });
  }
  if (encoding === undefined) problems.push({ path: 'encoding', message: 'must be linear16, mulaw or alaw' });
  if (!SAMPLE_RATES_HZ.some((each) => each === sampleRateHz)) {
    problems.push({ path: 'sample_rate', message: `must be one of ${SAMPLE_RATES_HZ.join(', ')}` });
  }
  if (!(speed >= 0.5 && speed <= 2)) problems.push({ path: 'speed', message: 'must be a number from 0.5 to 2' });
  if (problems.length > 0 || encoding === undefined) throw validationFailed(problems);
  return { voiceId, format: { encoding, sampleRateHz }, speed };
}
