/**
 * The languages of the transcription catalogue: what may be asked for, whatever engines are installed. There are 39:
 * English; the twelve languages of India and Nepal with the most speakers; the twelve that the WebSocket refuses,
 * which files can be transcribed in; and fourteen of Europe and the Arab world. Each of them is known to Whisper or,
 * as Odia, to models that sherpa-onnx runs.
 */
export interface TranscriptionLanguage {
  /** ISO 639-1. */
  code: string;
  /** In English. */
  name: string;
  /** Whether live sessions take it; files may be in any. */
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

/** The API refuses these in live sessions with `unsupported_language`. */
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

/** By code. */
export const TRANSCRIPTION_LANGUAGES: readonly TranscriptionLanguage[] = [
  ...LIVE.map(([code, name]) => ({ code, name, isLive: true })),
  ...FILES_ONLY.map(([code, name]) => ({ code, name, isLive: false })),
].sort((a, b) => (a.code < b.code ? -1 : 1));

const BY_CODE = new Map(TRANSCRIPTION_LANGUAGES.map((language) => [language.code, language]));

export function findTranscriptionLanguage(code: string): TranscriptionLanguage | null {
  return BY_CODE.get(code) ?? null;
}

/** Such as `ar-eg`: refused everywhere, since `ar` means all of them. */
export function isArabicDialect(tag: string): boolean {
  return /^ar[-_]/i.test(tag);
}

/** For a person: `Hindi (hi)`. */
export function describeLanguage(code: string): string {
  const language = BY_CODE.get(code);
  return language === undefined ? code : `${language.name} (${code})`;
}
