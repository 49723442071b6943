/** A script and its language with the most speakers. */
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
  ['Han', 'zh'],
];

const LETTERS = SCRIPTS.map(([script, language]) => ({ language, letter: new RegExp(`\\p{Script=${script}}`, 'gu') }));

const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/gu;
/** Japanese has one kana for this many Han characters, at least. Chinese has some in names. */
const MOST_HAN_FOR_A_KANA = 8;

/** Returns the ISO 639-1 language that most letters outside of markup suggest; null for Latin letters or no letters. */
export function languageOfScript(markedText: string): string | null {
  const text = markedText.replaceAll(/<[^>]*>/g, ' ');
  let most = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  let language: string | null = null;
  const kana = text.match(KANA)?.length ?? 0;
  for (const { language: candidate, letter } of LETTERS) {
    const letters = text.match(letter)?.length ?? 0;
    const isJapanese = candidate === 'zh' && kana > 0 && letters <= MOST_HAN_FOR_A_KANA * kana;
    const count = isJapanese ? letters + kana : letters;
    if (count <= most) continue;
    most = count;
    language = isJapanese ? 'ja' : candidate;
  }
  return language;
}
