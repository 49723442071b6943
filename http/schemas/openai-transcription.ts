import { Type } from 'typebox';
import type { PublicLanguage, PublicTranscript } from '../../actors/stt/transcriber.ts';
import { type FieldKinds, type FormFields, readForm } from '../form-fields.ts';
import { SUBTITLE_MEDIA_TYPES, subtitlesOf } from '../subtitles.ts';
import { validationFailed } from '../validation.ts';
import { responseOf } from './envelope.ts';
import { parseTranscriptionForm, type TranscriptionChoices, TranscriptionFormSchema } from './stt.ts';

const RESPONSE_FORMATS = ['json', 'text', 'verbose_json', 'srt', 'vtt'] as const;
const GRANULARITIES = ['word', 'segment'] as const;
const MAX_PROMPT_CHARACTERS = 8000;

/** Default names of OpenAI's clients. */
export const OPENAI_TRANSCRIPTION_MODELS = ['whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe'];

/** Documents the form of `POST /v1/audio/transcriptions`. `parseOpenaiTranscriptionForm` validates it. */
export const OpenaiTranscriptionFormSchema = Type.Object(
  {
    file: TranscriptionFormSchema.properties.file,
    model: Type.Optional(
      Type.String({
        default: 'whisper-1',
        description:
          'A model of type `stt` from GET /v1/models, or `whisper-1`, `gpt-4o-transcribe` or `gpt-4o-mini-transcribe`. The server chooses the model by language, whatever the name; `model` of `verbose_json` reports its choice.',
      }),
    ),
    language: TranscriptionFormSchema.properties.language,
    prompt: Type.Optional(
      Type.String({
        maxLength: MAX_PROMPT_CHARACTERS,
        description:
          'Topic of the audio, at most 8000 characters. A language model refines the transcript with it. Ignored on the free plan.',
      }),
    ),
    response_format: Type.Optional(
      Type.Enum([...RESPONSE_FORMATS], { default: 'json', description: 'Format of the transcript.' }),
    ),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'Ignored.' })),
    'timestamp_granularities[]': Type.Optional(
      Type.Array(Type.Enum([...GRANULARITIES]), {
        description:
          'Timestamps to return with `verbose_json`. Default: `segment`. The name without brackets is accepted, too.',
      }),
    ),
    stream: Type.Optional(Type.Literal(false, { description: 'Must be false.' })),
    workspace_id: TranscriptionFormSchema.properties.workspace_id,
  },
  { additionalProperties: false, examples: [{ file: 'audio', model: 'whisper-1', language: 'en' }] },
);

/** Fields for `receiveForm`. */
export const OPENAI_TRANSCRIPTION_FIELDS: FieldKinds = {
  model: 'once',
  language: 'once',
  prompt: 'once',
  response_format: 'once',
  temperature: 'once',
  'timestamp_granularities[]': 'repeated',
  timestamp_granularities: 'repeated',
  stream: 'once',
  workspace_id: 'once',
};

export interface OpenaiTranscriptionForm {
  model: string;
  format: (typeof RESPONSE_FORMATS)[number];
  withWords: boolean;
  withSegments: boolean;
  choices: TranscriptionChoices;
}

/** @throws TandemError `VALIDATION_FAILED` with every invalid field, or `unsupported_language` */
export function parseOpenaiTranscriptionForm(
  fields: FormFields,
  languages: readonly PublicLanguage[],
): OpenaiTranscriptionForm {
  const form = readForm(fields);
  const format = (form.choice('response_format', RESPONSE_FORMATS) ?? 'json') as OpenaiTranscriptionForm['format'];
  const prompt = form.text('prompt', MAX_PROMPT_CHARACTERS) ?? '';
  const model = form.text('model', 200) ?? 'whisper-1';
  form.number('temperature', { min: 0, max: 1 });
  if (form.boolean('stream')) {
    form.refuse('stream', 'must be false. Use the WebSocket /ws/stt to receive text while it is spoken');
  }
  const granularities = ['timestamp_granularities[]', 'timestamp_granularities'].flatMap((name) => {
    const given = form.list(name);
    if (given.some((one) => !GRANULARITIES.some((known) => known === one))) {
      form.refuse(name, `must be one of ${GRANULARITIES.join(', ')}`);
    }
    if (given.length > 0 && format !== 'verbose_json') form.refuse(name, 'requires response_format=verbose_json');
    return given;
  });
  if (form.invalid.length > 0) throw validationFailed(form.invalid);
  const withWords = granularities.includes('word');
  const choices = parseTranscriptionForm(
    { language: fields.language ?? '', context: prompt, return_timestamps: withWords ? 'word' : '' },
    languages,
  );
  const withSegments = granularities.length === 0 || granularities.includes('segment');
  return { model, format, withWords, withSegments, choices };
}

