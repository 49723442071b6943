import { describe, expect, it } from 'vitest';
import { createOfflineEmbedder } from '../../../language/memory/embedder-offline.ts';
import { loadWordVectors } from '../../../language/memory/word-vectors/load-word-vectors.ts';
import * as fc from '../../properties.ts';
import { PARAPHRASES } from './paraphrases.ts';

const SIGNAL = new AbortController().signal;
const MEANING_DIMENSIONS = 100;
const embedder = createOfflineEmbedder();

describe('offline embedder', () => {
  it('returns the same embeddings in every release under its name', async () => {
    expect(embedder).toMatchObject({ name: 'glove-ngrams-1', dimensions: 768 });
    const [point] = await embedder.embed(['Asha lives in Mumbai.'], SIGNAL);
    const highest = (from: number, to: number) =>
      [...point!.entries()]
        .slice(from, to)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 2)
        .map(([place, value]) => [place, Number(value.toFixed(4))]);
    expect([...highest(0, MEANING_DIMENSIONS), ...highest(MEANING_DIMENSIONS, 768)]).toEqual(HIGHEST);
  });

  it('returns unit vectors for texts with a word, and zero vectors otherwise', async () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.constantFrom('', ' ', '?!', 'the of', "can't", "'s", '😀', '东京都', 'नमस्ते', '2015', 'rent Miete'),
      ),
      { maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(texts, async (given) => {
        const points = await embedder.embed(given, SIGNAL);
        expect(points).toHaveLength(given.length);
        points.forEach((point, index) => {
          const hasWord = /[\p{L}\p{M}\p{N}]/u.test(given[index]!.normalize('NFKD').replace(/[\u0300-\u036f]/g, ''));
          expect(Math.hypot(...point)).toBeCloseTo(hasWord ? 1 : 0, 4);
        });
      }),
    );
  });

  it('returns a unit vector for words whose features cancel one another', async () => {
    const [point] = await embedder.embed(['\u{2d22e} \u578c'], SIGNAL);
    expect(Math.hypot(...point!)).toBeCloseTo(1, 4);
  });

  it('ranks a paraphrase among the first five of 80 texts, in three of four cases', async () => {
    const passages = await embedder.embed(
      PARAPHRASES.map(([passage]) => passage),
      SIGNAL,
    );
    const questions = await embedder.embed(
      PARAPHRASES.map(([, question]) => question),
      SIGNAL,
    );
    const found = questions.filter((question, at) => {
      const own = cosine(question, passages[at]!);
      return passages.filter((passage) => cosine(question, passage) > own).length < 5;
    });
    expect(found.length / questions.length).toBeGreaterThan(0.75);
  });

  it('ranks inflected forms of the same words above other texts', async () => {
    const query = 'restarting the pods of a cluster';
    expect(await near(query, 'Pods restart when the cluster is upgraded')).toBeGreaterThan(
      (await near(query, 'Invoices are sent on the first of the month')) + 0.2,
    );
    expect(await near('Zürich café', 'ZURICH CAFE')).toBeCloseTo(1, 5);
    expect(await near('where is it', 'is it where')).toBeCloseTo(1, 5);
    expect(await near('we do not ship', 'we don’t ship')).toBeCloseTo(1, 5);
    expect(await near("Asha's bicycle", 'Asha bicycle')).toBeCloseTo(1, 5);
  });

  it('finds a text by misspelt words', async () => {
    const mistyped = 'cathdral bicycel';
    expect(await near(mistyped, 'The bicycle stands before the cathedral')).toBeGreaterThan(
      (await near(mistyped, 'The ferry leaves the harbour at noon')) + 0.1,
    );
  });

  it.each([
    ['Hindi', 'मेरा ऑर्डर कल आएगा', 'ऑर्डर कब आएगा', 'आज मौसम अच्छा है'],
    ['Telugu', 'నా ఆర్డర్ రేపు వస్తుంది', 'ఆర్డర్ ఎప్పుడు వస్తుంది', 'ఈ రోజు వాతావరణం బాగుంది'],
    ['Chinese', `${'他说'.repeat(40)}北京大学位于中国北京市海淀区`, '海淀区的大学', '天气很好'],
    ['Japanese', '東京都の天気', '東京都', '猫が好きです'],
    ['German', 'Die Rechnung wird am Montag verschickt', 'Rechnungen verschicken', 'Der Hund ist im Garten'],
    ['Spanish', 'El ascensor no funciona hasta el lunes', '¿funcionará el ascensor?', 'El perro está en el jardín'],
  ])('compares %s by letters alone', async (_, text, query, other) => {
    const [point] = await embedder.embed([text], SIGNAL);
    expect(point!.subarray(0, MEANING_DIMENSIONS).every((value) => value === 0)).toBe(true);
    expect(await near(text, query)).toBeGreaterThan((await near(other, query)) + 0.1);
  });

  it('weights letters by the share of unknown words', async () => {
    const meaningOf = async (text: string) => {
      const [point] = await embedder.embed([text], SIGNAL);
      return Math.hypot(...point!.subarray(0, MEANING_DIMENSIONS));
    };
    const shares = [await meaningOf('invoice'), await meaningOf('invoice zxqvw'), await meaningOf('zxqvw qqzzy')];
    expect(shares).toEqual(shares.toSorted((a, b) => b - a));
    expect(shares.at(-1)).toBe(0);
  });

  it('loads the word vectors at the first request, and again after a failure', async () => {
    const outcomes = [Promise.reject(new Error('no file')), loadWordVectors()];
    outcomes[0]!.catch(() => {});
    let loads = 0;
    const lazy = createOfflineEmbedder({ load: () => outcomes[loads++]! });
    expect(loads).toBe(0);
    await expect(lazy.embed(['text'], SIGNAL)).rejects.toThrow('no file');
    expect(await lazy.embed(['text'], SIGNAL)).toHaveLength(1);
  });

  it('stops when the signal aborts', async () => {
    const stopping = AbortSignal.abort(new Error('enough'));
    await expect(embedder.embed(['text'], stopping)).rejects.toThrow('enough');
  });

  it('yields to other work while it embeds many texts', async () => {
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const long = Array.from({ length: 4_000 }, (_, at) => `word${at}`).join(' ');
    await embedder.embed(
      Array.from({ length: 12 }, () => long),
      SIGNAL,
    );
    isDone = true;
    expect(turns).toBeGreaterThan(3);
  });
});

/** The largest values of an embedding, of its meaning and its letters. A change requires a new embedder name. */
const HIGHEST: [number, number][] = [
  [52, 0.2386],
  [89, 0.2202],
  [423, 0.1619],
  [187, 0.1114],
];

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, at) => sum + value * b[at]!, 0);
}

async function near(a: string, b: string): Promise<number> {
  const [first, second] = await embedder.embed([a, b], SIGNAL);
  return cosine(first!, second!);
}
