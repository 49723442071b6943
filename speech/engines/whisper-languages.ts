/** Whisper's languages with an ISO 639-1 code, most training data first. */
export const WHISPER_LANGUAGES: readonly string[] = [
  ...['en', 'zh', 'de', 'es', 'ru', 'ko', 'fr', 'ja', 'pt', 'tr', 'pl', 'ca', 'nl', 'ar', 'sv', 'it', 'id', 'hi'],
  ...['fi', 'vi', 'he', 'uk', 'el', 'ms', 'cs', 'ro', 'da', 'hu', 'ta', 'no', 'th', 'ur', 'hr', 'bg', 'lt', 'la'],
  ...['mi', 'ml', 'cy', 'sk', 'te', 'fa', 'lv', 'bn', 'sr', 'az', 'sl', 'kn', 'et', 'mk', 'br', 'eu', 'is', 'hy'],
  ...['ne', 'mn', 'bs', 'kk', 'sq', 'sw', 'gl', 'mr', 'pa', 'si', 'km', 'sn', 'yo', 'so', 'af', 'oc', 'ka', 'be'],
  ...['tg', 'sd', 'gu', 'am', 'yi', 'lo', 'uz', 'fo', 'ht', 'ps', 'tk', 'nn', 'mt', 'sa', 'lb', 'my', 'bo', 'tl'],
  ...['mg', 'as', 'tt', 'ln', 'ha', 'ba', 'jv', 'su'],
];

/**
 * ISO 639-1 of a language as Whisper and related models write it: `en`, `<|en|>`, `english`, or a code of their own.
 * Null if unknown.
 */
export function toLanguageCode(written: string): string | null {
  const name = written.replace(/^<\||\|>$/g, '').toLowerCase();
  const code = OTHER_CODES[name] ?? name;
  return WHISPER_LANGUAGES.includes(code) ? code : (CODES_BY_NAME.get(name) ?? null);
}

/** Cantonese uses the code of Chinese; `jw` is an old code of Javanese. CLDR has other names for the rest. */
const OTHER_CODES: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  yue: 'zh',
  cantonese: 'zh',
  cmn: 'zh',
  jw: 'jv',
  ...{ bengali: 'bn', tagalog: 'tl', myanmar: 'my', nynorsk: 'nn', maori: 'mi' },
});

const ENGLISH_NAMES = new Intl.DisplayNames('en', { type: 'language' });
/** By English name. Excludes dialect names such as `mandarin`. */
const CODES_BY_NAME = new Map(WHISPER_LANGUAGES.map((code) => [ENGLISH_NAMES.of(code)?.toLowerCase() ?? code, code]));
