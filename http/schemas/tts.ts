import { Type } from 'typebox';
import { DEFAULT_WORDS_PER_MINUTE, USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import { responseOf } from './envelope.ts';

export const AUDIO_ENCODINGS = ['LINEAR16', 'WAV', 'MULAW', 'ALAW', 'MP3', 'OGG_OPUS'] as const;
export const SAMPLE_RATES_HZ = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;

const EncodingSchema = Type.Enum([...AUDIO_ENCODINGS], {
  description:
    'LINEAR16 (default) is 16-bit little-endian without a header, WAV the same behind one; MULAW and ALAW are G.711 without a header; MP3 and OGG_OPUS are whole files.',
});
const SampleRateSchema = Type.Enum([...SAMPLE_RATES_HZ], {
  description: 'Default 24000. OGG_OPUS is played at 48000 whatever it was made of.',
});

/** What all speech operations take. */
export const SpeakBody = Type.Object(
  {
    text: Type.String({
      minLength: 1,
      maxLength: 5000,
      pattern: '\\S',
      description:
        'What to say: plain text, or SSML in a `<speak>` element (`p`, `s`, `break`, `say-as`, `prosody`, `emphasis`, `phoneme`, `sub`). Each character is billed, markup is not.',
    }),
    voice_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        default: 'en-us',
        description: 'Id of a voice (`GET /voices` lists them), or the short name of one, such as `en-us` or `hi`.',
      }),
    ),
    speed: Type.Optional(
      Type.Number({ minimum: 0.5, maximum: 2, default: USUAL_STYLE.speed, description: 'Factor on the pace.' }),
    ),
    wpm: Type.Optional(
      Type.Number({
        minimum: 60,
        maximum: 400,
        description: `Pace in words per minute, pauses included. Default: that of the voice, else ${DEFAULT_WORDS_PER_MINUTE}. Times speed.`,
      }),
    ),
    stability: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        default: USUAL_STYLE.stability,
        description:
          'How little the pitch moves: 0 is the liveliest, 50 as the voice does by itself, 100 almost monotone.',
      }),
    ),
    similarity: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        default: USUAL_STYLE.similarity,
        description:
          "How far the engine's sound is brought to the voice's own long-term spectrum: 0 leaves it alone, 100 goes all the way. Without effect on voices that are the engine's own sound.",
      }),
    ),
    enhance: Type.Optional(
      Type.Boolean({
        default: USUAL_STYLE.enhance,
        description: 'Brings speech to one level and makes it clearer. False leaves it as the engine made it.',
      }),
    ),
    audio_config: Type.Optional(
      Type.Object(
        {
          audio_encoding: Type.Optional(EncodingSchema),
          sample_rate_hertz: Type.Optional(SampleRateSchema),
        },
        { additionalProperties: false },
      ),
    ),
    timestamp_type: Type.Optional(
      Type.Enum(['WORD', 'NONE'], { description: 'WORD (default) puts word times into the last line.' }),
    ),
    sample_rate: Type.Optional(SampleRateSchema),
    audio_encoding: Type.Optional(EncodingSchema),
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

/** One JSON object a line. */
export function spokenLines(headers: Record<string, unknown>) {
  return responseOf({
    description:
      'Lines of JSON: `chunk` with audio in base64, again and again, then `complete`; or `error` with a message when it fails half-way, and then nothing is charged, unless the credentials have ended.',
    headers,
    content: {
      'application/x-ndjson': {
        schema: Type.String({ examples: [`${LINES.map((line) => JSON.stringify(line)).join('\n')}\n`] }),
      },
    },
  });
}
