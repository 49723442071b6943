import { describe, expect, it } from 'vitest';
import { type Chunk, type ChunkOptions, chunksOf } from '../../../language/memory/chunks.ts';
import * as fc from '../../properties.ts';

const countTokens = (text: string) => (text.match(/\S{1,4}/g) ?? []).length;

function chunked(text: string, options: Partial<ChunkOptions> = {}): Chunk[] {
  return [...chunksOf(text, { countTokens, ...options })].filter((chunk) => chunk !== undefined);
}

const wordsOf = (text: string) => text.match(/\S+/g) ?? [];

describe('chunks of a text', () => {
  it('contain a short text unchanged', () => {
    const text = 'Asha prefers tea.\n\nShe lives in Pune.';
    expect(chunked(text)).toEqual([{ text, headings: [], tokens: 11 }]);
  });

  it('do not exist for blank text', () => {
    expect(chunked(' \n\t\r\n \n')).toEqual([]);
  });

  it('break at headings, and each carries the headings above it', () => {
    const body = 'The harbour opens early. '.repeat(20).trim();
    const text = `# Handbook\n\n${body}\n\n## Lamps\n\n${body}\n\n### Oil\n\n${body}\n\n## Ropes\n\n${body}`;
    const chunks = chunked(text);
    expect(chunks.map(({ headings, text: of }) => [headings, of.split('\n')[0]])).toEqual([
      [[], '# Handbook'],
      [['Handbook'], '## Lamps'],
      [['Handbook', 'Lamps'], '### Oil'],
      [['Handbook'], '## Ropes'],
    ]);
  });

  it('keep a heading with its first paragraph', () => {
    const long = 'word '.repeat(300).trim();
    const [first, second] = chunked(`${long}\n\n# Lamps\n\n${long}`);
    expect(first!.text).toBe(long);
    expect(second!.text.startsWith('# Lamps\n\nword')).toBe(true);
  });

  it('combine small sections', () => {
    expect(chunked('# A\n\nOne.\n\n# B\n\nTwo.\n\n# C\n\nThree.')).toHaveLength(1);
  });

  it('keep lists, tables and code whole if they fit', () => {
    const filler = 'The harbour opens early. '.repeat(30).trim();
    for (const block of [
      '- lamps\n- ropes\n  of hemp\n- oil',
      '| item | count |\n| --- | --- |\n| lamp | 7 |\n| rope | 2 |',
      '```js\nconst lamp = 7;\n\n# no heading\n```',
    ]) {
      const chunks = chunked(`${filler}\n\n${block}\n\n${filler}`, { targetTokens: 180 });
      expect(chunks.some(({ text }) => text.includes(block))).toBe(true);
    }
  });

  it('repeat the header of a table that is too long', () => {
    const head = '| item | count |\n| --- | --- |';
    const rows = Array.from({ length: 200 }, (_, row) => `| lamp ${row} | ${row} |`);
    const chunks = chunked([head, ...rows].join('\n'));
    expect(chunks.length).toBeGreaterThan(2);
    for (const { text } of chunks) expect(text.startsWith(head)).toBe(true);
    expect(chunks.flatMap(({ text }) => text.split('\n').slice(2))).toEqual(rows);
  });

  it('break a dialogue between turns, and repeat the speaker of a long turn', () => {
    const turn = 'Agent: Good morning, this is Asha of the harbour office. How can I help?';
    const answer = 'Customer: I want seven lanterns.';
    const talk = Array.from({ length: 40 }, () => `${turn}\n${answer}`).join('\n');
    for (const { text } of chunked(talk)) {
      for (const line of text.split('\n')) expect([turn, answer]).toContain(line);
    }
    const monologue = `Agent: ${'We open at seven, and close at nine. '.repeat(120)}`;
    const pieces = chunked(monologue);
    expect(pieces.length).toBeGreaterThan(2);
    for (const { text } of pieces) expect(text).toMatch(/^Agent: We open/);
  });

  it('overlap only where a paragraph had to be cut', () => {
    const sentences = Array.from({ length: 120 }, (_, index) => `Lantern ${index} hangs at door ${index}.`);
    const cut = chunked(sentences.join(' '));
    for (let index = 1; index < cut.length; index += 1) {
      const first = /^Lantern (\d+)/.exec(cut[index]!.text)![1];
      expect(cut[index - 1]!.text).toContain(`Lantern ${first} hangs`);
    }
    const paragraphs = chunked(sentences.join('\n\n'));
    expect(paragraphs.length).toBeGreaterThan(2);
    expect(paragraphs.flatMap(({ text }) => text.split('\n\n'))).toEqual(sentences);
  });

  it('break between sentences in a language without spaces', () => {
    const text = '灯笼挂在港口的门上，每天晚上七点点亮。'.repeat(200);
    const chunks = chunked(text, { countTokens: (of) => of.length });
    expect(chunks.length).toBeGreaterThan(1);
    for (const { text: of } of chunks) expect(of.endsWith('。')).toBe(true);
  });
});

