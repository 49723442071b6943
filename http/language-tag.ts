/**
 * Extracts the language in lower case: `en` from `en-US` or `EN_in`, `zh` from `zh-Hans-CN` (RFC 5646 §2.2.1). Keeps
 * the region of Arabic, because the specification rejects Arabic dialects.
 */
export function languageOfTag(tag: string): string {
  const lower = tag.toLowerCase();
  const [, language = lower] = /^([a-z]{2,3})(?:[-_][a-z0-9]{1,8})+$/.exec(lower) ?? [];
  return language === 'ar' ? lower : language;
}
