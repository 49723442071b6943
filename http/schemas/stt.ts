import { type TSchema, Type } from 'typebox';
import type { PublicLanguage, TranscribeRequest } from '../../actors/stt/transcriber.ts';
import { WARNING_CODES } from '../../actors/stt/transcriber.ts';
import { TandemError } from '../../machines/errors.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';

/** The form of `POST /stt`: for the document. `parseTranscriptionForm` reads it. */
export const TranscriptionFormSchema = Type.Object(
  {
    file: Type.String({
      format: 'binary',
      description:
        'The audio, up to 25 MB and 70 minutes: any container that ffmpeg reads, WAV and AU with PCM or G.711, and raw G.711 at 8 kHz when its name ends in .ulaw, .mulaw or .alaw or its type is audio/basic, audio/PCMU or audio/PCMA.',
    }),
    language: Type.Optional(
      Type.String({ default: 'auto', description: 'ISO 639-1, of GET /stt/languages, or auto.', examples: ['en'] }),
    ),
    languages: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description: 'Those that may be spoken: separated by commas, a JSON array, or the field repeated.',
        examples: ['en,hi'],
      }),
    ),
    diarize: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Say who speaks; costs 30 per cent more. The two channels of a call are told apart by channel.',
      }),
    ),
    min_speakers: Type.Optional(Type.Integer({ description: 'Read with diarize; zero and below leave it open.' })),
    max_speakers: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, description: 'Read with diarize.' })),
    context: Type.Optional(
      Type.String({
        maxLength: 8000,
        description: 'What the talk is about: opens refinement by a language model. Not in the free plan.',
      }),
    ),
    keywords: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description:
          'Terms that are likely to be said, separated by commas, each with a :weight of 0 to 10 if need be.',
        examples: ['Tandem:3,click-to-call'],
      }),
    ),
    return_timestamps: Type.Optional(Type.Literal('word', { description: 'Adds words, with their times.' })),
    include_confidence: Type.Optional(Type.Boolean({ default: false, description: 'Adds a confidence to each word.' })),
    script_correction: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Writes each word of a mix of Hindi and English in the script of its language.',
      }),
    ),
    min_split_sec: Type.Optional(
      Type.Number({
        minimum: 1,
        maximum: 600,
        default: 20,
        description: 'Long audio is cut at silences into chunks of at least so many seconds.',
      }),
    ),
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Of a session; keys are tied to theirs.' })),
  },
  {
    additionalProperties: false,
    examples: [{ file: 'audio', language: 'en', diarize: false, return_timestamps: 'word' }],
  },
);

/** What `receiveForm` lets through. */
export const TRANSCRIPTION_FIELDS: Readonly<Record<string, 'once' | 'repeated'>> = Object.fromEntries(
  Object.keys(TranscriptionFormSchema.properties)
    .filter((name) => name !== 'file')
    .map((name) => [name, name === 'languages' || name === 'keywords' ? 'repeated' : 'once']),
);

type ParsedForm = Omit<TranscribeRequest, 'workspaceId' | 'userId' | 'apiKeyId' | 'plan' | 'fileName' | 'mediaType'>;

export type FormFields = Readonly<Record<string, string | string[]>>;

