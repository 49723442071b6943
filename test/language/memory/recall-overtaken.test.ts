import { expect, it } from 'vitest';
import { createOfflineEmbedder } from '../../../language/memory/embedder-offline.ts';
import { createRecall } from '../../../language/memory/recall.ts';

/** A store whose only memory gets new units between search and read, `times` times. */
function recallOvertaken(times: number) {
  let unit = 1n;
  let overtaken = 0;
  const recall = createRecall<null, never, { unitId: bigint; text: string }>({
    store: {
      collections: async () => [{ id: 'collection', revision: 1n, units: 1 }],
      byWords: async () => [{ unitId: unit, memoryId: 'memory', coverage: 1 }],
      unitsMeeting: async () => null,
      stillMeeting: async (_question, { unitIds }) => unitIds,
      async found(_viewer, unitIds) {
        if (overtaken < times) {
          overtaken += 1;
          unit += 1n;
        }
        return unitIds.filter((id) => id === unit).map((unitId) => ({ unitId, text: `unit ${unitId}` }));
      },
    },
    embedder: createOfflineEmbedder(),
    index: {
      search: async () => ({ nearest: [], compared: 0, sumOfCosines: 0, isPartial: false }),
      close: async () => {},
    },
    logger: { warn() {} },
  });
  return recall({ viewer: null, query: 'lantern', conditions: [], limit: 5, signal: new AbortController().signal });
}

it('finds a memory that is reprocessed between search and read', async () => {
  const { results, total } = await recallOvertaken(1);
  expect(results.map(({ text }) => text)).toEqual(['unit 2']);
  expect(total).toBe(1);
});

it('ends a search after repeated reprocessing', async () => {
  expect((await recallOvertaken(1_000)).results).toEqual([]);
});
