import { describe, expect, it } from 'vitest';
import { createHashedEmbedder } from '../../../language/memory/embedder-hashed.ts';
import * as fc from '../../properties.ts';

const SIGNAL = new AbortController().signal;
const embedder = createHashedEmbedder();

describe('the embedder that needs no model', () => {
  it('says what it is, and makes the same points in every release of that name', async () => {
    expect(embedder).toMatchObject({ name: 'hashed-ngrams-2', dimensions: 768 });
    const [point] = await embedder.embed(['Asha lives in Mumbai.'], SIGNAL);
    const highest = [...point!.entries()].sort(([, a], [, b]) => b - a).slice(0, 3);
    expect(highest.map(([place, value]) => [place, Number(value.toFixed(4))])).toEqual(HIGHEST);
  });

  it('makes points of length 1 of whatever has a word, and of nothing else', async () => {
    const texts = fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('the of', '😀', '东京都', 'नमस्ते')), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(texts, async (given) => {
        const points = await embedder.embed(given, SIGNAL);
        expect(points).toHaveLength(given.length);
        points.forEach((point, index) => {
          const length = Math.hypot(...point);
          expect(length).toBeCloseTo(
            /[\p{L}\p{M}\p{N}]/u.test(given[index]!.normalize('NFKD').replace(/[\u0300-\u036f]/g, '')) ? 1 : 0,
            4,
          );
        });
      }),
    );
  });

  it('puts texts of the same words, in other forms, nearer than other texts', async () => {
    const near = async (a: string, b: string) => {
      const [first, second] = await embedder.embed([a, b], SIGNAL);
      return first!.reduce((sum, value, at) => sum + value * second![at]!, 0);
    };
    const query = 'restarting the pods of a cluster';
    expect(await near(query, 'Pods restart when the cluster is upgraded')).toBeGreaterThan(
      (await near(query, 'Invoices are sent on the first of the month')) + 0.2,
    );
    expect(await near('Zürich café', 'ZURICH CAFE')).toBeCloseTo(1, 5);
    expect(await near('where is it', 'is it where')).toBeCloseTo(1, 5);
    expect(await near('東京都の天気', '東京都')).toBeGreaterThan(0.5);
    const university = `${'他说'.repeat(40)}北京大学位于中国北京市海淀区`;
    expect(await near(university, '海淀区的大学')).toBeGreaterThan((await near('天气很好', '海淀区的大学')) + 0.1);
  });

  it('stops when it is told to', async () => {
    const stopping = AbortSignal.abort(new Error('enough'));
    await expect(embedder.embed(['text'], stopping)).rejects.toThrow('enough');
  });

  it('lets others have their turn while it works on many texts', async () => {
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

/** Where it is largest and how large: what changes these has to change the name. */
const HIGHEST: [number, number][] = [
  [439, 0.3679],
  [290, 0.1308],
  [639, 0.1308],
];
