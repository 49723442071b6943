import { describe, expect, it } from 'vitest';
import type { RecognisedWord } from '../../machines/utterances.ts';
import { hasKeywords, markBoosted } from '../../speech/boosted-words.ts';

const KEYWORDS = ['Dashwood', 'call centre', 'Zoe'].map((term) => ({ term, weight: 1 }));

/** Consecutive words of 100 ms; a tuple sets start and end in ms. */
function said(...words: (string | [word: string, startMs: number, endMs: number])[]): RecognisedWord[] {
  return words.map((each, index) => {
    const [word, startMs, endMs] = typeof each === 'string' ? [each, index * 100, index * 100 + 100] : each;
    return { word, startMs, endMs, confidence: 0.5, speaker: null, original: null };
  });
}

function originals(words: RecognisedWord[], unboosted: RecognisedWord[]) {
  return markBoosted(words, { unboosted, keywords: KEYWORDS }).map(({ word, original }) => [word, original]);
}

describe('boosted words', () => {
  it('record the unboosted word as their original', () => {
    expect(originals(said('mister', 'dashwood'), said('mister', 'dashboard'))).toEqual([
      ['mister', null],
      ['dashwood', 'dashboard'],
    ]);
  });

  it('record all unboosted words in their time span as their original', () => {
    const unboosted = said('hello', ['dash', 100, 150], ['would', 150, 210], ['here', 210, 300]);
    expect(originals(said('hello', 'dashwood', 'here'), unboosted)[1]).toEqual(['dashwood', 'dash would']);
    const terms = originals(said('the', 'call', 'centre'), said('the', ['colander', 100, 300]));
    expect(terms.slice(1)).toEqual([
      ['call', 'colander'],
      ['centre', 'colander'],
    ]);
  });

  it('record the unboosted words at their position if times are estimates', () => {
    const inOrder = (words: string[], unboosted: string[]) => {
      const options = { unboosted: said(...unboosted), keywords: KEYWORDS, by: 'order' as const };
      return markBoosted(said(...words), options).flatMap(({ word, original }) =>
        original === null ? [] : [[word, original]],
      );
    };
    expect(inOrder(['a', 'dashwood', 'b'], ['a', 'dash', 'would', 'b'])).toEqual([['dashwood', 'dash would']]);
    expect(inOrder(['dashwood', 'b'], ['b'])).toEqual([['dashwood', '']]);
    expect(inOrder(['a', 'zoe', 'c'], ['x', 'so', 'c'])).toEqual([['zoe', 'so']]);
    expect(inOrder(['to', 'call', 'centre'], ['to', 'call', 'send'])).toEqual([['centre', 'send']]);
    expect(inOrder(['Dashwood', 'and', 'zoe'], ['dashwood', 'hand', 'Zoe'])).toEqual([]);
  });

  it('record the right original late in a long text', () => {
    const long = Array.from({ length: 700 }, (_, at) => `word${at}`);
    const options = { unboosted: said('dash', ...long, 'so', 'we'), keywords: KEYWORDS, by: 'order' as const };
    const marked = markBoosted(said('dashwood', ...long, 'zoe'), options);
    expect(marked.filter(({ original }) => original !== null)).toMatchObject([
      { word: 'dashwood', original: 'dash' },
      { word: 'zoe', original: 'so we' },
    ]);
  });

  it.each([
    ['has implausibly many words', Array.from({ length: 60_000 }, (_, at) => `word${at}`)],
    ['has implausibly long words', Array.from({ length: 300 }, (_, at) => `${at}`.repeat(5_000))],
  ])('stay unmarked where the unboosted text %s', (_, unboosted) => {
    const words = said(...Array.from({ length: 20_000 }, () => ['zoe', 'and']).flat());
    const marked = markBoosted(words, { unboosted: said(...unboosted), keywords: KEYWORDS, by: 'order' });
    expect(marked.every(({ original }) => original === null)).toBe(true);
  });

  it('record an empty original if the unboosted text has no word there', () => {
    expect(originals(said('hello', 'zoe'), said('hello'))[1]).toEqual(['zoe', '']);
  });

  it('get marks word by word within a term', () => {
    expect(originals(said('call', 'centre'), said('call', 'send'))).toEqual([
      ['call', null],
      ['centre', 'send'],
    ]);
  });

  it('stay unmarked if the unboosted text equals them, however split or written', () => {
    expect(originals(said('a', 'dashwood'), said('a', 'Dashwood'))[1]).toEqual(['dashwood', null]);
    expect(originals(said(['call', 0, 50], ['centre', 50, 100]), said(['callcentre', 0, 100]))).toEqual([
      ['call', null],
      ['centre', null],
    ]);
  });

  it('include no words other than keywords', () => {
    expect(originals(said('good', 'day'), said('could', 'they'))).toEqual([
      ['good', null],
      ['day', null],
    ]);
  });
});

describe('keywords', () => {
  it('match the recognised words unless their weight is 0', () => {
    expect(hasKeywords(said('the', 'Centre'), KEYWORDS)).toBe(true);
    expect(hasKeywords(said('the', 'center'), KEYWORDS)).toBe(false);
    expect(hasKeywords(said('zoe'), [{ term: 'Zoe', weight: 0 }])).toBe(false);
  });
});
