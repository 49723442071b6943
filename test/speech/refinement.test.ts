import { describe, expect, it } from 'vitest';
import { hasAddedWords, type Refine, refineTranscript, shareOfWordsKept } from '../../speech/refinement.ts';
import { createTestClock } from '../actors/fakes.ts';
import * as fc from '../properties.ts';

const CONTEXT = { general: [], text: null, terms: ['Tandem'] };
const ORIGINAL = { text: 'please call tan dem at noon', language: 'en' };

function refineWith(refine: Refine | null, { clock = createTestClock(), signal = new AbortController().signal } = {}) {
  return refineTranscript(ORIGINAL, { refine, context: CONTEXT, timeoutMs: 700, clock, signal });
}

describe('refinement', () => {
  it('returns the text of the model and its latency', async () => {
    const clock = createTestClock();
    const refinement = await refineWith(
      async ({ text, language, context }) => {
        expect({ text, language, context }).toEqual({ ...ORIGINAL, context: CONTEXT });
        clock.advance(300);
        return ' Please call Tandem at noon. ';
      },
      { clock },
    );
    const text = 'Please call Tandem at noon.';
    expect(refinement).toEqual({ text, llmApplied: true, llmReason: null, llmLatencyMs: 300 });
    expect(clock.waiting()).toEqual([]);
  });

  it('keeps the original without a model', async () => {
    const notApplied = { llmApplied: false, llmReason: 'llm_not_configured', llmLatencyMs: null };
    expect(await refineWith(null)).toEqual({ text: ORIGINAL.text, ...notApplied });
  });

  it('keeps the original when less than 40 per cent of its words remain', async () => {
    const rolledBack = await refineWith(async () => 'Please ring us.');
    expect(rolledBack).toMatchObject({
      text: ORIGINAL.text,
      llmApplied: false,
      llmReason: 'dropped_too_many_words',
    });
    expect(await refineWith(async () => 'Please call them at three.')).toMatchObject({ llmApplied: true });
  });

  it.each([
    ['zh', '今天天气很好我们走吧', '今天天气很好，我们走吧。'],
    ['ja', 'はい明日行きます', 'はい、明日行きます。'],
    ['th', 'สวัสดีครับวันนี้อากาศดี', 'สวัสดีครับ วันนี้อากาศดี'],
  ])('accepts punctuation and spaces in a text without spaces, in %s', async (language, text, answer) => {
    const clock = createTestClock();
    const signal = new AbortController().signal;
    const options = { refine: async () => answer, context: CONTEXT, timeoutMs: 700, clock, signal };
    expect(await refineTranscript({ text, language }, options)).toMatchObject({ text: answer, llmApplied: true });
    const other = { ...options, refine: async () => `${answer}${answer}` };
    expect(await refineTranscript({ text, language }, other)).toMatchObject({ text, llmReason: 'added_words' });
  });

  it('keeps the original when the model adds words, such as those of its prompt', async () => {
    const echo = 'The talk is about orders at Tandem. Please call tan dem at noon.';
    expect(await refineWith(async () => echo)).toMatchObject({ text: ORIGINAL.text, llmReason: 'added_words' });
  });

  it('keeps the original when the model returns nothing or fails', async () => {
    expect(await refineWith(async () => ' \n ')).toMatchObject({ text: ORIGINAL.text, llmReason: 'llm_empty' });
    const failing = refineWith(() => Promise.reject(new Error('503')));
    expect(await failing).toMatchObject({ text: ORIGINAL.text, llmReason: 'llm_unavailable' });
  });

  it('aborts the model at the timeout, even if it does not react', async () => {
    const clock = createTestClock();
    let modelSignal: AbortSignal | null = null;
    const refining = refineWith(
      ({ signal }) => {
        modelSignal = signal;
        return new Promise(() => {});
      },
      { clock },
    );
    clock.advance(700);
    expect(await refining).toEqual({
      text: ORIGINAL.text,
      llmApplied: false,
      llmReason: 'llm_timeout',
      llmLatencyMs: 700,
    });
    expect((modelSignal as AbortSignal | null)?.aborted).toBe(true);
  });
});

describe('detection of added words', () => {
  it.each([
    { original: 'call tan dem at noon', refined: 'Call Tandem at noon.' },
    { original: 'i am gonna call', refined: "I'm going to call." },
    { original: 'the reel ease of twenty one', refined: 'The release of 21.' },
    { original: 'wear ring', refined: 'We are ringing' },
    { original: 'and and so', refined: 'And so.' },
  ])('finds none in $refined for $original', ({ original, refined }) => {
    expect(hasAddedWords(original, refined)).toBe(false);
  });

  it.each([
    { original: 'call at noon', refined: 'Please call at noon.' },
    { original: 'call at noon', refined: 'Call us at noon.' },
    { original: 'call at noon', refined: 'Call at noon, thank you.' },
    { original: 'call tandem at noon', refined: 'Call the orders desk at noon.' },
    { original: '', refined: 'Thank you.' },
  ])('finds some in $refined for $original', ({ original, refined }) => {
    expect(hasAddedWords(original, refined)).toBe(true);
  });

  it('works for texts of any length', () => {
    const words = Array.from({ length: 3_000 }, (_, index) => `word${index}`);
    const added = words.map((_, index) => `other${index}`);
    expect(hasAddedWords(words.join(' '), words.join(' '))).toBe(false);
    expect(hasAddedWords(words.join(' '), [...words, ...added].join(' '))).toBe(true);
  });

  it('finds none in an unchanged text', () => {
    fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => !hasAddedWords(text, text)));
  });
});

describe('share of kept words', () => {
  it('ignores case, punctuation and order, and counts repetitions', () => {
    expect(shareOfWordsKept('go go go home', 'Home, go!')).toBe(0.5);
    expect(shareOfWordsKept("don't stop", 'Don’t, stop.'.replace('’', "'"))).toBe(1);
    expect(shareOfWordsKept('caf\u00e9', 'cafe\u0301')).toBe(1);
    expect(shareOfWordsKept('', 'anything')).toBe(1);
  });

  it('ranges from 0 to 1, with 1 for the same text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
        expect(shareOfWordsKept(a, a)).toBe(1);
        const share = shareOfWordsKept(a, b);
        expect(share >= 0 && share <= 1).toBe(true);
      }),
    );
  });
});
