import { describe, expect, it } from 'vitest';
import { judgeHallucination } from '../../speech/hallucination.ts';
import * as fc from '../properties.ts';
import { spokenUtterances } from './spoken.ts';
import { anyText } from './words.ts';

describe('hallucination gate', () => {
  it('rejects loops of words and of sentences', () => {
    expect(reasonFor('you '.repeat(12), { speechMs: 6_000 })).toBe('repetition');
    expect(reasonFor('thank you for watching. '.repeat(4), { speechMs: 6_000 })).toBe('repetition');
    expect(reasonFor('请订阅我的频道。'.repeat(4), { speechMs: 20_000 })).toBe('repetition');
    expect(reasonFor('धन्यवाद आपका '.repeat(6), { speechMs: 20_000 })).toBe('repetition');
  });

  it('rejects repetition that is not quite regular', () => {
    const verses = ['I think that we should go home', 'and I think that we should go home', 'well'];
    expect(reasonFor([...verses, ...verses, ...verses].join(', '), { speechMs: 30_000 })).toBe('repetition');
  });

  it('rejects impossibly fast speech', () => {
    const text = 'thank you very much for calling our support line and have a very nice day';
    expect(reasonFor(text, { speechMs: 300 })).toBe('too_fast');
    expect(reasonFor(text, { speechMs: 3_500 })).toBeNull();
    expect(reasonFor('非常感谢您致电我们的客户服务热线祝您愉快', { speechMs: 300 })).toBe('too_fast');
  });

  it('rejects text without voice activity', () => {
    expect(reasonFor('thank you', { speechMs: 30 })).toBe('no_speech');
  });

  it('rejects a low-confidence guess in noise, unless noise or confidence are unknown', () => {
    expect(reasonFor('the cat', { snrDb: 1 }, { confidence: 0.1 })).toBe('guess_in_noise');
    expect(reasonFor('the cat', { snrDb: null }, { confidence: 0.1 })).toBeNull();
    expect(reasonFor('the cat', { snrDb: 1 }, { confidence: null })).toBeNull();
    expect(reasonFor('the cat', { snrDb: 20 }, { confidence: 0.1 })).toBeNull();
  });

  it('rejects a repeated sentence after very short speech', () => {
    const previousTexts = ['How are you?', 'I will call you back tomorrow.'];
    const weak = { speechMs: 450, endMs: 4_000 };
    expect(reasonFor('I will call you back tomorrow', weak, { previousTexts })).toBe('echo');
    expect(reasonFor('I will call you back tomorrow', { speechMs: 1_500, endMs: 2_000 }, { previousTexts })).toBeNull();
    expect(reasonFor('How are you', weak, { previousTexts })).toBeNull();
  });

  it('accepts an empty text', () => {
    expect(reasonFor('', { speechMs: 0 })).toBeNull();
    expect(reasonFor(' . ', { speechMs: 0 })).toBeNull();
  });

  it('accepts short answers in many languages, even repeated', () => {
    const answers = [
      'yes',
      'no',
      'ja',
      'oui',
      'हाँ',
      'ठीक है',
      '对',
      'はい',
      'نعم',
      'да',
      'hello',
      'okay',
      'go on',
      '네',
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...answers),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 150, max: 400 }),
        fc.option(fc.double({ min: 0, max: 60, noNaN: true })),
        (answer, times, msEach, snrDb) => {
          const text = Array(times).fill(answer).join(', ');
          const speechMs = times * msEach;
          expect(
            reasonFor(text, { speechMs, endMs: speechMs + 1_500, snrDb }, { previousTexts: [text], confidence: 0.3 }),
          ).toBeNull();
        },
      ),
    );
  });

  it('accepts any text as input', () => {
    fc.assert(
      fc.property(anyText, fc.nat(10_000), (text, speechMs) => {
        expect(['string', 'object']).toContain(typeof reasonFor(text, { speechMs }));
      }),
    );
  });

  it('accepts dictated numbers', () => {
    const digits = fc.constantFrom('zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine');
    fc.assert(
      fc.property(fc.uniqueArray(digits, { minLength: 8, maxLength: 10 }), (order) => {
        const number = [...order, ...order.toReversed(), ...order.toSorted()];
        expect(reasonFor(number.join(' '), { speechMs: number.length * 300 })).toBeNull();
      }),
    );
    expect(reasonFor('0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0', { speechMs: 6_000 })).toBeNull();
  });

  it('accepts real speech, by sentence and as a whole', () => {
    const utterances = spokenUtterances();
    for (const { text, samples } of utterances) {
      expect(reasonFor(text, { speechMs: samples.length / 32 }), text).toBeNull();
    }
    expect(reasonFor(utterances.map(({ text }) => text).join('. '), { speechMs: 30_000 })).toBeNull();
  });
});

function reasonFor(
  text: string,
  speech: { speechMs?: number; endMs?: number; snrDb?: number | null },
  rest: { confidence?: number | null; previousTexts?: string[] } = {},
): string | null {
  const speechMs = speech.speechMs ?? 1_000;
  const verdict = judgeHallucination({
    text,
    confidence: rest.confidence ?? null,
    summary: { channel: 0, startMs: 0, endMs: speech.endMs ?? speechMs, speechMs, snrDb: speech.snrDb ?? null },
    previousTexts: rest.previousTexts ?? [],
  });
  expect(verdict.rejected).toBe(verdict.reason !== null);
  return verdict.reason;
}
