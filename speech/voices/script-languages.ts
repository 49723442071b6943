/** A script and its language with the most speakers. Kana come before Han, which Japanese uses too. */
const SCRIPTS: readonly (readonly [script: string, language: string])[] = [
  ['Devanagari', 'hi'],
  ['Bengali', 'bn'],
  ['Gurmukhi', 'pa'],
  ['Gujarati', 'gu'],
  ['Oriya', 'or'],
  ['Tamil', 'ta'],
  ['Telugu', 'te'],
  ['Kannada', 'kn'],
  ['Malayalam', 'ml'],
  ['Sinhala', 'si'],
  ['Arabic', 'ar'],
  ['Hebrew', 'he'],
  ['Cyrillic', 'ru'],
  ['Greek', 'el'],
  ['Georgian', 'ka'],
  ['Armenian', 'hy'],
  ['Ethiopic', 'am'],
  ['Thai', 'th'],
  ['Myanmar', 'my'],
  ['Hangul', 'ko'],
  ['Hiragana', 'ja'],
  ['Katakana', 'ja'],
  ['Han', 'zh'],
];

const LETTERS = SCRIPTS.map(([script, language]) => ({ language, letter: new RegExp(`\\p{Script=${script}}`, 'gu') }));

/** Returns the ISO 639-1 language that most letters outside of markup suggest; null for Latin letters or no letters. */
export function languageOfScript(markedText: string): string | null {
  const text = markedText.replaceAll(/<[^>]*>/g, ' ');
  let most = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  let language: string | null = null;
  for (const { language: candidate, letter } of LETTERS) {
    const count = text.match(letter)?.length ?? 0;
    if (count <= most) continue;
    most = count;
    language = candidate;
  }
  return language;
}
