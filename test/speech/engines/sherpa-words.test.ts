import { describe, expect, it } from 'vitest';
import { hotwordsOf, letterCaseOf } from '../../../speech/engines/sherpa-onnx/hotwords.ts';
import {
  recognitionOfPieces,
  type UnderstoodPiece,
} from '../../../speech/engines/sherpa-onnx/recognition-of-pieces.ts';
import { parseResult } from '../../../speech/engines/sherpa-onnx/sherpa-result.ts';
import { WholePieces } from '../../../speech/engines/sherpa-onnx/whole-pieces.ts';
import { timeWords } from '../../../speech/engines/timed-words.ts';

const SPAN = { startMs: 0, endMs: 4000 };

function said(
  tokens: string[],
  timestamps: number[],
  more: { durations?: number[]; logProbabilities?: number[] } = {},
) {
  return { tokens, timestamps, durations: [], logProbabilities: [], ...more };
}

function times(text: string, ...rest: Parameters<typeof said>) {
  return timeWords(text, said(...rest), SPAN).map(({ word, startMs, endMs }) => [word, startMs, endMs]);
}

describe('the times of words', () => {
  it('are those of the tokens they are made of', () => {
    expect(times('hello world', [' hel', 'lo', ' world'], [0.1, 0.3, 0.5])).toEqual([
      ['hello', 100, 500],
      ['world', 500, 800],
    ]);
  });

  it('do not mind capitals, punctuation and spaces that were added', () => {
    expect(times('Hello, world!', ['hel@@', 'lo', 'world'], [0.1, 0.3, 0.5])).toEqual([
      ['Hello,', 100, 500],
      ['world!', 500, 800],
    ]);
  });

  it('follow the durations of models that tell them', () => {
    expect(times('a b', [' a', ' b'], [0.1, 0.5], { durations: [0.08, 0.16] })).toEqual([
      ['a', 100, 180],
      ['b', 500, 660],
    ]);
  });

  it('are told for each character where there are no spaces', () => {
    expect(times('你好，world', ['你', '好', ' wor', 'ld'], [0, 0.2, 0.4, 0.6])).toEqual([
      ['你', 0, 200],
      ['好，', 200, 400],
      ['world', 400, 900],
    ]);
  });

  it('are told of characters that are spelt in bytes', () => {
    expect(times('hé a', [' h', '<0xC3>', '<0xA9>', ' a'], [0.1, 0.2, 0.3, 0.6])).toEqual([
      ['hé', 100, 300],
      ['a', 600, 900],
    ]);
  });

  it('are shared out where numerals took the place of words', () => {
    const words = times('call 42', [' call', ' forty', ' two'], [0.1, 0.5, 0.9]);
    expect(words.map(([word]) => word)).toEqual(['call', '42']);
    expect(words[0]![1]).toBe(100);
    expect(words[1]![2]).toBe(1200);
  });

  it('share the utterance by letters where tokens have none', () => {
    expect(times('aa bbbbbb', [' aa', ' bbbbbb'], [])).toEqual([
      ['aa', 0, 1000],
      ['bbbbbb', 1000, 4000],
    ]);
  });

  it('stay within the utterance', () => {
    expect(times('a b', [' a', ' b'], [-0.3, 9])).toEqual([
      ['a', 0, 0],
      ['b', 4000, 4000],
    ]);
  });
});

it('is sure of a word as of its tokens', () => {
  const logProbabilities = [Math.log(0.5), Math.log(0.5), Math.log(0.9)];
  const words = timeWords('hello world', said([' hel', 'lo', ' world'], [0, 1, 2], { logProbabilities }), SPAN);
  expect(words.map(({ confidence }) => Number(confidence!.toFixed(3)))).toEqual([0.5, 0.9]);
});

describe('an answer of the library', () => {
  it('is refused when it is none', () => {
    for (const answer of [
      null,
      {},
      { text: 1, tokens: [], timestamps: [] },
      { text: '', tokens: [1], timestamps: [] },
    ]) {
      expect(() => parseResult(answer, { timesScale: 1 })).toThrow(TypeError);
    }
  });
});

