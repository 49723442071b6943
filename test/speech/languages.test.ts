import { describe, expect, it } from 'vitest';
import {
  describeLanguage,
  findTranscriptionLanguage,
  isArabicDialect,
  TRANSCRIPTION_LANGUAGES,
} from '../../speech/languages.ts';

describe('language catalogue', () => {
  it('lists 39 unique ISO 639-1 codes in order, with English names', () => {
    const codes = TRANSCRIPTION_LANGUAGES.map(({ code }) => code);
    expect(codes).toHaveLength(39);
    expect(codes).toEqual([...new Set(codes)].sort());
    const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
    const otherNames: Record<string, string> = { bn: 'Bangla', tl: 'Filipino' };
    for (const { code, name } of TRANSCRIPTION_LANGUAGES) {
      expect(names.of(code), code).toBe(otherNames[code] ?? name);
    }
  });

  it('excludes twelve languages from live transcription', () => {
    const filesOnly = TRANSCRIPTION_LANGUAGES.filter(({ isLive }) => !isLive).map(({ code }) => code);
    expect(filesOnly.sort()).toEqual('fa he id ja ko sw th tl tr ur vi zh'.split(' '));
  });

  it('matches exact codes only and detects Arabic dialects', () => {
    expect(findTranscriptionLanguage('hi')).toEqual({ code: 'hi', name: 'Hindi', isLive: true });
    for (const code of ['auto', 'HI', 'en-US', 'xx', '', 'constructor']) {
      expect(findTranscriptionLanguage(code), code).toBeNull();
    }
    expect(['ar-eg', 'AR-SA', 'ar_EG', 'ar', 'arc', 'en-ar'].filter(isArabicDialect)).toEqual([
      'ar-eg',
      'AR-SA',
      'ar_EG',
    ]);
  });

  it('lists names for display', () => {
    expect([describeLanguage('ta'), describeLanguage('cy')]).toEqual(['Tamil (ta)', 'cy']);
  });
});
