import { type TProperties, type TSchema, Type } from 'typebox';
import type { PublicLanguage, TranscribeRequest } from '../../actors/stt/transcriber.ts';
import { WARNING_CODES } from '../../actors/stt/transcriber.ts';
import { TandemError } from '../../machines/errors.ts';
import { type FieldKinds, type Form, type FormFields, readForm } from '../form-fields.ts';
import { languageOfTag } from '../language-tag.ts';
import { validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';
import { WorkspaceIdSchema } from './workspace.ts';

/** Documents the form of `POST /stt`. `parseTranscriptionForm` validates it. */
export const TranscriptionFormSchema = Type.Object(
  {
    file: Type.String({
      format: 'binary',
      description:
        'Audio file, up to 25 MB and 70 minutes: any container that ffmpeg decodes, WAV and AU with PCM or G.711, or raw 8 kHz G.711 (file extension .ulaw, .mulaw or .alaw, or media type audio/basic, audio/PCMU or audio/PCMA).',
    }),
    language: Type.Optional(
      Type.String({
        default: 'auto',
        description:
          'Spoken language: an ISO 639-1 code from GET /stt/languages, a tag with a region such as `en-IN`, or `auto` to detect it.',
        examples: ['en'],
      }),
    ),
    languages: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description: 'Candidate languages for detection, as a comma-separated list, a JSON array, or a repeated field.',
        examples: ['en,hi'],
      }),
    ),
    diarize: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Label the speakers. Adds 30 percent to the price. A two-channel recording of a call is labelled by channel.',
      }),
    ),
    min_speakers: Type.Optional(
      Type.Integer({ description: 'Minimum number of speakers, with `diarize`. 0 or less means no minimum.' }),
    ),
    max_speakers: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 20, description: 'Maximum number of speakers, with `diarize`.' }),
    ),
    context: Type.Optional(
      Type.String({
        maxLength: 8000,
        description:
          'Topic of the audio, at most 8000 characters. A language model refines the transcript with it. Ignored on the free plan, with the warning `llm_refinement_not_in_plan`.',
      }),
    ),
    keywords: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description:
          'Terms to boost, as a comma-separated list, a JSON array, whose items may contain commas, or a repeated field; at most 200 of 100 characters. Append `:weight`, from 0 to 10, to change the weight of a term. Default weight: 1.',
        examples: ['Tandem:3,click-to-call'],
      }),
    ),
    return_timestamps: Type.Optional(
      Type.Literal('word', { description: '`word` adds the start and end of each word.' }),
    ),
    include_confidence: Type.Optional(
      Type.Boolean({ default: false, description: 'Add the words, with the confidence of each, 0 to 1.' }),
    ),
    script_correction: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'For mixed Hindi and English: write each word in the script of its language.',
      }),
    ),
    min_split_sec: Type.Optional(
      Type.Number({
        minimum: 1,
        maximum: 600,
        default: 20,
        description: 'Minimum length in seconds of the chunks that long audio is split into, at silences.',
      }),
    ),
    workspace_id: Type.Optional(WorkspaceIdSchema),
  },
  {
    additionalProperties: false,
    examples: [{ file: 'audio', language: 'en', diarize: false, return_timestamps: 'word' }],
  },
);

const { file: _file, ...OPTIONS } = TranscriptionFormSchema.properties;

export const TranscriptionUrlSchema = Type.Object(
  {
    url: Type.String({
      format: 'uri',
      maxLength: 2048,
      description:
        'Public https address of an audio file, up to 25 MB and 70 minutes. Redirects are not followed. Addresses in private networks are rejected, unless the operator lists them in CALLBACK_ALLOW_CIDRS.',
      examples: ['https://files.example.com/call.mp3'],
    }),
    ...OPTIONS,
  },
  {
    additionalProperties: false,
    examples: [{ url: 'https://files.example.com/call.mp3', language: 'en', diarize: true, keywords: ['Tandem:3'] }],
  },
);

const { workspace_id: _workspaceId, ...QUERY_OPTIONS } = OPTIONS;

