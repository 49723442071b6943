import { kokoroSpeaker } from '../kokoro-speakers.ts';
import { toLanguageCode } from '../whisper-languages.ts';
import type { SynthesisManifest, SynthesisType } from './synthesis-manifest.ts';

export interface ModelSpeaker {
  /** BCP 47 in lower case; the first is the default. Only cloning models have several languages per voice. */
  languages: readonly string[];
  gender: 'female' | 'male' | null;
}

interface SpokenModel {
  name: string;
  type: SynthesisType;
  metadata: Readonly<Record<string, string>>;
  manifest: SynthesisManifest | null;
  /** At least 1. */
  count: number;
}

/** Lists a model's speakers with their languages; null if the language is unknown. */
export function speakersOf({ name, type, metadata, manifest, count }: SpokenModel): ModelSpeaker[] | null {
  const names = (metadata.speaker_names ?? '').split(',').map((text) => text.trim());
  const ofAll = manifest?.languages ?? languagesOf({ name, type, metadata });
  const speakers: ModelSpeaker[] = [];
  for (let sid = 0; sid < count; sid++) {
    const declared = manifest?.speakers?.[sid];
    const named = namedSpeaker(type, names[sid] ?? '');
    const own = declared?.language ?? (manifest?.languages === undefined ? named?.language : undefined);
    const languages = own === undefined ? ofAll : [own];
    if (languages.length === 0) return null;
    speakers.push({ languages, gender: declared?.gender ?? named?.gender ?? null });
  }
  return speakers;
}

function namedSpeaker(type: SynthesisType, name: string): { language?: string; gender: 'female' | 'male' } | null {
  if (type === 'kokoro') return kokoroSpeaker(name);
  // Kitten: expr-voice-2-f.
  const gender = /-([fm])$/.exec(name)?.[1];
  return gender === undefined ? null : { gender: gender === 'f' ? 'female' : 'male' };
}

function languagesOf({ name, type, metadata }: Pick<SpokenModel, 'name' | 'type' | 'metadata'>): string[] {
  // Published models are named after their languages: vits-piper-en_US-amy-low, matcha-icefall-zh-baker.
  const region = /(?:^|[-_])([a-z]{2,3})_([A-Z]{2})(?:[-_]|$)/.exec(name);
  if (region !== null) return [`${region[1]}-${region[2]!.toLowerCase()}`];
  const declared = [metadata.voice, metadata.language].flatMap((text) => toTag(text ?? '') ?? []);
  if (declared.length > 0 && type !== 'zipvoice') return declared.slice(0, 1);
  const named = name.split(/[-_.]/).flatMap((part) => (isCodeInName(part) ? (toTag(part) ?? []) : []));
  if (named.length > 0) return [...new Set(named)];
  return USUAL_LANGUAGES[type] ?? [];
}

const USUAL_LANGUAGES: Partial<Record<SynthesisType, string[]>> = {
  kokoro: ['en-us'],
  kitten: ['en-us'],
  zipvoice: ['en', 'zh'],
  pocket: ['en'],
};

/** Other syllables in names are rarely languages. */
function isCodeInName(part: string): boolean {
  return COMMON_IN_NAMES.has(part) || (/^[a-z]{3}$/.test(part) && KNOWN_THREE_LETTERS.has(part));
}

const COMMON_IN_NAMES: ReadonlySet<string> = new Set(
  'en zh de es ru ko fr ja pt tr pl nl ar sv it hi fi vi uk el cs ro da hu th bn fa ka kk bg et hr lt lv mt sk sl ga'.split(
    ' ',
  ),
);
/** Codes in the names of MMS models. */
const KNOWN_THREE_LETTERS: ReadonlySet<string> = new Set(
  'eng deu fra spa rus ukr tha nan cmn yue hin ben tam tel'.split(' '),
);

/** From an eSpeak NG voice, a code, or an English language name. */
function toTag(text: string): string | null {
  const tag = text
    .trim()
    .toLowerCase()
    .replaceAll('_', '-')
    .replace(/-x-.*$/, '');
  const name = toLanguageCode(tag);
  if (name !== null) return name;
  if (!/^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$/.test(tag)) return null;
  try {
    return Intl.getCanonicalLocales(tag)[0]?.toLowerCase() ?? null;
  } catch {
    return null;
  }
}
