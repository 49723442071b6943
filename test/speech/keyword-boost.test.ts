import { describe, expect, it } from 'vitest';
import type { RecognisedWord } from '../../machines/utterances.ts';
import { boostKeywords } from '../../speech/keyword-boost.ts';
import * as fc from '../properties.ts';
import { spokenUtterances } from './spoken.ts';
import { wordsOf } from './words.ts';

describe('keyword boost', () => {
  it('replaces a similar word by a term and records the original', () => {
    const { text, words } = boost('mister john dashboard had then', ['Dashwood']);
    expect(text).toBe('mister john Dashwood had then');
    expect(words[2]).toEqual({ ...wordsOf('a b dashboard', 0.4)[2], word: 'Dashwood', original: 'dashboard' });
    expect(words.filter(({ original }) => original !== null)).toHaveLength(1);
  });

  it('joins words that form one term', () => {
    const { text, words } = boost('we run cooper netties here', ['Kubernetes']);
    expect(text).toBe('we run Kubernetes here');
    expect(words[2]).toMatchObject({ word: 'Kubernetes', original: 'cooper netties', startMs: 600, endMs: 1_150 });
  });

  it('splits a word into a term of several, within its time', () => {
    const { text, words } = boost('call johnsmith now', ['John Smith']);
    expect(text).toBe('call John Smith now');
    const [, john, smith] = words;
    expect(john).toMatchObject({ original: 'johnsmith', startMs: 300 });
    expect(smith).toMatchObject({ original: 'johnsmith', startMs: john!.endMs, endMs: 550 });
  });

  it('marks only the misrecognised word of a term', () => {
    const { words } = boost('please call john smyth', ['John Smith']);
    expect(words.map(({ word, original }) => [word, original]).slice(2)).toEqual([
      ['John', null],
      ['Smith', 'smyth'],
    ]);
  });

  it('uses the lowest confidence of joined words', () => {
    const words = wordsOf('cooper netties', 0.5);
    words[1]!.confidence = 0.2;
    expect(boostKeywords({ text: 'cooper netties', words }, terms(['Kubernetes'])).words[0]!.confidence).toBe(0.2);
  });

  it('adopts the spelling of a matching term without a mark', () => {
    const { text, words } = boost('ask openai about it', ['OpenAI']);
    expect(text).toBe('ask OpenAI about it');
    expect(words.every(({ original }) => original === null)).toBe(true);
  });

  it('keeps the punctuation in place', () => {
    expect(boost('Well, "dashboard", he said; Dash would!', ['Dashwood']).text).toBe(
      'Well, "Dashwood", he said; Dashwood!',
    );
  });

  it('updates the words if the text differs from them', () => {
    const { text } = boostKeywords(
      { text: '2 dashboards.', words: wordsOf('two dashboard', 0.4) },
      terms(['Dashwood']),
    );
    expect(text).toBe('two Dashwood');
  });

  it('replaces a confident word only if it sounds the same', () => {
    expect(boost('the cat sat', ['cut'], { confidence: 0.95 }).text).toBe('the cat sat');
    expect(boost('the cat sat', ['cut'], { confidence: 0.2 }).text).toBe('the cut sat');
    expect(boost('open an in voice', ['invoice'], { confidence: 0.95 }).text).toBe('open an invoice');
  });

  it('requires less similarity for a higher weight, and ignores weight 0', () => {
    const by = (weight: number) => boost('a random exchange', ['tandem'], { weight, confidence: 0.5 }).text;
    expect(by(0)).toBe('a random exchange');
    expect(by(1)).toBe('a random exchange');
    expect(by(10)).toBe('a tandem exchange');
    expect(boost('mister dashboard', ['Dashwood'], { weight: 0, confidence: 0 }).text).toBe('mister dashboard');
  });

  it('replaces at least as many words for a higher weight', () => {
    fc.assert(
      fc.property(fc.constantFrom(...NAMES), fc.double({ min: 0, max: 1, noNaN: true }), (name, confidence) => {
        const misrecognised = `${name.slice(0, -1)}o`.toLowerCase();
        const boosted = [0.1, 0.5, 1, 2, 5, 10].map(
          (weight) => boost(misrecognised, [name], { weight, confidence }).text,
        );
        const first = boosted.indexOf(name);
        if (first >= 0) expect(boosted.slice(first)).toEqual(boosted.slice(first).fill(name));
      }),
    );
  });

  it('compares letters in other scripts', () => {
    expect(boost('मुझे रमेष से बात करनी है', ['रमेश'], { weight: 5, confidence: 0.3 }).text).toBe('मुझे रमेश से बात करनी है');
  });

  it('never crosses a sentence end or a speaker change', () => {
    expect(boost('a cooper. netties', ['Kubernetes']).text).toBe('a cooper. netties');
    const words = wordsOf('cooper netties', 0.4).map((word, index) => ({ ...word, speaker: `speaker_${index + 1}` }));
    expect(boostKeywords({ text: 'cooper netties', words }, terms(['Kubernetes'])).text).toBe('cooper netties');
  });

  it('keeps ordinary sentences for any keywords', () => {
    for (const { text } of spokenUtterances()) {
      const names = NAMES.filter((name) => !text.includes(name.toLowerCase()));
      expect(boost(text, names, { confidence: 0.8 }).text).toBe(text);
    }
  });

  it('keeps times ordered and in range for any words and terms', () => {
    const word = fc.stringMatching(/^[a-z]{1,8}[.,]?$/);
    const term = fc.array(fc.stringMatching(/^[A-Za-z]{1,8}$/), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 10 }),
        fc.array(term, { minLength: 1, maxLength: 10 }),
        (recognised, keywords) => {
          const before = wordsOf(recognised.join(' '), 0.2);
          const { words, text } = boostKeywords(
            { text: recognised.join(' '), words: before },
            keywords.map((parts) => ({ term: parts.join(' '), weight: 10 })),
          );
          expect(text).toBe(words.map((each) => each.word).join(' '));
          let last = 0;
          for (const { startMs, endMs } of words) {
            expect(startMs).toBeGreaterThanOrEqual(last);
            expect(endMs).toBeGreaterThanOrEqual(startMs);
            last = endMs;
          }
          expect(last).toBe(before.at(-1)!.endMs);
        },
      ),
    );
  });
});

const NAMES = [
  'Kubernetes',
  'Postgres',
  'Salesforce',
  'Montgomery',
  'Kathryn',
  'Siobhan',
  'Vodafone',
  'Aadhaar',
  'Razorpay',
  'Dashwood',
  'Elinor',
  'Marianne',
  'Willoughby',
  'Brandon',
  'Middleton',
  'Barton',
  'Norland',
  'Ferrars',
  'Palmer',
];

function boost(
  text: string,
  names: readonly string[],
  { weight = 1, confidence = 0.4 }: { weight?: number; confidence?: number } = {},
): { text: string; words: RecognisedWord[] } {
  return boostKeywords({ text, words: wordsOf(text, confidence) }, terms(names, weight));
}

function terms(names: readonly string[], weight = 1) {
  return names.map((term) => ({ term, weight }));
}