export const TranscriptionQuerySchema = Type.Object(
  Object.fromEntries(
    Object.entries(QUERY_OPTIONS).map(([name, schema]) => {
      const { description } = schema as { description?: string };
      return [name, Type.Optional({ ...schema, description: `Only if the body is audio. ${description}` })];
    }),
  ) as unknown as TProperties,
);

/** Fields for `receiveForm`. */
export const TRANSCRIPTION_FIELDS: FieldKinds = Object.fromEntries(
  Object.keys(TranscriptionFormSchema.properties)
    .filter((name) => name !== 'file')
    .map((name) => [name, name === 'languages' || name === 'keywords' ? 'repeated' : 'once']),
);

export type TranscriptionChoices = Omit<
  TranscribeRequest,
  'workspaceId' | 'userId' | 'apiKeyId' | 'plan' | 'fileName' | 'mediaType'
>;

/** @throws TandemError `VALIDATION_FAILED` with every invalid field, or `unsupported_language` */
export function parseTranscriptionForm(fields: FormFields, languages: readonly PublicLanguage[]): TranscriptionChoices {
  const form = readForm(fields);
  const spoken = languagesOf(form);
  const minSpeakers = form.integer('min_speakers', { max: 20 });
  const parsed = {
    diarize: form.boolean('diarize'),
    minSpeakers: minSpeakers !== null && minSpeakers > 0 ? minSpeakers : null,
    maxSpeakers: form.integer('max_speakers', { min: 1, max: 20 }),
    context: form.text('context', 8000),
    keywords: keywordsOf(form),
    includeWords: form.choice('return_timestamps', ['word']) !== null || form.boolean('include_confidence'),
    includeConfidence: form.boolean('include_confidence'),
    scriptCorrection: form.boolean('script_correction'),
    minSplitMs: (form.number('min_split_sec', { min: 1, max: 600 }) ?? 20) * 1000,
  };
  if (parsed.minSpeakers !== null && parsed.maxSpeakers !== null && parsed.minSpeakers > parsed.maxSpeakers) {
    form.refuse('min_speakers', 'must be at most max_speakers');
  }
  if (form.invalid.length > 0) throw validationFailed(form.invalid);
  requireSupported(spoken, languages);
  return { ...parsed, languages: spoken };
}

/** @throws TandemError `unsupported_language` */
function requireSupported(spoken: readonly string[] | null, languages: readonly PublicLanguage[]): void {
  const unsupported = spoken?.find((code) => !languages.some(({ language_id, rest }) => rest && language_id === code));
  if (unsupported === undefined) return;
  const code = JSON.stringify(unsupported.slice(0, 20));
  throw new TandemError(
    'unsupported_language',
    `Language ${code} is not supported. GET /stt/languages lists the supported ones.`,
  );
}

/** Null: detect the language. */
function languagesOf(form: Form): string[] | null {
  const [language = 'auto', ...more] = form.list('language').map(languageOfTag);
  const languages = [...new Set(form.list('languages').map(languageOfTag))];
  if (more.length > 0) form.refuse('language', 'must be one language. Send several in languages');
  if (languages.length > 1 && languages.includes('auto')) form.refuse('languages', 'must not combine auto with others');
  if (languages.length === 0 || languages[0] === 'auto') return language === 'auto' ? null : [language];
  if (language !== 'auto' && !languages.includes(language)) form.refuse('language', 'must be one of languages');
  return languages;
}

const MAX_KEYWORDS = 200;

function keywordsOf(form: Form): TranscribeRequest['keywords'] {
  const given = form.list('keywords');
  if (given.length > MAX_KEYWORDS) form.refuse('keywords', `must be at most ${MAX_KEYWORDS} terms`);
  return given.slice(0, MAX_KEYWORDS).map((text) => {
    const [, term = text, weight = '1'] = /^(.*\S)\s*:\s*(-?\d{1,3}(?:\.\d{1,20})?(?:e-\d{1,3})?)$/i.exec(text) ?? [];
    if (term.length > 100) form.refuse('keywords', 'must have terms of at most 100 characters');
    if (Number(weight) < 0 || Number(weight) > 10) form.refuse('keywords', 'must have weights from 0 to 10');
    return { term, weight: Number(weight) };
  });
}