/** @throws TandemError `VALIDATION_FAILED` with all that is wrong; `unsupported_language` */
export function parseTranscriptionForm(fields: FormFields, languages: readonly PublicLanguage[]): ParsedForm {
  const form = readForm(fields);
  const spoken = languagesOf(form);
  const minSpeakers = form.integer('min_speakers', { max: 20 });
  const parsed = {
    diarize: form.boolean('diarize'),
    minSpeakers: minSpeakers !== null && minSpeakers > 0 ? minSpeakers : null,
    maxSpeakers: form.integer('max_speakers', { min: 1, max: 20 }),
    context: form.text('context', 8000),
    keywords: keywordsOf(form),
    includeWords: form.choice('return_timestamps', ['word']) !== null,
    includeConfidence: form.boolean('include_confidence'),
    scriptCorrection: form.boolean('script_correction'),
    minSplitMs: (form.number('min_split_sec', { min: 1, max: 600 }) ?? 20) * 1000,
  };
  if (parsed.minSpeakers !== null && parsed.maxSpeakers !== null && parsed.minSpeakers > parsed.maxSpeakers) {
    form.refuse('min_speakers', 'must be at most max_speakers');
  }
  if (form.invalid.length > 0) throw validationFailed(form.invalid);
  const unsupported = spoken?.find((code) => !languages.some(({ language_id, rest }) => rest && language_id === code));
  if (unsupported !== undefined) {
    const message = `There is no language ${JSON.stringify(unsupported.slice(0, 20))}: GET /stt/languages lists them.`;
    throw new TandemError('unsupported_language', message);
  }
  return { ...parsed, languages: spoken };
}

/** Null for whatever is spoken. */
function languagesOf(form: Form): string[] | null {
  const [language = 'auto', ...more] = form.list('language').map((code) => code.toLowerCase());
  const languages = [...new Set(form.list('languages').map((code) => code.toLowerCase()))];
  if (more.length > 0) form.refuse('language', 'takes one language; languages takes several');
  if (languages.length > 1 && languages.includes('auto')) form.refuse('languages', 'takes auto only by itself');
  if (languages.length === 0 || languages[0] === 'auto') return language === 'auto' ? null : [language];
  if (language !== 'auto' && !languages.includes(language)) form.refuse('language', 'must be one of languages');
  return languages;
}

const MOST_KEYWORDS = 200;

function keywordsOf(form: Form): TranscribeRequest['keywords'] {
  const given = form.list('keywords');
  if (given.length > MOST_KEYWORDS) form.refuse('keywords', `must be at most ${MOST_KEYWORDS} terms`);
  return given.slice(0, MOST_KEYWORDS).map((text) => {
    const [, term = text, weight = '1'] = /^(.*\S)\s*:\s*(\d{1,3}(?:\.\d{1,6})?)$/.exec(text) ?? [];
    if (term.length > 100) form.refuse('keywords', 'must be terms of at most 100 characters');
    if (Number(weight) > 10) form.refuse('keywords', 'must have weights of 0 to 10');
    return { term, weight: Number(weight) };
  });
}

interface Form {
  invalid: InvalidField[];
  refuse(path: string, message: string): void;
  text(name: string, maxLength: number): string | null;
  boolean(name: string): boolean;
  integer(name: string, bounds: { min?: number; max: number }): number | null;
  number(name: string, bounds: { min: number; max: number }): number | null;
  choice(name: string, choices: readonly string[]): string | null;
  /** Separated by commas, a JSON array of texts, or repeated. */
  list(name: string): string[];
}

