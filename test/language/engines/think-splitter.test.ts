import { describe, expect, it } from 'vitest';
import { ThinkSplitter } from '../../../language/engines/openai/think-splitter.ts';
import * as fc from '../../properties.ts';

function split(pieces: readonly string[]): { text: string; reasoning: string } {
  const splitter = new ThinkSplitter();
  const parts = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
  const joined = (type: string) => parts.filter((part) => part.type === type).map((part) => part.text);
  return { text: joined('text').join(''), reasoning: joined('reasoning').join('') };
}

function cutsOf(text: string): fc.Arbitrary<string[]> {
  return fc.array(fc.nat(text.length), { maxLength: 20 }).map((cuts) => {
    const edges = [0, ...cuts.sort((a, b) => a - b), text.length];
    return edges.slice(1).map((end, at) => text.slice(edges[at], end));
  });
}

const NEARLY_TAGS = fc.array(
  fc.oneof(
    fc.constantFrom('<think>', '</think>', '<', '</', '<thi', 'nk>', '</thin', 'k', ' ', '\n', '>'),
    fc.string(),
  ),
  { maxLength: 8 },
);

describe('think splitter', () => {
  it('takes the first block as reasoning and drops the white space around it', () => {
    expect(split(['\n<think>\nHm.\n</think>\n\nYes.\n'])).toEqual({ reasoning: '\nHm.\n', text: 'Yes.\n' });
    expect(split(['<think></think>Yes.'])).toEqual({ reasoning: '', text: 'Yes.' });
  });

  it('keeps tags that are not at the start', () => {
    const text = 'In HTML, <think>x</think> is no tag.';
    expect(split([text])).toEqual({ reasoning: '', text });
    expect(split(['<think>a</think> b <think>c</think>'])).toEqual({ reasoning: 'a', text: 'b <think>c</think>' });
  });

  it('takes an unclosed block as reasoning', () => {
    expect(split(['<think>I wonder </thin'])).toEqual({ reasoning: 'I wonder </thin', text: '' });
  });

  it('keeps the end of an answer that looks like the start of a tag', () => {
    expect(split([' <thi'])).toEqual({ reasoning: '', text: ' <thi' });
    expect(split(['  '])).toEqual({ reasoning: '', text: '  ' });
  });

  it('holds back only a little white space', () => {
    const splitter = new ThinkSplitter();
    const parts = Array.from({ length: 1000 }, () => splitter.push(' ')).flat();
    expect(parts.reduce((sum, { text }) => sum + text.length, 0)).toBeGreaterThan(700);
  });

  it('gives the same result for any chunks', () => {
    const cases = NEARLY_TAGS.map((parts) => parts.join('')).chain((text) => fc.tuple(fc.constant(text), cutsOf(text)));
    fc.assert(
      fc.property(cases, ([text, pieces]) => {
        expect(split(pieces)).toEqual(split([text]));
      }),
      { numRuns: 1000 },
    );
  });

  it('separates any reasoning from any answer behind it', () => {
    const thought = fc
      .string()
      .filter((text) => !text.includes('</think>') && !`${text}</think>`.slice(0, -8).includes('</'));
    const answer = fc.string().map((text) => text.trimStart());
    const cases = fc
      .tuple(thought, answer)
      .chain(([inner, text]) => fc.tuple(fc.constant({ inner, text }), cutsOf(`<think>${inner}</think>\n${text}`)));
    fc.assert(
      fc.property(cases, ([{ inner, text }, pieces]) => {
        expect(split(pieces)).toEqual({ reasoning: inner, text });
      }),
    );
  });
});
