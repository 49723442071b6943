import { createHash } from 'node:crypto';

/** A voice that comes with the engine. */
export interface BuiltInVoice {
  /** The same on every installation. */
  id: string;
  /** A language tag such as `en-us` (BCP 47, in lower case). */
  name: string;
  engineName: string;
  /** ISO 639. */
  language: string;
  languageName: string;
}

/** Voices of eSpeak NG for the languages that are asked for most; the first of a language is its usual one. */
export const BUILT_IN_VOICES: readonly BuiltInVoice[] = [
  voice('en-us', 'en', 'English'),
  voice('en-gb', 'en', 'English', 'en'),
  voice('en-gb-scotland', 'en', 'English'),
  voice('hi', 'hi', 'Hindi'),
  voice('bn', 'bn', 'Bengali'),
  voice('ta', 'ta', 'Tamil'),
  voice('te', 'te', 'Telugu'),
  voice('mr', 'mr', 'Marathi'),
  voice('gu', 'gu', 'Gujarati'),
  voice('kn', 'kn', 'Kannada'),
  voice('ml', 'ml', 'Malayalam'),
  voice('pa', 'pa', 'Punjabi'),
  voice('or', 'or', 'Odia'),
  voice('as', 'as', 'Assamese'),
  voice('ur', 'ur', 'Urdu'),
  voice('ne', 'ne', 'Nepali'),
  voice('si', 'si', 'Sinhala'),
  voice('es', 'es', 'Spanish'),
  voice('es-419', 'es', 'Spanish'),
  voice('fr', 'fr', 'French'),
  voice('de', 'de', 'German'),
  voice('it', 'it', 'Italian'),
  voice('pt-br', 'pt', 'Portuguese'),
  voice('pt', 'pt', 'Portuguese'),
  voice('nl', 'nl', 'Dutch'),
  voice('pl', 'pl', 'Polish'),
  voice('ru', 'ru', 'Russian'),
  voice('uk', 'uk', 'Ukrainian'),
  voice('tr', 'tr', 'Turkish'),
  voice('ar', 'ar', 'Arabic'),
  voice('fa', 'fa', 'Persian'),
  voice('id', 'id', 'Indonesian'),
  voice('ms', 'ms', 'Malay'),
  voice('vi', 'vi', 'Vietnamese'),
  voice('sv', 'sv', 'Swedish'),
  voice('el', 'el', 'Greek'),
];

/** By its id, or by its name. */
export function findVoice(idOrName: string): BuiltInVoice | null {
  const asked = idOrName.toLowerCase();
  return BUILT_IN_VOICES.find(({ id, name }) => id === asked || name === asked) ?? null;
}

/** In the order of `BUILT_IN_VOICES`. */
export function speechLanguages(): { language: string; name: string }[] {
  return [...new Map(BUILT_IN_VOICES.map(({ language, languageName }) => [language, languageName]))].map(
    ([language, name]) => ({ language, name }),
  );
}

function voice(name: string, language: string, languageName: string, engineName = name): BuiltInVoice {
  return { id: nameBasedUuid(`tandem:voice:espeak-ng:${name}`), name, engineName, language, languageName };
}

/** RFC 9562 §5.8: a UUID of version 8 is ours to make. */
function nameBasedUuid(name: string): string {
  const bytes = createHash('sha256').update(name).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