/** A field that is empty is one that was left out: that is how pages send them. */
function readForm(fields: FormFields): Form {
  const invalid: InvalidField[] = [];
  const refuse = (path: string, message: string) => {
    if (!invalid.some((one) => one.path === path)) invalid.push({ path, message });
  };
  const given = (name: string): string | null => {
    const value = fields[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return text === '' ? null : text;
  };
  function number(name: string, { min, max, pattern }: { min?: number; max: number; pattern: RegExp }): number | null {
    const text = given(name);
    if (text === null) return null;
    const value = pattern.test(text) ? Number(text) : Number.NaN;
    const kind = pattern === INTEGER ? 'an integer' : 'a number';
    if (Number.isNaN(value)) refuse(name, `must be ${kind}`);
    else if (min !== undefined && value < min) refuse(name, `must be at least ${min}`);
    else if (value > max) refuse(name, `must be at most ${max}`);
    return value;
  }
  return {
    invalid,
    refuse,
    text(name, maxLength) {
      const text = given(name);
      if (text !== null && text.length > maxLength) refuse(name, `must be at most ${maxLength} characters`);
      return text;
    },
    boolean(name) {
      const text = given(name)?.toLowerCase() ?? 'false';
      if (!['true', 'false', '1', '0'].includes(text)) refuse(name, 'must be true or false');
      return text === 'true' || text === '1';
    },
    integer: (name, bounds) => number(name, { ...bounds, pattern: INTEGER }),
    number: (name, bounds) => number(name, { ...bounds, pattern: DECIMAL }),
    choice(name, choices) {
      const text = given(name);
      if (text !== null && !choices.includes(text)) refuse(name, `must be one of ${choices.join(', ')}`);
      return text;
    },
    list(name) {
      const items = [fields[name] ?? []].flat().flatMap((text) => listIn(text) ?? []);
      if ([fields[name] ?? []].flat().some((text) => listIn(text) === null)) refuse(name, 'must be a list of texts');
      return items.map((item) => item.trim()).filter((item) => item !== '');
    },
  };
}

const INTEGER = /^-?\d{1,9}$/;
const DECIMAL = /^-?\d{1,9}(\.\d{1,9})?$/;

function listIn(text: string): string[] | null {
  if (!text.trimStart().startsWith('[')) return text.split(',');
  try {
    const items = JSON.parse(text) as unknown;
    return Array.isArray(items) && items.every((item) => typeof item === 'string') ? items : null;
  } catch {
    return null;
  }
}

const WordSchema = Type.Object({
  word: Type.String({ examples: ['hello'] }),
  start: Type.Number({ examples: [0.12] }),
  end: Type.Number({ examples: [0.48] }),
  confidence: Type.Optional(Type.Number({ description: 'With include_confidence, where the engine has one.' })),
  speaker: Type.Optional(Type.String()),
  boosted: Type.Optional(Type.Boolean({ description: 'A keyword took the place of `original`.' })),
  original: Type.Optional(Type.String()),
});

const SegmentSchema = Type.Object({
  id: Type.Integer({ examples: [0] }),
  chunk_idx: Type.Integer({ description: 'Of the chunk that long audio was cut into.', examples: [0] }),
  start: Type.Number({ examples: [0.12] }),
  end: Type.Number({ examples: [1.5] }),
  text: Type.String({ examples: ['hello how may i help you'] }),
  speaker: Type.Optional(Type.String({ examples: ['speaker_1'] })),
  language: Type.String({ examples: ['en'] }),
});

export const TranscriptSchema: TSchema = Type.Object(
  {
    success: Type.Literal(true),
    request_id: Type.String({ examples: ['5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42'] }),
    text: Type.String({ examples: ['hello how may i help you'] }),
    language: Type.Union([Type.String(), Type.Null()], { examples: ['en'] }),
    language_source: Type.Enum(['requested', 'detected', 'long_audio_chunked']),
    language_probability: nullable(Type.Number({ examples: [0.98] })),
    duration: Type.Number({ description: 'Seconds.', examples: [1.62] }),
    snr_db: nullable(Type.Number({ description: '15 and more is good, below 0 poor.', examples: [24.5] })),
    warning_codes: Type.Array(Type.Enum([...WARNING_CODES]), { examples: [[]] }),
    words: Type.Array(WordSchema, { description: 'With return_timestamps=word.' }),
    segments: Type.Array(SegmentSchema),
    speakers: Type.Array(Type.String(), { description: 'With diarize.', examples: [[]] }),
    llm_applied: Type.Boolean({ examples: [false] }),
    llm_reason: Type.Union([Type.String(), Type.Null()], {
      description: 'Why a context did not refine the text.',
      examples: [null],
    }),
    model: Type.String({ examples: ['pocketsphinx/en-us'] }),
    processing_time_ms: Type.Integer({ examples: [840] }),
    cost_usd: Type.Number({ examples: [0.000162] }),
  },
  { description: 'What was said.' },
);
