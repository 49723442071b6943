import { countTokens as countWhole } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { countTokens, countWith } from '../../language/tokens.ts';
import * as fc from '../properties.ts';

const PROSE = 'A tandem is the exchange that joins two lines, and nobody hears it when it does so well. ';

describe('token counts', () => {
  it('match o200k_base', () => {
    expect(countTokens('')).toBe(0);
    expect(countTokens('hello world')).toBe(2);
    expect(countTokens('<|endoftext|>')).toBeGreaterThan(3);
    expect(countTokens(PROSE)).toBe(countWhole(PROSE));
  });

  it('in pieces match the whole text of prose approximately', () => {
    for (const text of [PROSE.repeat(100), PROSE.repeat(5000)]) {
      expect(countTokens(text) / countWhole(text)).toBeCloseTo(1, 1);
    }
  });

  it('add up for a text with different halves', () => {
    const count = countTokens(PROSE.repeat(1000) + '東京都'.repeat(30_000));
    const halves = countTokens(PROSE.repeat(1000)) + countTokens('東京都'.repeat(30_000));
    expect(count / halves).toBeGreaterThan(0.8);
    expect(count / halves).toBeLessThan(1.2);
  });

  it.each([
    ['one letter', 'a'.repeat(100_000)],
    ['lone surrogates', '\ud800'.repeat(100_000)],
    [
      'Han characters',
      Array.from({ length: 100_000 }, (_, at) => String.fromCharCode(0x4e00 + ((at * 7919) % 20_000))).join(''),
    ],
    ['stacked accents', 'e\u0301\u0302\u0303'.repeat(25_000)],
    ['blanks', ' '.repeat(100_000)],
    ['ten million letters', 'xq'.repeat(5_000_000)],
  ])('for 100,000 hostile characters (%s) need a few hundred pieces', (_name, text) => {
    let characters = 0;
    let longest = 0;
    const count = countWith((piece) => {
      characters += piece.length;
      longest = Math.max(longest, piece.length);
      return countTokens(piece);
    }, text);
    expect(characters).toBeLessThan(30_000);
    expect(longest).toBeLessThan(100);
    expect(count).toBeGreaterThan(text.length / 200);
    expect(count).toBeLessThan(text.length * 3);
  });

  it('cover each piece of a short text once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 700 }), (text) => {
        const pieces: string[] = [];
        const count = countWith((piece) => {
          pieces.push(piece);
          return 1;
        }, text);
        expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).toBe(text.length);
        expect([...pieces.join('')].sort()).toEqual([...text].sort());
        expect(count).toBe(pieces.length);
      }),
    );
  });
});