describe('a recognition', () => {
  const options = {
    model: 'm',
    languages: ['zh', 'en', 'ja'],
    language: null,
    keywords: [],
    letterCase: 'mixed',
    punctuate: null,
  } as const;
  const piece = (text: string, more: object = {}): UnderstoodPiece => ({
    ...SPAN,
    result: { text, said: said([], []), helped: [], language: '', segments: [], ...more },
    unboosted: null,
  });

  it('is in the language that the model heard', () => {
    expect(recognitionOfPieces([piece('ok', { language: '<|ja|>' })], options).language).toBe('ja');
    expect(recognitionOfPieces([piece('ok', { language: '<|yue|>' })], options).language).toBe('zh');
  });

  it('is in the language that it looks like where the model does not tell', () => {
    expect(recognitionOfPieces([piece('你好')], options).language).toBe('zh');
    expect(recognitionOfPieces([piece('こんにちは 世界')], options).language).toBe('ja');
    expect(recognitionOfPieces([piece('hello')], options).language).toBe('en');
    expect(recognitionOfPieces([], options).language).toBe('zh');
  });

  it('does not shout because its model knows capitals only', () => {
    const { text, words } = recognitionOfPieces([piece('HELLO')], { ...options, letterCase: 'upper' });
    expect({ text, word: words[0]?.word }).toEqual({ text: 'hello', word: 'hello' });
  });

  it('keeps the punctuation of a model that sets it', () => {
    const punctuate = (text: string) => `${text}!`;
    expect(recognitionOfPieces([piece("it's")], { ...options, punctuate }).text).toBe("it's!");
    expect(recognitionOfPieces([piece('Yes, it is.')], { ...options, punctuate }).text).toBe('Yes, it is.');
  });

  it('has the times of the sentences that Whisper tells', () => {
    const segments = [
      { text: 'One.', startS: 0.5, endS: 1 },
      { text: 'Two.', startS: 2, endS: 3 },
    ];
    const { words } = recognitionOfPieces([piece('One. Two.', { segments })], options);
    expect(words.map(({ word, startMs, endMs }) => [word, startMs, endMs])).toEqual([
      ['One.', 500, 1000],
      ['Two.', 2000, 3000],
    ]);
  });
});

describe('hotwords', () => {
  it('are written as the vocabulary is', () => {
    expect(letterCaseOf('<blk> 0\n<sos/eos> 1\nS 3\n▁THE 4\n#0 5\n')).toBe('upper');
    expect(letterCaseOf('<BLK> 0\n▁the 4\n')).toBe('lower');
    expect(letterCaseOf('▁The 4\n')).toBe('mixed');
    expect(letterCaseOf('你 1\n')).toBe('mixed');
    expect(hotwordsOf([{ term: 'Müller', weight: 1 }], 'upper')).toBe('MÜLLER :1.50');
  });

  it('carry their weight, and none when that is nothing', () => {
    const keywords = [
      { term: 'alpha', weight: 2 },
      { term: 'beta', weight: 0 },
      { term: 'gamma', weight: 10 },
    ];
    expect(hotwordsOf(keywords, 'mixed')).toBe('alpha :3.00/gamma :6.00');
  });

  it('cannot say anything but words', () => {
    const keywords = ['a:b/c\n#d', '  ', '/', 'x :9', '\u0000evil'].map((term) => ({ term, weight: 1 }));
    expect(hotwordsOf(keywords, 'mixed')).toBe('a b c d :1.50/x 9 :1.50/evil :1.50');
  });
});

describe('long audio', () => {
  const RATE = 16_000;
  const loud = (seconds: number) => new Float32Array(seconds * RATE).fill(0.5);

  it('is cut where it is quiet, and nothing is lost', () => {
    const pieces = new WholePieces(3 * RATE);
    const audio = loud(5);
    audio.fill(0, 2.5 * RATE, 2.6 * RATE);
    const cut = [...pieces.add(audio)];
    expect(cut).toHaveLength(1);
    expect(cut[0]!.length / RATE).toBeGreaterThanOrEqual(2.5);
    expect(cut[0]!.length / RATE).toBeLessThanOrEqual(2.6);
    expect(cut[0]!.length + pieces.take().length).toBe(audio.length);
    expect(pieces.take()).toHaveLength(0);
  });

  it('is cut all the same where it never is', () => {
    const pieces = new WholePieces(3 * RATE);
    const cut = [...pieces.add(loud(10))];
    const lengths = [...cut, pieces.take()].map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(3 * RATE);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(10 * RATE);
  });
});
