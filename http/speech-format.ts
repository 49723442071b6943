import Negotiator from 'negotiator';
import { TandemError } from '../machines/errors.ts';

/** Media types by encoding. `Accept: audio/*` selects the first. */
export const SPEECH_MEDIA_TYPES = {
  WAV: ['audio/wav', 'audio/x-wav', 'audio/wave'],
  MP3: ['audio/mpeg', 'audio/mp3'],
  OGG_OPUS: ['audio/ogg', 'audio/opus'],
  LINEAR16: ['audio/pcm'],
  MULAW: ['audio/PCMU', 'audio/basic'],
  ALAW: ['audio/PCMA'],
} as const;

type AudioEncoding = keyof typeof SPEECH_MEDIA_TYPES;

const LINES = 'application/x-ndjson';
const ENCODINGS = Object.keys(SPEECH_MEDIA_TYPES) as AudioEncoding[];
const ENCODING_OF = new Map<string, AudioEncoding>(
  ENCODINGS.flatMap((encoding) => SPEECH_MEDIA_TYPES[encoding].map((type) => [type, encoding] as const)),
);

export interface SpeechFormat {
  encoding: AudioEncoding;
  /** Null: lines of JSON. */
  mediaType: string | null;
}

/**
 * Selects the response format by `Accept` (RFC 9110 §12.5.1): lines of JSON, or plain audio if the client prefers an
 * audio type. Without a requested encoding, the audio type decides.
 * @throws TandemError `VALIDATION_FAILED` if the client accepts audio, but not in the requested encoding
 */
export function speechFormatFor(accept: string | undefined, requested: AudioEncoding | undefined): SpeechFormat {
  const negotiator = new Negotiator({ headers: { accept } });
  const preferred = negotiator.mediaType([LINES, ...ENCODING_OF.keys()]);
  if (preferred === undefined || preferred === LINES) return { encoding: requested ?? 'LINEAR16', mediaType: null };
  if (requested === undefined) return { encoding: ENCODING_OF.get(preferred)!, mediaType: preferred };
  const mediaType = negotiator.mediaType([LINES, ...SPEECH_MEDIA_TYPES[requested]]);
  if (mediaType === undefined) {
    throw new TandemError(
      'VALIDATION_FAILED',
      `audio_encoding ${requested} does not match the Accept header. Accept ${SPEECH_MEDIA_TYPES[requested][0]}, or leave audio_encoding out.`,
    );
  }
  return { encoding: requested, mediaType: mediaType === LINES ? null : mediaType };
}
