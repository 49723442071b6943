import { describe, expect, it } from 'vitest';
import { documentParts } from '../../actors/memory/document-parts.ts';
import * as fc from '../properties.ts';

const section = (text: string, heading: string | null = null) => ({ heading, page: null, text });

describe('documentParts', () => {
  it('keeps an ordinary document whole, with its headings', () => {
    expect(documentParts([section('a,b', 'Prices'), section('The rest.')])).toEqual(['## Prices\n\na,b\n\nThe rest.']);
  });

  it('splits a long document between sections', () => {
    const page = 'Lantern. '.repeat(4_000);
    const parts = documentParts(Array.from({ length: 7 }, () => section(page)));
    expect(parts.map((part) => part.split('\n\n').length)).toEqual([2, 2, 2, 1]);
  });

  it('splits a long section between paragraphs, and repeats its heading', () => {
    const paragraph = `${'Lantern. '.repeat(100)}end.`;
    const parts = documentParts([section(Array.from({ length: 400 }, () => paragraph).join('\n\n'), 'Lamps')]);
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts) {
      expect(part.startsWith('## Lamps\n\nLantern.')).toBe(true);
      expect(part.trimEnd().endsWith('end.')).toBe(true);
    }
  });

  it('splits a long table between rows, and repeats its head', () => {
    const head = '| Ship | Tons |\n| --- | --- |';
    const rows = Array.from({ length: 9_000 }, (_, index) => `| Lantern ${index} | ${index} |`);
    const parts = documentParts([section([head, ...rows].join('\n'), 'Fleet')]);
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) expect(part.startsWith(`## Fleet\n\n${head}\n| Lantern `)).toBe(true);
    expect(parts.flatMap((part) => part.trimEnd().split('\n').slice(4))).toEqual(rows);
  });

  it('does not repeat the head of a table that ended before the cut', () => {
    const letterhead = '| Lantern Ltd | Kiel |\n| --- | --- |\n| Phone | 4711 |';
    const paragraphs = Array.from({ length: 400 }, () => `${'Lantern. '.repeat(100)}end.`);
    const parts = documentParts([section([letterhead, ...paragraphs].join('\n\n'))]);
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts.slice(1)) expect(part.startsWith('Lantern.')).toBe(true);
  });

  it('preserves all text within the length limit', () => {
    const text = fc.tuple(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 12_000 }),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), (given) => {
        const sections = given.map(([unit, times]) => section(unit.repeat(times)));
        const parts = documentParts(sections);
        for (const part of parts) expect(part.length).toBeLessThanOrEqual(100_000);
        const letters = (of: string[]) => of.join('').replaceAll(/\s/g, '');
        expect(letters(parts)).toBe(letters(sections.map((each) => each.text)));
      }),
      { numRuns: 60 },
    );
  });

  it('cuts a long heading between two characters', () => {
    const kept = `${'x'.repeat(499)}🎉`;
    expect(documentParts([section('Text.', `${kept}🎉`)])).toEqual([`## ${kept}\n\nText.`]);
  });
});
