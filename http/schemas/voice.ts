import { type Static, Type } from 'typebox';
import type { VoiceLabels, VoiceView } from '../../actors/voices/voice-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { VOICE_ACCENTS } from '../../speech/voices/catalogue.ts';
import { compileCheck, validationFailed } from '../validation.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { WorkspaceIdSchema } from './workspace.ts';

const VOICE_ID = '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11';
/** Rejects line feeds, and lone surrogates, which cannot be stored. */
const ONE_LINE = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$';
const LINES = '^[^\\u0000\\ud800-\\udfff]*$';

const NameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$',
  description: 'Display name.',
  examples: ['Asha'],
});
const DescriptionSchema = Type.String({
  maxLength: 1000,
  pattern: LINES,
  description: 'Description.',
  examples: ['Calm and clear.'],
});
const LanguageSchema = Type.String({
  minLength: 2,
  maxLength: 20,
  description: 'Language of the voice: a `language_id` from GET /tts/languages.',
  examples: ['en'],
});
const LabelsSchema = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9_]{0,39}$' }),
  Type.String({ maxLength: 200, pattern: ONE_LINE }),
  {
    maxProperties: 20,
    additionalProperties: false,
    description:
      'Labels of the voice. `gender` (`female`, `male`), `accent` (`American`, `British`, `Indian`, `Neutral`), `age` and `use_case` (comma-separated categories) appear in the voice; other labels are stored.',
    examples: [{ gender: 'female', accent: 'Indian', use_case: 'Conversational' }],
  },
);

const FIELDS = {
  name: NameSchema,
  language: LanguageSchema,
  description: Type.Optional(DescriptionSchema),
  labels: Type.Optional(LabelsSchema),
};

/** Body of `POST /voices/professional`, and the parsed form of `POST /voices`. */
export const ProfessionalVoiceBody = Type.Object(FIELDS, { additionalProperties: false });

export const VoicePatchBody = Type.Object(
  { name: Type.Optional(NameSchema), description: Type.Optional(nullable(DescriptionSchema)) },
  { additionalProperties: false, minProperties: 1, examples: [{ name: 'Asha', description: 'Calm and clear.' }] },
);

const FilesSchema = Type.Array(Type.String({ format: 'binary' }), {
  minItems: 1,
  maxItems: 25,
  description:
    'Speech of one speaker: at most 25 files of up to 25 MB, in any format that POST /stt accepts. The field may also be named `files[]`.',
  examples: [['audio']],
});
const ConsentSchema = Type.Literal('true', {
  description:
    'Confirms that the speaker agrees to the voice being cloned. Must be exactly `true`; any other value is rejected with VOICE_CONSENT_REQUIRED. The user, the time and the network address are recorded.',
});

/** Documentation only: `readVoiceForm` validates. */
export const VoiceFormSchema = Type.Object(
  {
    name: NameSchema,
    files: FilesSchema,
    language: LanguageSchema,
    description: Type.Optional(DescriptionSchema),
    labels: Type.Optional(
      Type.String({
        description: 'Labels as a JSON object of strings, as in POST /voices/professional.',
        examples: ['{"gender":"female","accent":"Indian"}'],
      }),
    ),
    consent: ConsentSchema,
    workspace_id: Type.Optional(WorkspaceIdSchema),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'Asha', files: ['audio'], language: 'en', labels: '{"gender":"female"}', consent: 'true' }],
  },
);

/** Documentation only: `readSamplesForm` validates. */
export const SamplesFormSchema = Type.Object(
  {
    files: Type.Optional(FilesSchema),
    consent: ConsentSchema,
    complete: Type.Optional(
      Type.Enum(['true', 'false'], {
        default: 'false',
        description: '`true` starts processing. Requires at least a minute of speech in all samples.',
      }),
    ),
    workspace_id: Type.Optional(WorkspaceIdSchema),
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

/** @throws TandemError `VALIDATION_FAILED` with every invalid field, `VOICE_CONSENT_REQUIRED` */
export function readVoiceForm({ labels, consent, ...fields }: FormFields): ParsedVoice {
  // Treat an empty field as absent, because HTML forms send those.
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
  const message = 'consent must be true. Send it only if the speaker agrees to the voice being cloned.';
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
  description: '`pending`: waits for samples. `processing`: is being built. Only `ready` voices can be used.',
});
const ApproximateSchema = nullable(
  Type.Boolean({
    examples: [true],
    description:
      'True if the voice is the closest built-in one, adapted to the pitch, pace and timbre of the speaker, because no installed engine clones voices. Null for built-in voices and until the voice is ready.',
  }),
);
const CategoriesSchema = Type.Array(Type.String(), {
  description: 'Use cases.',
  examples: [['Conversational', 'IVR/Call Center']],
});
const GenderSchema = Type.Enum(['female', 'male'], {
  description: 'As the label says, otherwise by the pitch of the voice.',
});

export const ListedVoiceSchema = Type.Object({
  voice_id: IdSchema,
  name: Type.String({ examples: ['Asha'] }),
  model: Type.Enum(['svc Quality', 'svc Fast'], { description: 'Model tier.' }),
  labels: Type.Object({
    language: Type.String({ description: 'ISO 639 code.', examples: ['en'] }),
    language_name: Type.String({ examples: ['English'] }),
    gender: GenderSchema,
    accent: Type.Enum([...VOICE_ACCENTS]),
  }),
  wpm: nullable(
    Type.Number({
      description: 'Natural pace, in words per minute. Null means that synthesis uses 137.',
      examples: [150],
    }),
  ),
  description: nullable(Type.String({ examples: ['Calm and clear.'] })),
  categories: CategoriesSchema,
  is_custom: Type.Boolean({ description: 'True if the workspace created the voice.', examples: [false] }),
  status: StatusSchema,
});

export const VoiceSchema = Type.Object({
  id: IdSchema,
  name: Type.String({ examples: ['Asha'] }),
  description: nullable(Type.String({ examples: ['Calm and clear.'] })),
  language: Type.String({ description: 'ISO 639 code.', examples: ['en'] }),
  gender: GenderSchema,
  age: nullable(Type.String({ examples: ['middle-aged'] })),
  accent: Type.String({ examples: ['Neutral'] }),
  use_case: CategoriesSchema,
  sample_url: nullable(
    Type.String({
      format: 'uri',
      description:
        'Signed URL of an audio sample, valid for five minutes. Null until the voice is ready, or if synthesis takes too long.',
      examples: ['http://localhost:8080/media/voice-samples/0a1b2c.mp3?expires=1767322800&signature=c2lnbmF0dXJl'],
    }),
  ),
  is_custom: Type.Boolean({ description: 'True if the workspace created the voice.', examples: [true] }),
  created_at: TimeSchema,
  model: Type.Enum(['svc Quality', 'svc Fast'], { description: 'Model tier.' }),
  wpm: nullable(Type.Number({ description: 'Natural pace, in words per minute.', examples: [150] })),
  status: StatusSchema,
  approximate: ApproximateSchema,
  error: nullable(
    Type.String({ description: 'Why processing failed and what to do. Null unless failed.', examples: [null] }),
  ),
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
  sample_seconds: Type.Number({ description: 'Seconds of speech in all samples of the voice.', examples: [94.2] }),
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
