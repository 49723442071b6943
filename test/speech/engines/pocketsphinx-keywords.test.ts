import { describe, expect, it } from 'vitest';
import { boostOf } from '../../../speech/engines/pocketsphinx/boost.ts';
import { pronunciationOf } from '../../../speech/engines/pocketsphinx/pronunciation.ts';
import * as fc from '../../properties.ts';

const PHONES = new Set(
  'AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH'.split(' '),
);
const emptyDictionary = (): boolean => false;

describe('guessed pronunciation', () => {
  it.each([
    ['dashwood', 'D AE SH W UW D'],
    ['tandem', 'T AE N D EH M'],
    ['zoom', 'Z UW M'],
    ['blaze', 'B L EY Z'],
    ['phone', 'F OW N'],
    ['quick', 'K W IH K'],
    ['station', 'S T AE SH AH N'],
    ['light', 'L AY T'],
    ['constructor', 'K AA N S T R AH K T AO R'],
    ['IVR', 'AY V IY AA R'],
    ['sql', 'EH S K Y UW EH L'],
    ['G711', 'JH IY S EH V AH N W AH N W AH N'],
  ])('spells %s as %s', (spelling, phones) => {
    expect(pronunciationOf(spelling)).toBe(phones);
  });

  it('contains only phones of the model', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a-zA-Z0-9']{1,20}$/)), (spelling) => {
        const phones = pronunciationOf(spelling)?.split(' ') ?? [];
        expect(phones.filter((phone) => !PHONES.has(phone))).toEqual([]);
      }),
    );
  });
});

describe('keyword language model', () => {
  it('contains the words in order and adds missing pronunciations', () => {
    const boost = boostOf([{ term: 'John Dashwood', weight: 1 }], (word) => word === 'john');
    expect(boost?.dictionary).toBe('dashwood D AE SH W UW D\n');
    expect(boost?.languageModel).toContain('ngram 1=5\nngram 2=1\n');
    expect(boost?.languageModel).toContain('-3.0000 john 0.0\n');
    expect(boost?.languageModel).toContain('-0.3000 john dashwood\n');
    expect(boost?.languageModel).not.toContain('3-grams');
  });

  it('grows with the weight of a keyword', () => {
    const log10 = (weight: number) => {
      const { languageModel } = boostOf([{ term: 'tandem', weight }], emptyDictionary)!;
      return Number(/(\S+) tandem/.exec(languageModel)![1]);
    };
    expect(log10(10)).toBeGreaterThan(log10(2));
    expect(log10(1000)).toBe(log10(10));
  });

  it('remains empty for terms without weight, letters or pronunciation', () => {
    const terms = ['', ' ', '!?', 'नमस्ते', '東京'].map((term) => ({ term, weight: 1 }));
    expect(boostOf([...terms, { term: 'tandem', weight: 0 }], emptyDictionary)).toBeNull();
  });

  it('stays syntactically valid for any terms', () => {
    const keyword = fc.record({
      term: fc.string({ unit: 'binary' }),
      weight: fc.double({ min: 0, max: 10, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(keyword), (keywords) => {
        const boost = boostOf(keywords, emptyDictionary);
        if (boost === null) return;
        expect(boost.dictionary).toMatch(/^([a-z0-9']+( [A-Z]+)+\n)*$/);
        const counted = [...boost.languageModel.matchAll(/^ngram \d=(\d+)$/gm)].map((match) => Number(match[1]));
        const listed = [...boost.languageModel.matchAll(/^-\d+\.\d{4} /gm)].length;
        expect(listed).toBe(counted.reduce((sum, each) => sum + each, 0));
      }),
    );
  });
});