export function presentOpenaiTranscript(
  transcript: PublicTranscript,
  { form, languages }: { form: OpenaiTranscriptionForm; languages: readonly PublicLanguage[] },
): { type: string; body: string | object } {
  const { format, withWords, withSegments } = form;
  const { text, duration, language, model, words, segments } = transcript;
  const usage = { type: 'duration', seconds: duration };
  switch (format) {
    case 'json':
      return { type: JSON_TYPE, body: { text, usage } };
    case 'text':
      return { type: 'text/plain; charset=utf-8', body: `${text}\n` };
    case 'srt':
    case 'vtt':
      return { type: `${SUBTITLE_MEDIA_TYPES[format]}; charset=utf-8`, body: subtitlesOf(segments, format) };
    default: {
      const name = languages.find(({ language_id }) => language_id === language)?.name.toLowerCase();
      const body = {
        ...{ task: 'transcribe', language: name ?? language ?? '', duration, text, model },
        ...(withWords && { words: words.map(({ word, start, end }) => ({ word, start, end })) }),
        ...(withSegments && {
          segments: segments.map(({ id, start, end, text: segmentText }) => ({
            id,
            start,
            end,
            text: segmentText,
            ...UNMEASURED,
          })),
        }),
        usage,
      };
      return { type: JSON_TYPE, body };
    }
  }
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** Fields that OpenAI's clients expect and our recognisers do not measure. */
const UNMEASURED = { seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 0, no_speech_prob: 0 };

const UsageSchema = Type.Object({
  type: Type.Literal('duration'),
  seconds: Type.Number({ description: 'Length of the audio, in seconds.', examples: [1.62] }),
});
const TextSchema = Type.String({ description: 'Transcript.', examples: ['hello how may i help you'] });
const StartSchema = Type.Number({ description: 'Start, in seconds.', examples: [0.12] });
const EndSchema = Type.Number({ description: 'End, in seconds.', examples: [1.5] });
const notMeasured = () => Type.Number({ description: 'Not measured: always 0.', examples: [0] });

const VerboseSchema = Type.Object({
  task: Type.Literal('transcribe'),
  language: Type.String({ description: 'English name of the language, in lower case.', examples: ['english'] }),
  duration: Type.Number({ description: 'Length of the audio, in seconds.', examples: [1.62] }),
  text: TextSchema,
  model: Type.String({ description: 'Engine and model that transcribed.', examples: ['pocketsphinx/en-us'] }),
  words: Type.Optional(
    Type.Array(Type.Object({ word: Type.String({ examples: ['hello'] }), start: StartSchema, end: EndSchema }), {
      description: 'Words, with the granularity `word`.',
    }),
  ),
  segments: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.Integer({ examples: [0] }),
        ...{ start: StartSchema, end: EndSchema, text: TextSchema },
        tokens: Type.Array(Type.Integer(), { description: 'Not available: always empty.', examples: [[]] }),
        ...{ seek: notMeasured(), temperature: notMeasured(), avg_logprob: notMeasured() },
        ...{ compression_ratio: notMeasured(), no_speech_prob: notMeasured() },
      }),
      { description: 'Segments, with the granularity `segment`.' },
    ),
  ),
  usage: UsageSchema,
});

const EXAMPLE_SEGMENTS = [{ start: 0.12, end: 1.5, text: 'hello how may i help you' }];
const textExample = (example: string) => ({ schema: Type.String({ examples: [example] }) });

export const OpenaiTranscriptionResponse = responseOf({
  description: 'The transcript, in the requested `response_format`.',
  content: {
    'application/json': {
      schema: Type.Union([Type.Object({ text: TextSchema, usage: UsageSchema }), VerboseSchema]),
    },
    'text/plain': textExample(`${EXAMPLE_SEGMENTS[0]!.text}\n`),
    [SUBTITLE_MEDIA_TYPES.srt]: textExample(subtitlesOf(EXAMPLE_SEGMENTS, 'srt')),
    [SUBTITLE_MEDIA_TYPES.vtt]: textExample(subtitlesOf(EXAMPLE_SEGMENTS, 'vtt')),
  },
});
