import { describe, expect, it } from 'vitest';
import { evidenceOfCosine, evidenceOfCoverage, fuse, type RankedMemory } from '../../../language/memory/fusion.ts';
import * as fc from '../../properties.ts';

const ids = fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 30 });
const ranking = fc
  .tuple(ids, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 30, maxLength: 30 }))
  .map(([memories, evidences]): RankedMemory[] => memories.map((id, index) => ranked(`m${id}`, evidences[index]!)));

const nearest = ranking.map((memories) => {
  const evidences = memories.map(({ evidence }) => evidence).sort((a, b) => b - a);
  return memories.map((memory, index): RankedMemory => ({ ...memory, evidence: evidences[index]! }));
});

describe('rank fusion', () => {
  it('contains every memory of either search once', () => {
    fc.assert(
      fc.property(ranking, ranking, (semantic, keyword) => {
        const fused = fuse({ semantic, keyword }).map(({ memoryId }) => memoryId);
        expect(fused.toSorted()).toEqual(
          [...new Set([...semantic, ...keyword].map(({ memoryId }) => memoryId))].toSorted(),
        );
      }),
    );
  });

  it('gives scores from 0 to 1 in descending order', () => {
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

  it('never ranks a memory below another one that both searches rank lower', () => {
    fc.assert(
      fc.property(nearest, nearest, (semantic, keyword) => {
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

  it('ranks keyword matches above chance vector neighbours', () => {
    const semantic = [ranked('chance', 0.03), ranked('other', 0.02)];
    const keyword = [ranked('first', 1), ranked('second', 1), ranked('third', 1)];
    const fused = fuse({ semantic, keyword });
    expect(fused.map(({ memoryId }) => memoryId)).toEqual(['first', 'second', 'third', 'chance', 'other']);
    expect(fused.map(({ score }) => Number(score.toFixed(4)))).toEqual([1, 1, 1, 0.03, 0.02]);
  });

  it('does not depend on the input order of ties', () => {
    const [a, b] = [ranked('a', 0.5), ranked('b', 0.5)];
    const order = (semantic: RankedMemory[], keyword: RankedMemory[]) =>
      fuse({ semantic, keyword }).map(({ memoryId }) => memoryId);
    expect(order([a, b], [b, a])).toEqual(order([b, a], [a, b]));
  });

  it('treats the searches as independent evidence', () => {
    const both = fuse({ semantic: [ranked('a', 0.5)], keyword: [ranked('a', 0.5)] });
    expect(both).toMatchObject([
      { score: 0.75, scores: { semantic: 0.5, keyword: 0.5 }, evidence: { semantic: 0.5, keyword: 0.5 } },
    ]);
  });

  it('ranks a good semantic match above keyword matches that share few words', () => {
    const semantic = [ranked('paraphrase', 0.4), ranked('other', 0.1)];
    const keyword = ['x', 'y', 'z'].map((id) => ranked(id, evidenceOfCoverage(0.3)));
    expect(fuse({ semantic, keyword })[0]).toMatchObject({
      memoryId: 'paraphrase',
      scores: { keyword: null },
      evidence: { keyword: 0 },
    });
  });

  it('orders memories of equal scores by their ranks', () => {
    const keyword = [ranked('second', 1), ranked('first', 1), ranked('third', 1)];
    const semantic = [ranked('first', 0.4), ranked('third', 0.1)];
    const fused = fuse({ semantic, keyword });
    expect(fused.map(({ memoryId }) => memoryId)).toEqual(['first', 'third', 'second']);
    expect(fused.map(({ score }) => score)).toEqual([1, 1, 1]);
  });

  it('shows the unit with the stronger evidence', () => {
    const unitOf = (semantic: number, keyword: number) =>
      fuse({
        semantic: [{ ...ranked('a', semantic), unitId: 1n }],
        keyword: [{ ...ranked('a', keyword), unitId: 2n }],
      })[0]!.unitId;
    expect(unitOf(0.5, 0.4)).toBe(1n);
    expect(unitOf(0.4, 0.5)).toBe(2n);
    expect(unitOf(0.5, 0.5)).toBe(2n);
    expect(fuse({ semantic: [{ ...ranked('a', 0), unitId: 1n }], keyword: [] })[0]!.unitId).toBe(1n);
  });
});

describe('evidence of word coverage', () => {
  it('ranges from 0 for none to 1 for all, and stays small for few words', () => {
    expect([0, 1].map(evidenceOfCoverage)).toEqual([0, 1]);
    expect(evidenceOfCoverage(0.3)).toBeLessThan(0.1);
    expect(evidenceOfCoverage(0.9)).toBeGreaterThan(0.8);
  });
});

describe('evidence of a cosine', () => {
  it('ranges from 0 for an average cosine to 1 for equal direction', () => {
    const many = { compared: 1_000, sumOfCosines: 700, typicalCosine: 0.1 };
    expect(evidenceOfCosine(0.68, many)).toBe(0);
    expect(evidenceOfCosine(1, many)).toBe(1);
    expect(evidenceOfCosine(0.85, many)).toBeCloseTo(0.48, 1);
    expect(evidenceOfCosine(1, { compared: 1, sumOfCosines: 1, typicalCosine: 0.1 })).toBeGreaterThan(0.9);
  });

  it('compares with unrelated texts while there are few', () => {
    const few = { compared: 1, sumOfCosines: 0.2 };
    const evidenceAt = (typicalCosine: number) => evidenceOfCosine(0.2, { ...few, typicalCosine });
    expect(evidenceAt(0.03)).toBeGreaterThan(evidenceAt(0.1) + 0.05);
    expect(evidenceAt(0.7)).toBe(0);
  });

  it('stays between 0 and 1 and grows with the cosine', () => {
    const cosine = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(cosine, cosine, fc.nat(1_000), cosine, (a, b, compared, mean) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)].map((value) =>
          evidenceOfCosine(value, { compared, sumOfCosines: mean * compared, typicalCosine: 0.1 }),
        ) as [number, number];
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(high);
      }),
    );
  });
});

function ranked(memoryId: string, evidence: number): RankedMemory {
  return { memoryId, unitId: 7n, evidence, shownValue: evidence };
}
