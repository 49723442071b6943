import { describe, expect, it } from 'vitest';
import { windowsOf } from '../../../language/correction/windows.ts';
import * as fc from '../../properties.ts';

const PIECES = [
  'word ',
  'two words. ',
  '\n',
  '\n\n',
  '```\ncode\n```\n',
  '```',
  ' ',
  '😀',
  'x'.repeat(400),
  'नमस्ते ',
  '。',
  '\r\n',
];
const text = fc
  .array(fc.tuple(fc.constantFrom(...PIECES), fc.integer({ min: 1, max: 120 })), { maxLength: 30 })
  .map((pieces) => pieces.map(([piece, times]) => piece.repeat(times)).join(''));

describe('correction windows', () => {
  it('join to the original text, have bounded length and split no character', () => {
    fc.assert(
      fc.property(text, (written) => {
        const windows = [...windowsOf(written)];
        expect(windows.map((window) => window.text).join('')).toBe(written);
        for (const window of windows.filter(({ isVerbatim }) => !isVerbatim)) {
          expect(window.text.length).toBeLessThanOrEqual(1_500);
          expect(window.text).toBe(window.text.trim());
          expect(window.text.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  it('end at a paragraph, else a line, a sentence, a word', () => {
    const cut = (unit: string, gap: string) => [...windowsOf(`${unit}${gap}`.repeat(60))][0]!.text;
    expect(cut('A sentence. Another sentence of it.', '\n\n')).toMatch(/of it\.$/);
    expect(cut('A sentence. Another line of it', '\n')).toMatch(/of it$/);
    expect(cut('A sentence of some words.', ' ')).toMatch(/words\.$/);
    expect(cut('endlessly', ' ')).toMatch(/endlessly$/);
  });
});
