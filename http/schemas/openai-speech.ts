import { Type } from 'typebox';
import { OPENAI_VOICE_NAMES } from '../../speech/voices/catalogue.ts';
import { responseOf } from './envelope.ts';

/** Formats of the encoders, with media types. AAC and FLAC are not supported. */
export const OPENAI_SPEECH_FORMATS = {
  mp3: { encoding: 'MP3', mediaType: 'audio/mpeg' },
  opus: { encoding: 'OGG_OPUS', mediaType: 'audio/ogg' },
  wav: { encoding: 'LINEAR16', mediaType: 'audio/wav' },
  pcm: { encoding: 'LINEAR16', mediaType: 'audio/pcm' },
} as const;

/** Names of OpenAI's clients, and those of GET /v1/models. */
export const OPENAI_SPEECH_MODELS = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts', 'svc Quality', 'svc Fast'];

const VoiceNameSchema = Type.String({ minLength: 1, maxLength: 64 });

export const OpenaiSpeechBody = Type.Object(
  {
    input: Type.String({
      minLength: 1,
      maxLength: 4096,
      pattern: '\\S',
      description:
        'Text to synthesise, up to 4096 characters: plain text, or SSML in a `<speak>` element. Must not be blank. Billed per character, without markup.',
    }),
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        default: 'tts-1',
        description:
          '`tts-1`, `tts-1-hd`, `gpt-4o-mini-tts`, or a model of type `tts` from GET /v1/models. The voice determines the engine, whatever the name.',
      }),
    ),
    voice: Type.Optional(
      Type.Union([VoiceNameSchema, Type.Object({ id: VoiceNameSchema }, { additionalProperties: false })], {
        description: `Voice: an id or short name from GET /voices, or one of OpenAI's names (${OPENAI_VOICE_NAMES.join(', ')}), which selects a built-in voice of the same gender that reads the script of the text. Default: the default voice of the server.`,
        examples: ['alloy'],
      }),
    ),
    response_format: Type.Optional(
      Type.Enum(Object.keys(OPENAI_SPEECH_FORMATS) as (keyof typeof OPENAI_SPEECH_FORMATS)[], {
        default: 'mp3',
        description:
          'Format of the audio, at 24 kHz: MP3, Opus in Ogg, WAV with 16-bit PCM, or the same PCM without header, little-endian.',
      }),
    ),
    speed: Type.Optional(
      Type.Number({
        minimum: 0.25,
        maximum: 4,
        default: 1,
        description: 'Speed factor. eSpeak NG speaks at most 2.3 times as fast as by default.',
      }),
    ),
    instructions: Type.Optional(
      Type.String({ maxLength: 4096, description: 'Ignored: the engines cannot follow instructions.' }),
    ),
    stream_format: Type.Optional(Type.Literal('audio', { description: 'Must be `audio`.' })),
  },
  {
    additionalProperties: false,
    examples: [{ model: 'tts-1', input: 'Your order 4711 is on its way.', voice: 'alloy', response_format: 'mp3' }],
  },
);

export const OpenaiSpeechResponse = responseOf({
  description:
    'The audio, streamed while it is synthesised. If synthesis fails midway, the connection breaks off and the charge is refunded.',
  content: Object.fromEntries(
    Object.values(OPENAI_SPEECH_FORMATS).map(({ mediaType }) => [
      mediaType,
      { schema: Type.String({ format: 'binary' }) },
    ]),
  ),
});