const WordSchema = Type.Object({
  word: Type.String({ examples: ['hello'] }),
  start: Type.Number({ description: 'Start, in seconds.', examples: [0.12] }),
  end: Type.Number({ description: 'End, in seconds.', examples: [0.48] }),
  confidence: Type.Optional(
    Type.Number({ description: 'Confidence, 0 to 1. With `include_confidence`, if the engine reports one.' }),
  ),
  speaker: Type.Optional(Type.String({ description: 'Speaker label, with `diarize`.' })),
  boosted: Type.Optional(
    Type.Boolean({ description: 'True if a keyword put in the word; `original` has what is recognised without it.' }),
  ),
  original: Type.Optional(Type.String({ description: 'The word before keyword boosting.' })),
});

const SegmentSchema = Type.Object({
  id: Type.Integer({ examples: [0] }),
  chunk_idx: Type.Integer({ description: 'Index of the chunk, if long audio was split.', examples: [0] }),
  start: Type.Number({ description: 'Start, in seconds.', examples: [0.12] }),
  end: Type.Number({ description: 'End, in seconds.', examples: [1.5] }),
  text: Type.String({ examples: ['hello how may i help you'] }),
  speaker: Type.Optional(Type.String({ description: 'Speaker label, with `diarize`.', examples: ['speaker_1'] })),
  language: Type.String({ description: 'ISO 639-1 code.', examples: ['en'] }),
});

export const TranscriptSchema: TSchema = Type.Object(
  {
    success: Type.Literal(true),
    request_id: Type.String({ examples: ['5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42'] }),
    text: Type.String({
      description: 'Transcript. Empty if the audio was dropped because of noise (`low_snr_dropped`).',
      examples: ['hello how may i help you'],
    }),
    language: Type.Union([Type.String(), Type.Null()], {
      description: 'Language of the transcript, as an ISO 639-1 code.',
      examples: ['en'],
    }),
    language_source: Type.Enum(['requested', 'detected', 'long_audio_chunked'], {
      description: 'How the language was determined. `long_audio_chunked`: the audio was split into chunks.',
    }),
    language_probability: nullable(
      Type.Number({ description: 'Probability of the detected language, 0 to 1.', examples: [0.98] }),
    ),
    duration: Type.Number({ description: 'Length of the audio, in seconds.', examples: [1.62] }),
    snr_db: nullable(
      Type.Number({
        description: 'Signal-to-noise ratio in dB. 15 or more is good, 0 to 15 fair, below 0 poor.',
        examples: [24.5],
      }),
    ),
    warning_codes: Type.Array(Type.Enum([...WARNING_CODES]), {
      description:
        'Problems that did not fail the request. `keywords_not_boosted`: the model has no use for `keywords`, so that they only replaced words that sound like them.',
      examples: [[]],
    }),
    words: Type.Array(WordSchema, { description: 'Words, with `return_timestamps=word`.' }),
    segments: Type.Array(SegmentSchema, { description: 'Segments in chronological order.' }),
    speakers: Type.Array(Type.String(), { description: 'Speaker labels, with `diarize`.', examples: [[]] }),
    llm_applied: Type.Boolean({ description: 'True if a language model refined the transcript.', examples: [false] }),
    llm_reason: Type.Union([Type.String(), Type.Null()], {
      description: 'Why `context` did not change the transcript. Null if it did, or was not sent.',
      examples: [null],
    }),
    model: Type.String({
      description: 'Engine and model that transcribed the audio.',
      examples: ['pocketsphinx/en-us'],
    }),
    processing_time_ms: Type.Integer({ description: 'Processing time, in milliseconds.', examples: [840] }),
    cost_usd: Type.Number({ description: 'Charge, in USD.', examples: [0.000162] }),
  },
  { description: 'The transcript.' },
);
