import { expect, it } from 'vitest';
import { csvRows } from '../../../language/documents/csv.ts';
import { markdownTable } from '../../../language/documents/markdown-table.ts';
import { pictureSize } from '../../../language/documents/picture-size.ts';
import { cleanText, decodeText } from '../../../language/documents/plain-text.ts';
import { joinLines, pageText, type TextRun } from '../../../language/documents/text-lines.ts';
import * as fc from '../../properties.ts';

const cell = fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', ';', '\n', '\r', ' ', '|', '\\') });
const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 5 });

it('reads quoted CSV values back', () => {
  fc.assert(
    fc.property(rows, (values) => {
      const lines = values.map((row) => row.map((value) => `"${value.replaceAll('"', '""')}"`).join(','));
      expect(csvRows(`${lines.join('\r\n')}\r\n`)).toEqual(values);
    }),
  );
});

it('detects the CSV separator and terminates for any text', () => {
  expect(csvRows('a;b;c\n1,5;2;"x";\n')).toEqual([
    ['a', 'b', 'c'],
    ['1,5', '2', 'x', ''],
  ]);
  expect(csvRows('a\tb')).toEqual([['a', 'b']]);
  expect(csvRows('"never closed, and\nmore')).toEqual([['never closed, and\nmore']]);
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', 'x') }), (text) => void csvRows(text)));
});

it('detects the CSV separator below a title and blank lines', () => {
  expect(csvRows('\nShips of May\n\na;b\n1,5;2\n')).toEqual([[''], ['Ships of May'], [''], ['a', 'b'], ['1,5', '2']]);
});

it('does not take punctuation in a CSV file of one column as its separator', () => {
  const text = 'Comment\nGreat service; would call again\n"Good, fast"\nSlow\n';
  expect(csvRows(text)).toEqual([['Comment'], ['Great service; would call again'], ['Good, fast'], ['Slow']]);
});

it('uses the CSV separator that the first line declares for Excel, and leaves that line out', () => {
  expect(csvRows('SEP=;\r\na, b, c;d\r\n')).toEqual([['a, b, c', 'd']]);
  expect(csvRows('sep=\t\na;b;c\td')).toEqual([['a;b;c', 'd']]);
  expect(csvRows('sep=ok,b\n1,2')).toEqual([
    ['sep=ok', 'b'],
    ['1', '2'],
  ]);
});

it('escapes cells so that every table row has the same columns', () => {
  fc.assert(
    fc.property(rows, (values) => {
      const lines = markdownTable(values).split('\n').filter(Boolean);
      const bars = lines.map((line) => line.replace(/\\./g, '').split('|').length);
      expect(new Set(bars).size).toBeLessThanOrEqual(1);
    }),
  );
});

it('removes control characters, and changes nothing the second time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const clean = cleanText(text);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for them.
      expect(clean).not.toMatch(/[\u0000-\u0008\u000b-\u001f]|\n{3}|^\n|\s$/);
      expect(clean.isWellFormed()).toBe(true);
      expect(cleanText(clean)).toBe(clean);
    }),
  );
});

it('decodes any text that has letters in UTF-8 and UTF-16', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z äöü]{4,40}$/), (text) => {
      expect(decodeText(Buffer.from(text))).toBe(text);
      expect(decodeText(Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(text, 'utf16le')]))).toBe(text);
    }),
  );
});

it('joins hyphenated words and no others', () => {
  expect(joinLines(['one to-', 'gether', 'Anglo-', 'Saxon', '5 -', 'four', 'soft\u00ad', 'Ware'])).toBe(
    'one together Anglo- Saxon 5 - four softWare',
  );
});

it('loses no letter of a page, in any painting order', () => {
  const number = fc.double({ noNaN: true, min: -2000, max: 2000 });
  const run: fc.Arbitrary<TextRun> = fc.record({
    ...{ text: fc.stringMatching(/^[A-Z]{1,5}$/), x: number, y: number, width: number },
    ...{ size: fc.double({ noNaN: true, min: 0.1, max: 100 }), endsLine: fc.boolean() },
  });
  fc.assert(
    fc.property(fc.array(run, { maxLength: 30 }), (runs) => {
      expect(pageText(runs).replace(/\s/g, '')).toBe(runs.map(({ text }) => text).join(''));
    }),
  );
});

it('returns no picture size for a truncated header and terminates for any bytes', () => {
  const beginning = { png: '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', jpg: '\xff\xd8\xff', webp: 'RIFF\0\0\0\0WEBPVP8 ' };
  for (const type of ['png', 'jpg', 'webp'] as const) {
    expect(pictureSize(Buffer.from(beginning[type], 'latin1'), type)).toBeNull();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (rest) => {
        pictureSize(Buffer.concat([Buffer.from(beginning[type], 'latin1'), rest]), type);
      }),
    );
  }
});

it('joins a page of very many pieces, side by side or below each other', () => {
  const count = 200_000;
  const piece = { text: 'b-', width: 1, size: 1, endsLine: false };
  const aside = Array.from({ length: count }, (_, x) => ({ ...piece, x, y: 0 }));
  expect(pageText(aside)).toBe('b-'.repeat(count));
  const below = Array.from({ length: count }, (_, line) => ({ ...piece, x: 0, y: -line }));
  expect(pageText(below)).toBe(`${'b'.repeat(count)}-`);
});
