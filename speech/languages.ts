/**
 * The languages of the transcription API, whatever engines are installed. There are 39: English; the twelve languages
 * of India and Nepal with the most speakers; twelve that only files may use, because the WebSocket rejects them; and
 * fourteen of Europe and the Arab world. Whisper knows each of them except Odia, for which sherpa-onnx has models.
 */
export interface TranscriptionLanguage {
  /** ISO 639-1. */
  code: string;
  /** In English. */
  name: string;
  /** Whether live sessions accept it; files may use any. */
  isLive: boolean;
}

const LIVE: readonly (readonly [code: string, name: string])[] = [
  ['ar', 'Arabic'],
  ['as', 'Assamese'],
  ['bn', 'Bengali'],
  ['cs', 'Czech'],
  ['de', 'German'],
  ['el', 'Greek'],
  ['en', 'English'],
  ['es', 'Spanish'],
  ['fr', 'French'],
  ['gu', 'Gujarati'],
  ['hi', 'Hindi'],
  ['it', 'Italian'],
  ['kn', 'Kannada'],
  ['ml', 'Malayalam'],
  ['mr', 'Marathi'],
  ['ne', 'Nepali'],
  ['nl', 'Dutch'],
  ['or', 'Odia'],
  ['pa', 'Punjabi'],
  ['pl', 'Polish'],
  ['pt', 'Portuguese'],
  ['ro', 'Romanian'],
  ['ru', 'Russian'],
  ['sv', 'Swedish'],
  ['ta', 'Tamil'],
  ['te', 'Telugu'],
  ['uk', 'Ukrainian'],
];

/** Live sessions reject these with `unsupported_language`. */
const FILES_ONLY: readonly (readonly [code: string, name: string])[] = [
  ['fa', 'Persian'],
  ['he', 'Hebrew'],
  ['id', 'Indonesian'],
  ['ja', 'Japanese'],
  ['ko', 'Korean'],
  ['sw', 'Swahili'],
  ['th', 'Thai'],
  ['tl', 'Tagalog'],
  ['tr', 'Turkish'],
  ['ur', 'Urdu'],
  ['vi', 'Vietnamese'],
  ['zh', 'Chinese'],
];

export const TRANSCRIPTION_LANGUAGES: readonly TranscriptionLanguage[] = [
  ...LIVE.map(([code, name]) => ({ code, name, isLive: true })),
  ...FILES_ONLY.map(([code, name]) => ({ code, name, isLive: false })),
].sort((a, b) => (a.code < b.code ? -1 : 1));

const BY_CODE = new Map(TRANSCRIPTION_LANGUAGES.map((language) => [language.code, language]));

export function findTranscriptionLanguage(code: string): TranscriptionLanguage | null {
  return BY_CODE.get(code) ?? null;
}

/** Such as `ar-eg`: rejected everywhere, because `ar` covers all of them. */
export function isArabicDialect(tag: string): boolean {
  return /^ar[-_]/i.test(tag);
}

/** For people: `Hindi (hi)`. */
export function describeLanguage(code: string): string {
  const language = BY_CODE.get(code);
  return language === undefined ? code : `${language.name} (${code})`;
}
