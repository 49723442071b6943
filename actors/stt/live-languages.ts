import { describeLanguage, findTranscriptionLanguage, isArabicDialect } from '../../speech/languages.ts';

/** Why a live session cannot be in one of these; null when the catalogue has all of them. An engine may still not. */
export function languageRefusal(languages: readonly string[] | null): string | null {
  for (const code of languages ?? []) {
    if (isArabicDialect(code)) return `${JSON.stringify(code)} is a dialect: use "ar" for Arabic.`;
    const language = findTranscriptionLanguage(code);
    if (language === null)
      return `${JSON.stringify(code)} is not the ISO 639-1 code of a language that is transcribed.`;
    if (!language.isLive) return `${describeLanguage(code)} cannot be transcribed live. POST /stt takes files in it.`;
  }
  return null;
}
