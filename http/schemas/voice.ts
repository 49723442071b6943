import { type Static, Type } from 'typebox';
import type { VoiceLabels, VoiceView } from '../../actors/voices/voice-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { VOICE_ACCENTS } from '../../speech/voices/catalogue.ts';
import { compileCheck, validationFailed } from '../validation.ts';
import { nullable, TimeSchema } from './envelope.ts';

const VOICE_ID = '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11';
/** Neither line feeds, nor halves of surrogate pairs, which cannot be stored. */
const ONE_LINE = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$';
const LINES = '^[^\\u0000\\ud800-\\udfff]*$';

const NameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$',
  description: 'Display name.',
  examples: ['Asha'],
});
const DescriptionSchema = Type.String({ maxLength: 1000, pattern: LINES, examples: ['Calm and clear.'] });
const LanguageSchema = Type.String({
  minLength: 2,
  maxLength: 20,
  description: 'A language_id of GET /tts/languages; unsupported_language otherwise.',
  examples: ['en'],
});
const LabelsSchema = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9_]{0,39}$' }),
  Type.String({ maxLength: 200, pattern: ONE_LINE }),
  {
    maxProperties: 20,
    additionalProperties: false,
    description:
      'Of these, `gender` (female, male), `accent` (American, British, Indian, Neutral), `age` and `use_case` (categories of the list, with commas) are shown again; others are kept.',
    examples: [{ gender: 'female', accent: 'Indian', use_case: 'Conversational' }],
  },
);

const FIELDS = {
  name: NameSchema,
  language: LanguageSchema,
  description: Type.Optional(DescriptionSchema),
  labels: Type.Optional(LabelsSchema),
};

/** `POST /voices/professional`, and what the fields of `POST /voices` come to. */
export const ProfessionalVoiceBody = Type.Object(FIELDS, { additionalProperties: false });

export const VoicePatchBody = Type.Object(
  { name: Type.Optional(NameSchema), description: Type.Optional(nullable(DescriptionSchema)) },
  { additionalProperties: false, minProperties: 1, examples: [{ name: 'Asha', description: 'Calm and clear.' }] },
);

const FilesSchema = Type.Array(Type.String({ format: 'binary' }), {
  minItems: 1,
  maxItems: 25,
  description:
    'The speech of one person: at most 25 files, each up to 25 MB, of any format that POST /stt takes. The field may be called `files[]`.',
  examples: [['audio']],
});
const ConsentSchema = Type.Literal('true', {
  description:
    'That the speaker agrees to have a voice made of theirs: exactly `true`, or VOICE_CONSENT_REQUIRED. Who said so, when and from which address is recorded.',
});

/** For the document; `readVoiceForm` reads it. */
export const VoiceFormSchema = Type.Object(
  {
    name: NameSchema,
    files: FilesSchema,
    language: LanguageSchema,
    description: Type.Optional(DescriptionSchema),
    labels: Type.Optional(
      Type.String({
        description: 'A JSON object of texts, as in POST /voices/professional.',
        examples: ['{"gender":"female","accent":"Indian"}'],
      }),
    ),
    consent: ConsentSchema,
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Of a session; keys are tied to theirs.' })),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'Asha', files: ['audio'], language: 'en', labels: '{"gender":"female"}', consent: 'true' }],
  },
);

/** For the document; `readSamplesForm` reads it. */
export const SamplesFormSchema = Type.Object(
  {
    files: Type.Optional(FilesSchema),
    consent: ConsentSchema,
    complete: Type.Optional(
      Type.Enum(['true', 'false'], {
        default: 'false',
        description: 'Whether these are the last: the voice is made of at least a minute of speech.',
      }),
    ),
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Of a session; keys are tied to theirs.' })),
  },
  {
    additionalProperties: false,
    examples: [{ files: ['audio'], consent: 'true', complete: 'false' }],
  },
);