describe('chunks of any text', () => {
  const line = fc.oneof(
    fc.constantFrom(
      '',
      '# A heading',
      '## Another',
      '- item',
      '| a | b |',
      '| --- | --- |',
      '```',
      '~~~~',
      'Agent: hello',
    ),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
    fc
      .array(fc.constantFrom('lamp', 'rope.', 'oil!', 'Asha:', '😀', '#'), { maxLength: 90 })
      .map((words) => words.join(' ')),
  );
  const text = fc.array(line, { maxLength: 60 }).map((lines) => lines.join('\n'));

  it('contain every word in order and respect the maximum', () => {
    fc.assert(
      fc.property(text, (given) => {
        const options = { targetTokens: 60, mostTokens: 90, overlapTokens: 10 };
        const chunks = chunked(given, options);
        const found = chunks.flatMap((chunk) => wordsOf(chunk.text));
        let at = 0;
        for (const word of wordsOf(given)) {
          // A word of hundreds of letters may be split itself.
          if (countTokens(word) > 30) continue;
          const next = found.indexOf(word, at);
          if (next === -1) throw new Error(`missing ${JSON.stringify(word)}`);
          at = Math.max(at, next - 60);
        }
        for (const chunk of chunks) {
          expect(chunk.text.trim()).not.toBe('');
          // Headings count in addition to a full chunk.
          expect(countTokens(chunk.text)).toBeLessThanOrEqual(90 + 64 + 90);
          expect(chunk.tokens).toBeGreaterThanOrEqual(countTokens(chunk.text));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('contain every letter of an endless word and no split surrogate pair', () => {
    for (const endless of ['x'.repeat(100_000), '😀'.repeat(50_000), `a${'😀'.repeat(49_999)}`]) {
      const chunks = chunked(endless);
      expect(chunks.map(({ text: of }) => of.isWellFormed())).not.toContain(false);
      const letters = chunks.reduce((sum, { text: of }) => sum + of.length, 0);
      expect(letters).toBeGreaterThanOrEqual(endless.length);
    }
  });

  it('cost a linear number of tokenizer calls', () => {
    const HOSTILE = [
      'x'.repeat(100_000),
      'a b '.repeat(25_000),
      '\n'.repeat(50_000) + 'end'.repeat(10_000),
      '.'.repeat(100_000),
      '. '.repeat(50_000),
      '#'.repeat(100_000),
      '# a\n'.repeat(25_000),
      `# ${'x'.repeat(99_000)}`,
      '|'.repeat(100_000),
      '| a |\n'.repeat(16_000),
      `${'|-'.repeat(20_000)}\n${'|-'.repeat(20_000)}\n${'| x |\n'.repeat(2_000)}`,
      '`'.repeat(100_000),
      '```\n'.repeat(25_000),
      '- '.repeat(50_000),
      'A: b\n'.repeat(20_000),
      `${'['.repeat(50_000)}${'A'.repeat(50_000)}`,
      '"'.repeat(100_000),
      '\r'.repeat(100_000),
      '\u2028'.repeat(100_000),
    ];
    for (const hostile of HOSTILE) {
      let counted = 0;
      let longest = 0;
      const counting = (of: string) => {
        counted += of.length;
        longest = Math.max(longest, of.length);
        return countTokens(of);
      };
      chunked(hostile, { countTokens: counting });
      expect(counted).toBeLessThan(12 * hostile.length);
      expect(longest).toBeLessThanOrEqual(400);
    }
  });

  it('offer places to yield', () => {
    for (const long of ['x'.repeat(100_000), 'lamp and rope. '.repeat(6_000), '\n'.repeat(50_000)]) {
      const pauses = [...chunksOf(long, { countTokens })].filter((chunk) => chunk === undefined);
      expect(pauses.length).toBeGreaterThan(20);
    }
  });
});
