import { describe, expect, it } from 'vitest';
import { languageOfTag } from '../../http/language-tag.ts';

describe('the language of a tag', () => {
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
  ])('of %s is %s', (tag, language) => {
    expect(languageOfTag(tag)).toBe(language);
  });
});
