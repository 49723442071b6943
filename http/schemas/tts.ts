import { Type } from 'typebox';
import { DEFAULT_WORDS_PER_MINUTE, USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import { SPEECH_MEDIA_TYPES } from '../speech-format.ts';
import { responseOf } from './envelope.ts';

export const AUDIO_ENCODINGS = ['LINEAR16', 'WAV', 'MULAW', 'ALAW', 'MP3', 'OGG_OPUS'] as const;
export const SAMPLE_RATES_HZ = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;

const EncodingSchema = Type.Enum([...AUDIO_ENCODINGS], {
  description:
    'Audio encoding. `LINEAR16` (default): 16-bit little-endian PCM without header. `WAV`: the same with a header. `MULAW`, `ALAW`: G.711 without header. `MP3`, `OGG_OPUS`: complete files.',
});
const SampleRateSchema = Type.Enum([...SAMPLE_RATES_HZ], {
  description: 'Sample rate in Hz. Default: 24000. `OGG_OPUS` always decodes at 48000.',
});

export const SpeakBody = Type.Object(
  {
    text: Type.String({
      minLength: 1,
      maxLength: 5000,
      pattern: '\\S',
      description:
        'Text to synthesise: plain text, or SSML in a `<speak>` element (`p`, `s`, `break`, `say-as`, `prosody`, `emphasis`, `phoneme`, `sub`, `mark`, `lang`, `voice`). Billed per character, without markup.',
    }),
    voice_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        default: 'en-us',
        description: 'Voice: an id from GET /voices, or a short name such as `en-us` or `hi`.',
      }),
    ),
    speed: Type.Optional(
      Type.Number({ minimum: 0.5, maximum: 2, default: USUAL_STYLE.speed, description: 'Speed factor.' }),
    ),
    wpm: Type.Optional(
      Type.Number({
        minimum: 60,
        maximum: 400,
        description: `Pace in words per minute, including pauses; multiplied by \`speed\`. Default: the pace of the voice, or else ${DEFAULT_WORDS_PER_MINUTE}.`,
      }),
    ),
    stability: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        default: USUAL_STYLE.stability,
        description:
          'Stability of the pitch: 0 varies most, 50 is the natural intonation of the voice, 100 is monotone.',
      }),
    ),
    similarity: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        default: USUAL_STYLE.similarity,
        description:
          "How closely the engine's output is equalised to the long-term spectrum of the voice: 0 not at all, 100 completely. No effect on the engine's own voices.",
      }),
    ),
    enhance: Type.Optional(
      Type.Boolean({
        default: USUAL_STYLE.enhance,
        description: 'Normalise the level and improve clarity. False returns the audio as the engine generated it.',
      }),
    ),
    audio_config: Type.Optional(
      Type.Object(
        {
          audio_encoding: Type.Optional(EncodingSchema),
          sample_rate_hertz: Type.Optional(SampleRateSchema),
        },
        { additionalProperties: false, description: 'Format of the audio.' },
      ),
    ),
    timestamp_type: Type.Optional(
      Type.Enum(['WORD', 'NONE'], {
        description: '`WORD` (default) adds word timestamps to the last line. Times of SSML marks are always there.',
      }),
    ),
    sample_rate: Type.Optional({
      ...SampleRateSchema,
      description: 'Deprecated: use `audio_config.sample_rate_hertz`, which takes precedence.',
    }),
    audio_encoding: Type.Optional({
      ...EncodingSchema,
      description: 'Deprecated: use `audio_config.audio_encoding`, which takes precedence.',
    }),
  },
  {
    additionalProperties: false,
    examples: [
      {
        text: 'Your order 4711 is on its way.',
        voice_id: 'en-us',
        audio_config: { audio_encoding: 'MULAW', sample_rate_hertz: 8000 },
      },
    ],
  },
);

const LINES = [
  { type: 'chunk', result: { audioContent: 'AAABAP//AgD9/w==' } },
  {
    type: 'complete',
    result: {
      timestampInfo: {
        wordAlignment: { words: ['Hello'], wordStartTimeSeconds: [0], wordEndTimeSeconds: [0.32] },
      },
      usage: { processedCharactersCount: 5 },
    },
    duration_seconds: 0.32,
    sample_rate_hertz: 24000,
    audio_encoding: 'LINEAR16',
    voice_id: '7b1f6c0e-52d5-4c0a-9d0e-3f1f0a2f4d11',
    cost_usd: 0.000075,
  },
];

export const SpokenLines = responseOf({
  description:
    'Newline-delimited JSON: any number of `chunk` lines with base64 audio, then one `complete` line. For SSML with `mark`, the `complete` line has `result.timestampInfo.marks`: `[{name, time_seconds}]`. If synthesis fails midway, an `error` line ends the stream and the charge is refunded, unless the credentials were revoked. With an audio type in `Accept`: the audio itself, and a failure midway breaks the connection off.',
  content: {
    'application/x-ndjson': {
      schema: Type.String({ examples: [`${LINES.map((line) => JSON.stringify(line)).join('\n')}\n`] }),
    },
    ...Object.fromEntries(
      Object.values(SPEECH_MEDIA_TYPES).map(([type]) => [type, { schema: Type.String({ format: 'binary' }) }]),
    ),
  },
});
