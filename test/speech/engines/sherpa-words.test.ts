import { describe, expect, it } from 'vitest';
import { hotwordsOf, letterCaseOf } from '../../../speech/engines/sherpa-onnx/hotwords.ts';
import {
  type RecognisedPiece,
  recognitionOfPieces,
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

describe('word times', () => {
  it('span the tokens of the word', () => {
    expect(times('hello world', [' hel', 'lo', ' world'], [0.1, 0.3, 0.5])).toEqual([
      ['hello', 100, 500],
      ['world', 500, 800],
    ]);
  });

  it('ignore added capitals, punctuation and spaces', () => {
    expect(times('Hello, world!', ['hel@@', 'lo', 'world'], [0.1, 0.3, 0.5])).toEqual([
      ['Hello,', 100, 500],
      ['world!', 500, 800],
    ]);
  });

  it('use the durations of the model if present', () => {
    expect(times('a b', [' a', ' b'], [0.1, 0.5], { durations: [0.08, 0.16] })).toEqual([
      ['a', 100, 180],
      ['b', 500, 660],
    ]);
  });

  it('cover single characters in scripts without spaces', () => {
    expect(times('你好，world', ['你', '好', ' wor', 'ld'], [0, 0.2, 0.4, 0.6])).toEqual([
      ['你', 0, 200],
      ['好，', 200, 400],
      ['world', 400, 900],
    ]);
  });

  it('support byte tokens', () => {
    expect(times('hé a', [' h', '<0xC3>', '<0xA9>', ' a'], [0.1, 0.2, 0.3, 0.6])).toEqual([
      ['hé', 100, 300],
      ['a', 600, 900],
    ]);
  });

  it('interpolate where numerals replace words', () => {
    const words = times('call 42', [' call', ' forty', ' two'], [0.1, 0.5, 0.9]);
    expect(words.map(([word]) => word)).toEqual(['call', '42']);
    expect(words[0]![1]).toBe(100);
    expect(words[1]![2]).toBe(1200);
  });

  it('divide the utterance by letters if tokens have no times', () => {
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

it('averages token probabilities to a word confidence', () => {
  const logProbabilities = [Math.log(0.5), Math.log(0.5), Math.log(0.9)];
  const words = timeWords('hello world', said([' hel', 'lo', ' world'], [0, 1, 2], { logProbabilities }), SPAN);
  expect(words.map(({ confidence }) => Number(confidence!.toFixed(3)))).toEqual([0.5, 0.9]);
});

describe('library result', () => {
  it('fails to parse with a TypeError if invalid', () => {
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

describe('recognition of pieces', () => {
  const options = {
    model: 'm',
    languages: ['zh', 'en', 'ja'],
    language: null,
    keywords: [],
    letterCase: 'mixed',
    punctuate: null,
  } as const;
  const piece = (text: string, more: object = {}): RecognisedPiece => ({
    ...SPAN,
    result: { text, said: said([], []), helped: [], language: '', segments: [], ...more },
    unboosted: null,
  });

  it('reports the language detected by the model', () => {
    expect(recognitionOfPieces([piece('ok', { language: '<|ja|>' })], options).language).toBe('ja');
    expect(recognitionOfPieces([piece('ok', { language: '<|yue|>' })], options).language).toBe('zh');
  });

  it('derives the language from the script if the model does not detect it', () => {
    expect(recognitionOfPieces([piece('你好')], options).language).toBe('zh');
    expect(recognitionOfPieces([piece('こんにちは 世界')], options).language).toBe('ja');
    expect(recognitionOfPieces([piece('hello')], options).language).toBe('en');
    expect(recognitionOfPieces([], options).language).toBe('zh');
  });

  it('lower-cases the text of an upper-case model', () => {
    const { text, words } = recognitionOfPieces([piece('HELLO')], { ...options, letterCase: 'upper' });
    expect({ text, word: words[0]?.word }).toEqual({ text: 'hello', word: 'hello' });
  });

  it('keeps the punctuation of the model', () => {
    const punctuate = (text: string) => `${text}!`;
    expect(recognitionOfPieces([piece("it's")], { ...options, punctuate }).text).toBe("it's!");
    expect(recognitionOfPieces([piece('Yes, it is.')], { ...options, punctuate }).text).toBe('Yes, it is.');
  });

  it('uses the sentence times of Whisper', () => {
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

describe('sherpa-onnx hotwords', () => {
  it('use the letter case of the vocabulary', () => {
    expect(letterCaseOf('<blk> 0\n<sos/eos> 1\nS 3\n▁THE 4\n#0 5\n')).toBe('upper');
    expect(letterCaseOf('<BLK> 0\n▁the 4\n')).toBe('lower');
    expect(letterCaseOf('▁The 4\n')).toBe('mixed');
    expect(letterCaseOf('你 1\n')).toBe('mixed');
    expect(hotwordsOf([{ term: 'Müller', weight: 1 }], 'upper')).toBe('MÜLLER :1.50');
  });

  it('carry their weight, and drop terms with weight 0', () => {
    const keywords = [
      { term: 'alpha', weight: 2 },
      { term: 'beta', weight: 0 },
      { term: 'gamma', weight: 10 },
    ];
    expect(hotwordsOf(keywords, 'mixed')).toBe('alpha :3.00/gamma :6.00');
  });

  it('contain only words', () => {
    const keywords = ['a:b/c\n#d', '  ', '/', 'x :9', '\u0000evil'].map((term) => ({ term, weight: 1 }));
    expect(hotwordsOf(keywords, 'mixed')).toBe('a b c d :1.50/x 9 :1.50/evil :1.50');
  });
});

describe('splitting of long audio', () => {
  const RATE = 16_000;
  const loud = (seconds: number) => new Float32Array(seconds * RATE).fill(0.5);

  it('cuts at a quiet point without losing samples', () => {
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

  it('cuts at the maximum length without a quiet point', () => {
    const pieces = new WholePieces(3 * RATE);
    const cut = [...pieces.add(loud(10))];
    const lengths = [...cut, pieces.take()].map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(3 * RATE);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(10 * RATE);
  });
});
