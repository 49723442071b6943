import { describe, expect, it } from 'vitest';
import { errorRate, errorRateInterval, plainWords, sumOfErrors, wordErrors } from '../../bench/word-error-rate.ts';
import * as fc from '../properties.ts';
import { anyText } from './words.ts';

describe('word error rate', () => {
  it('counts substitutions, deletions and insertions', () => {
    expect(wordErrors('he was not an ill disposed young man', 'he was not an illness those young man')).toEqual({
      words: 8,
      substitutions: 2,
      deletions: 0,
      insertions: 0,
    });
    expect(wordErrors('go forward ten meters', 'go ten meters now')).toEqual({
      words: 4,
      substitutions: 0,
      deletions: 1,
      insertions: 1,
    });
    expect(errorRate(wordErrors('go forward ten meters', 'go ten meters now'))).toBe(0.5);
  });

  it('ignores case, punctuation and number formats', () => {
    const same = [
      ['Press 1, OK?', 'press one okay'],
      ['dial 500.', 'DIAL five hundred'],
      ['room 121 or 40', 'room one hundred twenty one or forty'],
      ['extension 1234', 'extension one two three four'],
      ['28.8 per cent', 'twenty-eight point eight per cent'],
      ["I’m sorry, that's it!", "i'm sorry that's it"],
      ['press # to exit (beep)', 'press pound to exit'],
      ['Voicemail of Mr. Jones', 'voice mail of mister jones'],
    ] as const;
    for (const [said, understood] of same) expect(errorRate(wordErrors(said, understood)), said).toBe(0);
  });

  it('ranges from 0 for no error to 1 for no words, and above 1 for insertions', () => {
    expect(errorRate(wordErrors('yes please', ''))).toBe(1);
    expect(errorRate(wordErrors('yes', 'no no no'))).toBe(3);
    expect(errorRate(wordErrors('', 'no'))).toBe(1);
    expect(errorRate(wordErrors('', ''))).toBe(0);
  });

  it('weights utterances by their words', () => {
    const sum = sumOfErrors([wordErrors('one two three', 'one two three'), wordErrors('one', 'two')]);
    expect(errorRate(sum)).toBe(0.25);
  });

  it('gives a confidence interval that narrows with more utterances', () => {
    const half = [wordErrors('one two', 'one two'), wordErrors('one two', '')];
    const widthOf = (times: number) => {
      const [low, high] = errorRateInterval(Array.from({ length: times }, () => half).flat());
      expect(low).toBeLessThanOrEqual(0.5);
      expect(high).toBeGreaterThanOrEqual(0.5);
      return high - low;
    };
    expect(widthOf(1)).toBe(1);
    expect(widthOf(5)).toBeLessThan(0.8);
    expect(widthOf(50)).toBeLessThan(0.25);
  });

  it('counts a symmetric number of errors, at most that of replacing everything', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 8 }).map((words) => words.join(' '));
    fc.assert(
      fc.property(text, text, (a, b) => {
        const there = wordErrors(a, b);
        const back = wordErrors(b, a);
        const errors = there.substitutions + there.deletions + there.insertions;
        expect(errors).toBe(back.substitutions + back.deletions + back.insertions);
        expect(errors).toBeLessThanOrEqual(Math.max(plainWords(a).length, plainWords(b).length));
        expect(there.deletions - there.insertions).toBe(plainWords(a).length - plainWords(b).length);
        expect(errors === 0).toBe(a === b);
      }),
    );
  });

  it('accepts any text', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(errorRate(wordErrors(text, text))).toBe(0);
      }),
    );
  });
});
