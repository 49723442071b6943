import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoteFinder } from '../../../language/judge/evidence.ts';

const SAID = ['“Good  morning”, said Zoë — it’s fine.\nReally', 'नमस्ते, आपका पार्सल\u200b आ रहा है', 'file ﬁne 😀 done'];

describe('a quote', () => {
  it.each([
    ['as it stands', 'said Zoë', 'said Zoë'],
    ['in another case', 'GOOD MORNING', 'Good  morning'],
    [
      'with other spaces, quotation marks and dashes',
      '"good morning", said zoë - it\'s',
      'Good  morning”, said Zoë — it’s',
    ],
    ['with its accent written apart', 'said Zoe\u0308', 'said Zoë'],
    ['in marks and dots of the model', ' "...Really..." ', 'Really'],
    ['over two texts', 'really नमस्ते', 'Really\nनमस्ते'],
    ['without what nobody sees', 'पार्सल आ रहा', 'पार्सल\u200b आ रहा'],
    ['of a ligature, whole', 'file fine', 'file ﬁne'],
    ['with characters beyond the first plane', '😀 done', '😀 done'],
  ])('%s is found, and shown as it stands in the text', async (_, quote, found) => {
    expect((await quoteFinder(SAID)).find(quote)).toBe(found);
  });

  it.each(['good evening', '', '"', '...', 'a', '—', '\u0000', 'Reallynamaste', '😀😀'])(
    'that does not occur, or shows nothing, is not found: %j',
    async (quote) => {
      expect((await quoteFinder(SAID)).find(quote)).toBeNull();
    },
  );

  it('cut out of any text is found in it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
        fc.nat(),
        fc.nat(),
        async (text, a, b) => {
          const points = [...text];
          const from = a % points.length;
          const quote = points.slice(from, from + 1 + (b % points.length)).join('');
          const finder = await quoteFinder(['Before.', text, 'after']);
          const found = finder.find(quote);
          const letters = quote.normalize('NFKD').match(/[\p{L}\p{N}]/gu)?.length ?? 0;
          if (letters >= 2) expect(found, JSON.stringify({ text, quote })).not.toBeNull();
          if (found !== null) expect(`Before.\n${text}\nafter`).toContain(found);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is looked up in a long text without keeping others waiting', async () => {
    const text = `${'यह एक लंबी बातचीत है. It is long. '.repeat(6_000)}the end`;
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        await new Promise((resolve) => setImmediate(resolve));
        turns += 1;
      }
    })();
    const finder = await quoteFinder([text]);
    isOver = true;
    await others;
    expect(finder.find('long. The End')).toBe('long. the end');
    expect(turns).toBeGreaterThan(text.length / 16_384 - 1);
  });
});
