import { type Static, Type } from 'typebox';
import type { SttSettings } from '../../actors/stt/live-stt.ts';
import { LONGEST_LIVE_UTTERANCE_MS } from '../../machines/utterances.ts';
import { languageOfTag } from '../language-tag.ts';
import { nullable } from '../schemas/envelope.ts';
import { type InvalidField, validationFailed } from '../validation.ts';

export const SAMPLE_RATES = [8_000, 16_000, 24_000, 44_100, 48_000];
export const MAX_LANGUAGES = 5;

const DEFAULTS: SttSettings = {
  languages: null,
  encoding: 'linear',
  sampleRateHz: 16_000,
  utteranceEndMs: 1_000,
  isContinuous: true,
  interimEveryMs: null,
  enhancement: 'off',
  diarize: false,
  minSpeakers: null,
  maxSpeakers: null,
  removeFillers: false,
};

const MIN_UTTERANCE_END_MS = 1_000;
const MIN_INTERIM_MS = 300;
const MAX_SPEAKERS = 100;

/** Null counts as absent: it selects the default in `start` and restores it in `config`. */
export const CONFIG_FIELDS = {
  languages: Type.Optional(
    nullable(Type.Union([Type.String({ maxLength: 64 }), Type.Array(Type.String({ maxLength: 64 }))])),
  ),
  encoding: Type.Optional(nullable(Type.Enum(['linear', 'mulaw']))),
  sample_rate: Type.Optional(nullable(Type.Enum(SAMPLE_RATES))),
  utterance_end_ms: Type.Optional(nullable(Type.Number())),
  continuous_mode: Type.Optional(nullable(Type.Boolean())),
  interim_results_frequency: Type.Optional(nullable(Type.Number({ maximum: 60_000 }))),
  audio_enhancement: Type.Optional(nullable(Type.Enum(['off', 'light', 'adaptive']))),
  diarize: Type.Optional(nullable(Type.Boolean())),
  // Validated only with `diarize`.
  min_speakers: Type.Optional(Type.Unknown()),
  max_speakers: Type.Optional(Type.Unknown()),
  // A value that is not a boolean counts as false.
  remove_fillers: Type.Optional(Type.Unknown()),
};

const CONFIG_BLOCK = Type.Object(CONFIG_FIELDS);
type ConfigBlock = Static<typeof CONFIG_BLOCK>;

/** Parses the complete settings of a new session. @throws TandemError VALIDATION_FAILED */
export function readSettings(block: ConfigBlock): SttSettings {
  return { ...DEFAULTS, ...readChange({ ...block, diarize: block.diarize ?? DEFAULTS.diarize }) };
}

/** Parses the changed settings, clamped. @throws TandemError VALIDATION_FAILED */
export function readChange(block: ConfigBlock): Partial<SttSettings> {
  const change: { -readonly [Key in keyof SttSettings]?: SttSettings[Key] } = {};
  if (block.languages !== undefined) change.languages = readLanguages(block.languages);
  if (block.encoding !== undefined) change.encoding = block.encoding ?? DEFAULTS.encoding;
  if (block.sample_rate !== undefined) change.sampleRateHz = block.sample_rate ?? DEFAULTS.sampleRateHz;
  if (block.utterance_end_ms !== undefined) {
    change.utteranceEndMs = readUtteranceEnd(block.utterance_end_ms ?? DEFAULTS.utteranceEndMs);
  }
  if (block.continuous_mode !== undefined) change.isContinuous = block.continuous_mode ?? DEFAULTS.isContinuous;
  if (block.interim_results_frequency !== undefined) {
    const everyMs = block.interim_results_frequency;
    change.interimEveryMs = everyMs === null ? null : Math.max(MIN_INTERIM_MS, Math.round(everyMs));
  }
  if (block.audio_enhancement !== undefined) change.enhancement = block.audio_enhancement ?? DEFAULTS.enhancement;
  if (block.diarize !== undefined) change.diarize = block.diarize ?? DEFAULTS.diarize;
  if (block.remove_fillers !== undefined) change.removeFillers = block.remove_fillers === true;
  if (block.diarize === false) return change;
  if (block.min_speakers !== undefined) change.minSpeakers = readSpeakers('min_speakers', block.min_speakers);
  if (block.max_speakers !== undefined) change.maxSpeakers = readSpeakers('max_speakers', block.max_speakers);
  return change;
}

/**
 * Accepts `auto`, alone or in a list, as null: detect the language. In the specification a proxy removes it, because
 * the server behind would reject it; this server is both.
 */
function readLanguages(languages: ConfigBlock['languages']): SttSettings['languages'] {
  if (typeof languages === 'string' && languages.toLowerCase() !== 'auto') {
    throw invalid({ path: 'languages', message: 'must be an array of ISO 639-1 codes, or null' });
  }
  const codes = typeof languages === 'string' ? [] : (languages ?? []).map(languageOfTag);
  const wanted = [...new Set(codes.filter((code) => code !== 'auto'))];
  if (wanted.length > MAX_LANGUAGES) {
    throw invalid({ path: 'languages', message: `must have at most ${MAX_LANGUAGES} entries` });
  }
  return wanted.length === 0 ? null : wanted;
}

function readUtteranceEnd(ms: number): number {
  return Math.round(Math.min(Math.max(ms, MIN_UTTERANCE_END_MS), LONGEST_LIVE_UTTERANCE_MS));
}

/** Zero and negative numbers count as absent. */
function readSpeakers(path: string, value: unknown): number | null {
  if (value === null) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value > MAX_SPEAKERS) {
    throw invalid({ path, message: `must be an integer of at most ${MAX_SPEAKERS}, or null` });
  }
  return value <= 0 ? null : value;
}

function invalid(field: InvalidField) {
  return validationFailed([field]);
}
