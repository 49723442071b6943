import type { Embedder } from './embedder.ts';
import { pointOf } from './point.ts';

/** An embedding with the name of its embedder. Different embedders are not comparable. */
export interface MadePoint {
  embedder: string;
  bytes: Uint8Array;
}

/** A text with its heading, which is embedded as well. */
export interface PlacedText {
  heading: string | null;
  text: string;
}

/**
 * Embeds the texts, in order, in the form that is stored.
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
