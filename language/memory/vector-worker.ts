import { serveThread } from '../../runtime/serve-thread.ts';
import { type Nearness, PointCollection } from './point-collection.ts';
import type { PointChanges, VectorThread } from './vector-protocol.ts';

/** Thread of a `VectorIndex`: compares queries with the points that it was sent. */
const collections = new Map<string, PointCollection>();
const drafts = new Map<string, PointCollection>();

await serveThread<VectorThread>(() => ({
  ready: null,
  calls: { publish, search },
  notice(message) {
    switch (message.kind) {
      case 'begin':
        drafts.set(message.collectionId, new PointCollection(message.dimensions));
        return;
      case 'change':
        return change(message);
      case 'drop':
        collections.delete(message.collectionId);
        drafts.delete(message.collectionId);
    }
  },
}));

function change({ collectionId, isDraft, dimensions, removed, unitIds, memoryIds, bytes }: PointChanges): void {
  const points = (isDraft ? drafts : collections).get(collectionId);
  if (points === undefined) return;
  for (const unitId of removed) points.remove(unitId);
  for (const [index, unitId] of unitIds.entries()) {
    const point = bytes.subarray(index * dimensions, (index + 1) * dimensions);
    points.add({ unitId, memoryId: memoryIds[index]!, bytes: point });
  }
}

function publish({ collectionId }: VectorThread['calls']['publish']['request']): number {
  const draft = drafts.get(collectionId);
  if (draft !== undefined) {
    drafts.delete(collectionId);
    collections.set(collectionId, draft);
  }
  return collections.get(collectionId)?.bytes ?? 0;
}

function search({ collectionIds, query, limit, among }: VectorThread['calls']['search']['request']): Nearness {
  const allowed = among === null ? null : new Set(among);
  const parts = collectionIds.flatMap((id) => {
    const points = collections.get(id);
    return points === undefined ? [] : [points.nearestTo(query, { limit, among: allowed })];
  });
  return {
    nearest: parts
      .flatMap(({ nearest }) => nearest)
      .sort((a, b) => b.cosine - a.cosine || a.unitId - b.unitId)
      .slice(0, limit),
    compared: parts.reduce((sum, { compared }) => sum + compared, 0),
    sumOfCosines: parts.reduce((sum, { sumOfCosines }) => sum + sumOfCosines, 0),
  };
}
