import { describe, expect, it } from 'vitest';
import { evidenceOfCosine, fuse, type RankedMemory } from '../../../language/memory/fusion.ts';
import * as fc from '../../properties.ts';

const ids = fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 30 });
const ranking = fc
  .tuple(ids, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 30, maxLength: 30 }))
  .map(([memories, evidences]): RankedMemory[] => memories.map((id, index) => ranked(`m${id}`, evidences[index]!)));

const nearest = ranking.map((memories) => {
  const evidences = memories.map(({ evidence }) => evidence).sort((a, b) => b - a);
  return memories.map((memory, index): RankedMemory => ({ ...memory, evidence: evidences[index]! }));
});

describe('the fusion of two orders', () => {
  it('has each memory once, whoever found it, and nothing else', () => {
    fc.assert(
      fc.property(ranking, ranking, (semantic, keyword) => {
        const fused = fuse({ semantic, keyword }).map(({ memoryId }) => memoryId);
        expect(fused.toSorted()).toEqual(
          [...new Set([...semantic, ...keyword].map(({ memoryId }) => memoryId))].toSorted(),
        );
      }),
    );
  });

  it('has scores from 0 to 1 that never rise from one place to the next', () => {
    fc.assert(
      fc.property(ranking, ranking, (semantic, keyword) => {
        const scores = fuse({ semantic, keyword }).map(({ score }) => score);
        scores.forEach((score, index) => {
          expect(score).toBeGreaterThanOrEqual(0);
          expect(score).toBeLessThanOrEqual(scores[index - 1] ?? 1);
        });
      }),
    );
  });

  it('puts what both have before it where one has it no better', () => {
    fc.assert(
      fc.property(nearest, ranking, (semantic, keyword) => {
        const places = fuse({ semantic, keyword }).map(({ memoryId }) => memoryId);
        const rankIn = (list: RankedMemory[], id: string) => list.findIndex(({ memoryId }) => memoryId === id);
        for (const [place, id] of places.entries()) {
          for (const other of places.slice(place + 1)) {
            const isBetter = (list: RankedMemory[]) =>
              rankIn(list, other) >= 0 && (rankIn(list, id) < 0 || rankIn(list, other) < rankIn(list, id));
            expect(isBetter(semantic) && isBetter(keyword)).toBe(false);
          }
        }
      }),
    );
  });

  it('gives what is near by chance neither the place nor the score of what has the words', () => {
    const semantic = [ranked('chance', 0.03), ranked('other', 0.02)];
    const keyword = [ranked('first', 1), ranked('second', 1), ranked('third', 1)];
    const fused = fuse({ semantic, keyword });
    expect(fused.map(({ memoryId }) => memoryId)).toEqual(['first', 'second', 'third', 'chance', 'other']);
    expect(fused.map(({ score }) => Number(score.toFixed(4)))).toEqual([1, 1, 1, 0.03, 0.02]);
  });

  it('is the same whichever of equals came first', () => {
    const [a, b] = [ranked('a', 0.5), ranked('b', 0.5)];
    const order = (semantic: RankedMemory[], keyword: RankedMemory[]) =>
      fuse({ semantic, keyword }).map(({ memoryId }) => memoryId);
    expect(order([a, b], [b, a])).toEqual(order([b, a], [a, b]));
  });

  it('takes both searches for witnesses, and evens out what contradicts the order', () => {
    const both = fuse({ semantic: [ranked('a', 0.5)], keyword: [ranked('a', 0.5)] });
    expect(both).toMatchObject([{ score: 0.75, scores: { semantic: 0.5, keyword: 0.5 } }]);
    // b is first with one, and says more than a, which is second and first.
    const uneven = fuse({ semantic: [ranked('b', 0.9), ranked('a', 0.1)], keyword: [ranked('a', 0.1)] });
    expect(uneven.map(({ memoryId }) => memoryId)).toEqual(['a', 'b']);
    expect(uneven[0]!.score).toBeCloseTo((0.19 + 0.9) / 2);
    expect(uneven[1]).toMatchObject({ score: uneven[0]!.score, scores: { semantic: 0.9, keyword: null } });
  });

  it('shows the unit of the search that ranks the memory higher', () => {
    const semantic = [ranked('x', 0.9), { ...ranked('a', 0.5), unitId: 1n }];
    const keyword = [{ ...ranked('a', 0.5), unitId: 2n }];
    expect(fuse({ semantic, keyword }).find(({ memoryId }) => memoryId === 'a')?.unitId).toBe(2n);
    expect(fuse({ semantic: [{ ...ranked('a', 0.5), unitId: 1n }], keyword }).at(0)?.unitId).toBe(2n);
    expect(
      fuse({ semantic: semantic.slice(1), keyword: [ranked('x', 1), ...keyword] }).find(
        ({ memoryId }) => memoryId === 'a',
      )?.unitId,
    ).toBe(1n);
  });
});

describe('what a cosine says', () => {
  it('is nothing for what is no nearer than anything is, and everything for the same', () => {
    const many = { compared: 1_000, sumOfCosines: 700 };
    expect(evidenceOfCosine(0.68, many)).toBe(0);
    expect(evidenceOfCosine(1, many)).toBe(1);
    expect(evidenceOfCosine(0.85, many)).toBeCloseTo(0.48, 1);
    expect(evidenceOfCosine(1, { compared: 1, sumOfCosines: 1 })).toBeGreaterThan(0.9);
  });

  it('is between 0 and 1, and rises with the cosine', () => {
    const cosine = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(cosine, cosine, fc.nat(1_000), cosine, (a, b, compared, mean) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)].map((value) =>
          evidenceOfCosine(value, { compared, sumOfCosines: mean * compared }),
        ) as [number, number];
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(high);
      }),
    );
  });
});

function ranked(memoryId: string, evidence: number): RankedMemory {
  return { memoryId, unitId: 7n, evidence, told: evidence };
}
