import { describe, expect, it } from 'vitest';
import { languageOfTag } from '../../http/language-tag.ts';

describe('languageOfTag', () => {
  it.each([
    ['en-US', 'en'],
    ['EN_in', 'en'],
    ['zh-Hans-CN', 'zh'],
    ['hi', 'hi'],
    ['auto', 'auto'],
    ['ar-EG', 'ar-eg'],
    ['ar', 'ar'],
    ['en-', 'en-'],
    ['english', 'english'],
  ])('maps %s to %s', (tag, language) => {
    expect(languageOfTag(tag)).toBe(language);
  });
});
