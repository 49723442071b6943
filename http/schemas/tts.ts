import { Type } from 'typebox';
import { BUILT_IN_VOICES } from '../../speech/synthesis/voices.ts';
import { responseOf } from './envelope.ts';

/** Characters are code points: that is what `maxLength` counts. */
const TextSchema = Type.String({
  minLength: 1,
  maxLength: 5000,
  pattern: '\\S',
  description: 'What to say, with at least one character that is no white space. Each character is billed.',
});

const VoiceIdSchema = Type.String({
  maxLength: 64,
  default: 'en-us',
  description: 'Id of a voice, or the name of a built-in one such as `en-us` or `hi`.',
});

const SpeedSchema = Type.Number({ minimum: 0.5, maximum: 2, default: 1, description: 'Factor on the pace.' });

export const SpeakBody = Type.Object(
  {
    text: TextSchema,
    voice_id: Type.Optional(VoiceIdSchema),
    speed: Type.Optional(SpeedSchema),
    enhance: Type.Optional(Type.Boolean({ default: true, description: 'Of no effect on the built-in voices.' })),
    stability: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100, default: 50, description: 'Of no effect on the built-in voices.' }),
    ),
    similarity: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100, default: 75, description: 'Of no effect on the built-in voices.' }),
    ),
  },
  { additionalProperties: false, examples: [{ text: 'Your call is being connected.', speed: 1 }] },
);

export const AUDIO_ENCODINGS = ['LINEAR16', 'WAV', 'MULAW', 'ALAW'] as const;
export const SAMPLE_RATES_HZ = [8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000] as const;

const EncodingSchema = Type.Enum([...AUDIO_ENCODINGS], {
  description: 'LINEAR16 (default) is 16-bit little-endian without a header; WAV is the same behind one.',
});
const SampleRateSchema = Type.Enum([...SAMPLE_RATES_HZ], { description: 'Default 24000.' });

export const SynthesizeBody = Type.Object(
  {
    text: TextSchema,
    voice_id: Type.Optional(VoiceIdSchema),
    speed: Type.Optional(SpeedSchema),
    wpm: Type.Optional(
      Type.Number({
        minimum: 60,
        maximum: 400,
        default: 137,
        description: 'Pace in words per minute, nearly. Times speed, it is kept between 80 and 450.',
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
    voice_id: BUILT_IN_VOICES[0]!.id,
    cost_usd: 0.000075,
  },
];

/** One JSON object a line. */
export function spokenLines(headers: Record<string, unknown>) {
  return responseOf({
    description:
      'Lines of JSON: `chunk` with audio in base64, again and again, then `complete`; or `error` with a message when it fails half-way, and then nothing is charged.',
    headers,
    content: {
      'application/x-ndjson': {
        schema: Type.String({ examples: [`${LINES.map((line) => JSON.stringify(line)).join('\n')}\n`] }),
      },
    },
  });
}