export const VOICE_FIELDS = fieldsOf(VoiceFormSchema.properties);
export const SAMPLES_FIELDS = fieldsOf(SamplesFormSchema.properties);

type FormFields = Readonly<Record<string, string | string[]>>;
type VoiceMetadata = Static<typeof ProfessionalVoiceBody>;

const checkMetadata = compileCheck(ProfessionalVoiceBody);

export interface ParsedVoice {
  name: string;
  description: string | null;
  language: string;
  labels: VoiceLabels;
}

/** @throws TandemError `VALIDATION_FAILED` with all that is wrong, `VOICE_CONSENT_REQUIRED` */
export function readVoiceForm({ labels, consent, ...fields }: FormFields): ParsedVoice {
  // A field that is empty is one that was left out: that is how pages send them.
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
  const metadata = { ...given, ...(labels !== undefined && labels !== '' && { labels: parsedLabels(labels) }) };
  const refusal = checkMetadata(metadata);
  if (refusal !== null) throw refusal;
  requireConsent(consent);
  return readVoiceBody(metadata as VoiceMetadata);
}

/** @throws TandemError `VALIDATION_FAILED`, `VOICE_CONSENT_REQUIRED` */
export function readSamplesForm({ consent, complete = '' }: FormFields): { isLast: boolean } {
  if (!['', 'true', 'false'].includes(complete as string)) {
    throw validationFailed([{ path: 'complete', message: 'must be true or false' }]);
  }
  requireConsent(consent);
  return { isLast: complete === 'true' };
}

export function readVoiceBody({ name, description, language, labels = {} }: VoiceMetadata): ParsedVoice {
  const { gender, accent, age, ...more } = labels;
  const invalid = [
    ...(gender === undefined || gender === 'female' || gender === 'male'
      ? []
      : [{ path: 'labels.gender', message: 'must be female or male' }]),
    ...(accent === undefined || VOICE_ACCENTS.some((known) => known === accent)
      ? []
      : [{ path: 'labels.accent', message: `must be one of ${VOICE_ACCENTS.join(', ')}` }]),
  ];
  if (invalid.length > 0) throw validationFailed(invalid);
  return {
    name: name.trim(),
    description: description ?? null,
    language: language.toLowerCase(),
    labels: {
      gender: (gender as VoiceLabels['gender'] | undefined) ?? null,
      accent: (accent as VoiceLabels['accent'] | undefined) ?? null,
      age: age ?? null,
      more,
    },
  };
}

function requireConsent(consent: string | string[] | undefined): void {
  if (consent === 'true') return;
  const message = 'Send consent=true when the speaker agrees to have a voice made of theirs, and only then.';
  throw new TandemError('VOICE_CONSENT_REQUIRED', message);
}

function parsedLabels(text: string | string[]): unknown {
  try {
    return JSON.parse(text as string);
  } catch {
    throw validationFailed([{ path: 'labels', message: 'must be a JSON object' }]);
  }
}

function fieldsOf(properties: object): Readonly<Record<string, 'once'>> {
  return Object.fromEntries(
    Object.keys(properties)
      .filter((name) => name !== 'files')
      .map((name) => [name, 'once'] as const),
  );
}

const IdSchema = Type.String({ format: 'uuid', examples: [VOICE_ID] });
const StatusSchema = Type.Enum(['ready', 'pending', 'processing', 'failed'], {
  description: '`pending` waits for samples; only `ready` voices speak.',
});
const ApproximateSchema = nullable(
  Type.Boolean({
    examples: [true],
    description:
      'Whether it is the nearest voice there is, fitted to pitch, pace and sound of the speaker, and not a clone. Null for voices of the platform, and before it is ready.',
  }),
);
const CategoriesSchema = Type.Array(Type.String(), { examples: [['Conversational', 'IVR/Call Center']] });
const GenderSchema = nullable(Type.Enum(['female', 'male'], { description: 'Null where nobody has said.' }));

