import type { Embedder } from './embedder.ts';
import { pointOf } from './point.ts';

/** A point and who made it: points of different embedders do not compare. */
export interface MadePoint {
  embedder: string;
  bytes: Uint8Array;
}

/** A text as it is found: by what stands over it as well. */
export interface PlacedText {
  heading: string | null;
  text: string;
}

/**
 * A point of each text, in their order, as it is stored.
 * @throws TandemError `MEMORY_UNREACHABLE`; the signal's reason
 */
export async function makePoints(
  embedder: Embedder,
  { texts, signal }: { texts: readonly PlacedText[]; signal: AbortSignal },
): Promise<MadePoint[]> {
  const points: MadePoint[] = [];
  for (let start = 0; start < texts.length; start += embedder.batchSize) {
    const batch = texts.slice(start, start + embedder.batchSize);
    const embedded = await embedder.embed(
      batch.map(({ heading, text }) => (heading === null ? text : `${heading}\n${text}`)),
      signal,
    );
    points.push(...embedded.map((embedding) => ({ embedder: embedder.name, bytes: pointOf(embedding) })));
  }
  return points;
}
