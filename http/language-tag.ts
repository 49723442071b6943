/**
 * The language of a tag in lower case: `en` of `en-US` or `EN_in`, `zh` of `zh-Hans-CN` (RFC 5646 §2.2.1). Arabic with a
 * region stays whole, because the specification refuses dialects of Arabic.
 */
export function languageOfTag(tag: string): string {
  const lower = tag.toLowerCase();
  const [, language = lower] = /^([a-z]{2,3})(?:[-_][a-z0-9]{1,8})+$/.exec(lower) ?? [];
  return language === 'ar' ? lower : language;
}
