import { describe, expect, it } from 'vitest';
import { evidenceOfCoverage, type FusedMemory } from '../../../language/memory/fusion.ts';
import { relevantAmong } from '../../../language/memory/relevance.ts';
import * as fc from '../../properties.ts';

const LEAST = { leastEvidence: 0.15 };

describe('relevant memories of a search result', () => {
  it('include everything down to half of the best score', () => {
    const fused = [found({ semantic: 0.8 }), found({ semantic: 0.4 }), found({ semantic: 0.39 })];
    expect(relevantAmong(fused, LEAST)).toEqual(fused.slice(0, 2));
  });

  it('include nothing if all are near by chance', () => {
    expect(relevantAmong([found({ semantic: 0.14 }), found({ semantic: 0.1 })], LEAST)).toEqual([]);
    expect(relevantAmong([], LEAST)).toEqual([]);
  });

  it('include a few words of a long conversation if nothing else matches better', () => {
    const fused = [found({ coverage: 0.12 }), found({ coverage: 0.11 }), found({ coverage: 0.05 })];
    expect(relevantAmong(fused, LEAST)).toEqual(fused.slice(0, 2));
    expect(relevantAmong([found({ semantic: 0.9 }), ...fused], LEAST)).toHaveLength(1);
  });

  it('depend on the embedder', () => {
    const fused = [found({ semantic: 0.1 })];
    expect(relevantAmong(fused, { leastEvidence: 0.05 })).toEqual(fused);
  });

  it('keep the order and include every strong match', () => {
    const evidence = fc.record({
      semantic: fc.double({ min: 0, max: 1, noNaN: true }),
      coverage: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(evidence, { maxLength: 20 }), (given) => {
        const fused = given.map(found).sort((a, b) => b.score - a.score);
        const relevant = relevantAmong(fused, LEAST);
        expect(relevant).toEqual(fused.filter((memory) => relevant.includes(memory)));
        for (const memory of fused) if (memory.score > 0.5) expect(relevant).toContain(memory);
      }),
    );
  });
});

function found({ semantic = 0, coverage = 0 }: { semantic?: number; coverage?: number }): FusedMemory {
  const keyword = evidenceOfCoverage(coverage);
  return {
    memoryId: `${semantic} ${coverage}`,
    unitId: 1n,
    score: 1 - (1 - semantic) * (1 - keyword),
    scores: { semantic, keyword: coverage },
    evidence: { semantic, keyword },
  };
}
