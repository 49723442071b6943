import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clausesOf } from '../../../speech/synthesis/clauses.ts';

describe('a text in clauses', () => {
  it('is the text when they are joined again, whatever it is', () => {
    const piece = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('. ', ', ', ' ', '\n', '।', 'a', 'word '));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 200 }), (pieces) => {
        const text = pieces.join('');
        const words = text.split(/\s+/u).filter((word) => word !== '');
        const clauses = clausesOf(text);
        expect(clauses.join('').replaceAll(' ', '')).toBe(words.join(''));
        if (words.every(({ length }) => length <= 250)) expect(clauses.join(' ')).toBe(words.join(' '));
      }),
    );
  });

  it('ends one where a sentence ends, in any script and behind quotes', () => {
    expect(clausesOf('Hello. How are you? "Fine!" नमस्ते। ठीक है।')).toEqual([
      'Hello.',
      'How are you?',
      '"Fine!"',
      'नमस्ते।',
      'ठीक है।',
    ]);
  });

  it('says the first words early, and does not stumble at each comma after them', () => {
    const [first, ...rest] = clausesOf('As you may know, apples, pears, plums and cherries are fruit of trees.');
    expect(first).toBe('As you may know,');
    expect(rest).toEqual(['apples, pears, plums and cherries are fruit of trees.']);
  });

  it('keeps numbers and addresses whole', () => {
    expect(clausesOf('It costs 1,234.50 at example.com today.')).toEqual(['It costs 1,234.50 at example.com today.']);
  });

  it('cuts what has no punctuation at all', () => {
    const clauses = clausesOf('word '.repeat(1000));
    expect(Math.max(...clauses.map((clause) => clause.length))).toBeLessThanOrEqual(260);
    expect(clauses[0]!.length).toBeLessThan(100);
  });

  it('cuts a word that is longer than any clause, but no character', () => {
    const clauses = clausesOf(`a ${'😀'.repeat(500)} b`);
    expect(Math.max(...clauses.map((clause) => clause.length))).toBeLessThanOrEqual(400);
    expect(clauses.join('').replaceAll(' ', '')).toBe(`a${'😀'.repeat(500)}b`);
    for (const clause of clauses) expect(clause.isWellFormed()).toBe(true);
    expect(clausesOf('x'.repeat(200))).toEqual(['x'.repeat(200)]);
  });

  it('is none without words', () => {
    expect(clausesOf(' \n\t')).toEqual([]);
  });
});