export const ListedVoiceSchema = Type.Object({
  voice_id: IdSchema,
  name: Type.String({ examples: ['Asha'] }),
  model: Type.Enum(['svc Quality', 'svc Fast']),
  labels: Type.Object({
    language: Type.String({ description: 'ISO 639.', examples: ['en'] }),
    language_name: Type.String({ examples: ['English'] }),
    gender: GenderSchema,
    accent: Type.Enum([...VOICE_ACCENTS]),
  }),
  wpm: nullable(
    Type.Number({ description: 'Natural pace; null: texts are spoken at 137 words per minute.', examples: [150] }),
  ),
  description: nullable(Type.String({ examples: ['Calm and clear.'] })),
  categories: CategoriesSchema,
  is_custom: Type.Boolean({ description: 'Whether the workspace made it.', examples: [false] }),
  status: StatusSchema,
});

export const VoiceSchema = Type.Object({
  id: IdSchema,
  name: Type.String({ examples: ['Asha'] }),
  description: nullable(Type.String({ examples: ['Calm and clear.'] })),
  language: Type.String({ examples: ['en'] }),
  gender: GenderSchema,
  age: nullable(Type.String({ examples: ['middle-aged'] })),
  accent: Type.String({ examples: ['Neutral'] }),
  use_case: CategoriesSchema,
  sample_url: nullable(
    Type.String({
      format: 'uri',
      description:
        'Speech of the voice, for five minutes. Made when somebody first asks; null until the voice is ready, or when it cannot be spoken in time.',
      examples: ['http://localhost:8080/media/voice-samples/0a1b2c.mp3?expires=1767322800&signature=c2lnbmF0dXJl'],
    }),
  ),
  is_custom: Type.Boolean({ examples: [true] }),
  created_at: TimeSchema,
  model: Type.Enum(['svc Quality', 'svc Fast']),
  wpm: nullable(Type.Number({ examples: [150] })),
  status: StatusSchema,
  approximate: ApproximateSchema,
  error: nullable(Type.String({ description: 'Why it failed, and what to do.', examples: [null] })),
});

export const UpdatedVoiceSchema = Type.Object({
  id: IdSchema,
  name: Type.String({ examples: ['Asha'] }),
  description: nullable(Type.String({ examples: ['Calm and clear.'] })),
  updated_at: TimeSchema,
});

export const CreatedVoiceSchema = Type.Object({
  voice_id: IdSchema,
  status: Type.Enum(['processing', 'pending']),
});

export const AddedSamplesSchema = Type.Object({
  voice_id: IdSchema,
  status: Type.Enum(['pending', 'processing', 'failed']),
  sample_seconds: Type.Number({ description: 'Of all its samples.', examples: [94.2] }),
});

const MODELS = { quality: 'svc Quality', fast: 'svc Fast' } as const;

export function presentListedVoice(voice: VoiceView): Static<typeof ListedVoiceSchema> {
  const { id, name, tier, language, languageName, gender, accent, wordsPerMinute, isCustom, status } = voice;
  return {
    voice_id: id,
    name,
    model: MODELS[tier],
    labels: { language, language_name: languageName, gender, accent: accent as (typeof VOICE_ACCENTS)[number] },
    wpm: wordsPerMinute,
    description: voice.description,
    categories: voice.categories,
    is_custom: isCustom,
    status,
  };
}

export function presentVoice(voice: VoiceView, { sampleUrl }: { sampleUrl: string | null }) {
  const { id, name, description, language, gender, age, accent, categories, isCustom, createdAt } = voice;
  return {
    id,
    name,
    description,
    language,
    gender,
    age,
    accent,
    use_case: categories,
    sample_url: sampleUrl,
    is_custom: isCustom,
    created_at: createdAt.toISOString(),
    model: MODELS[voice.tier],
    wpm: voice.wordsPerMinute,
    status: voice.status,
    approximate: voice.approximate,
    error: voice.error,
  };
}
