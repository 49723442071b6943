import { describe, expect, it } from 'vitest';
import { quoteFinder } from '../../../language/judge/evidence.ts';
import * as fc from '../../properties.ts';
import { countTurns } from './turns.ts';

const SAID = ['“Good  morning”, said Zoë — it’s fine.\nReally', 'नमस्ते, आपका पार्सल\u200b आ रहा है', 'file ﬁne 😀 done'];

describe('quote finder', () => {
  it.each([
    ['copied exactly', 'said Zoë', 'said Zoë'],
    ['in another case', 'GOOD MORNING', 'Good  morning'],
    [
      'with other spaces, quotation marks and dashes',
      '"good morning", said zoë - it\'s',
      'Good  morning”, said Zoë — it’s',
    ],
    ['with a combining accent', 'said Zoe\u0308', 'said Zoë'],
    ['inside quotation marks and dots', ' "...Really..." ', 'Really'],
    ['across two texts', 'really नमस्ते', 'Really\nनमस्ते'],
    ['without invisible characters', 'पार्सल आ रहा', 'पार्सल\u200b आ रहा'],
    ['with a whole ligature', 'file fine', 'file ﬁne'],
    ['with astral characters', '😀 done', '😀 done'],
  ])('finds a quote %s and returns it as written in the text', async (_, quote, found) => {
    expect(await (await quoteFinder(SAID)).find(quote)).toBe(found);
  });

  it.each(['good evening', '', '"', '...', 'a', '—', '\u0000', 'R\uffa0', 'Reallynamaste', '😀😀'])(
    'finds no absent or invisible quote: %j',
    async (quote) => {
      expect(await (await quoteFinder(SAID)).find(quote)).toBeNull();
    },
  );

  it.each([
    ['I am unable to help.', 'able to help', null],
    ['That makes 1000 rupees.', '100', null],
    ['That makes 12.50.', '12', '12'],
    ['He is unpaid. She is paid.', 'paid', 'paid'],
    ['Die Lieferung bezahlt', 'zahlt', null],
    ['कर दिया', 'क र', null],
    ['वह करि है', 'वह कर', null],
    ['un cafe\u0301 noir', 'un cafe', null],
    ['我们没有收到包裹', '没有收到', '没有收到'],
    ['서울은 좋다', '서울', '서울'],
    ['각하', '가하', null],
    ["It is Asha's parcel.", 'Asha', 'Asha'],
    ['x\u{1d400}bc', 'bc', null],
  ])('matches whole words only, in scripts with word boundaries: of %j %j', async (text, quote, found) => {
    expect(await (await quoteFinder([text])).find(quote)).toBe(found);
  });

  it.each([
    ['one letter', 'a'.repeat(200_000), `${'a'.repeat(500)}b${'a'.repeat(499)}`],
    ['two letters', 'ab'.repeat(100_000), `aa${'ba'.repeat(499)}`],
    ['one word', 'a'.repeat(200_000), 'a'.repeat(999)],
  ])('yields to other work in the worst case, a text of %s', async (_, text, quote) => {
    const finder = await quoteFinder([text]);
    const others = countTurns();
    expect(await finder.find(quote)).toBeNull();
    expect(await others.count()).toBeGreaterThan(text.length / 4_096);
  });

  it('finds a quote of whole words in any text', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
        fc.nat(),
        fc.nat(),
        async (text, a, b) => {
          const words = text.split(/(?<=\s)/u);
          const from = a % words.length;
          const quote = words.slice(from, from + 1 + (b % words.length)).join('');
          const finder = await quoteFinder(['Before.', text, 'after']);
          const found = await finder.find(quote);
          // Hangul fillers are invisible letters.
          const letters = quote.normalize('NFKD').match(/[[\p{L}\p{N}]--\p{DI}]/gv)?.length ?? 0;
          if (letters >= 2) expect(found, JSON.stringify({ text, quote })).not.toBeNull();
          if (found !== null) expect(`Before.\n${text}\nafter`).toContain(found);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('yields to other work while it searches a long text', async () => {
    const text = `${'यह एक लंबी बातचीत है. It is long. '.repeat(6_000)}the end`;
    const others = countTurns();
    const finder = await quoteFinder([text]);
    const turns = await others.count();
    expect(await finder.find('long. The End')).toBe('long. the end');
    expect(turns).toBeGreaterThan(text.length / 16_384 - 1);
  });
});
