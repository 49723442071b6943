import type { Embedder } from '../../language/memory/embedder.ts';
import { addLetterFeatures } from '../../language/memory/letter-features.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { shuttingDown, TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { Slice } from '../../runtime/slices.ts';
import type { Sql } from '../../storage/database.ts';
import { charactersOf } from './memory-ingest.ts';
import { createTextCharges } from './text-charges.ts';
import type { TextEmbedding } from './text-embedding.ts';

export interface TextEmbeddingOptions {
  sql: Sql;
  embedder: Pick<Embedder, 'name' | 'dimensions' | 'batchSize' | 'embed'>;
  countTokens: CountTokens;
  clock: Clock;
  isClosed: () => boolean;
}

export function createTextEmbedding(options: TextEmbeddingOptions): TextEmbedding {
  const { embedder, countTokens, isClosed } = options;
  const { affordable, pay } = createTextCharges(options);

  return {
    embeddingModel: () => embedder.name,

    async embedTexts({ texts, dimensions, by }, signal) {
      if (isClosed()) throw shuttingDown();
      requireDimensions(dimensions, embedder.dimensions);
      const characters = texts.reduce((sum, text) => sum + charactersOf(text), 0);
      const cost = await affordable(by, characters);
      const embeddings: Float32Array[] = [];
      for (let start = 0; start < texts.length; start += embedder.batchSize) {
        signal.throwIfAborted();
        embeddings.push(...(await embedder.embed(texts.slice(start, start + embedder.batchSize), signal)));
        // An embeddings server reports its dimensions only with the first embedding.
        requireDimensions(dimensions, embeddings[0]?.length ?? null);
      }
      for (const [index, embedding] of embeddings.entries()) {
        if (embedding.every((value) => value === 0)) pointByCharacters(embedding, texts[index]!);
      }
      const tokens = await countAll(texts);
      signal.throwIfAborted();
      return { embeddings, tokens, charge: await pay(by, { operation: 'embed', cost }) };
    },
  };

  async function countAll(texts: readonly string[]): Promise<number> {
    const slice = new Slice();
    let tokens = 0;
    for (const text of texts) {
      if (slice.isOver) await slice.rest();
      tokens += countTokens(text);
    }
    return tokens;
  }
}

/**
 * Gives a direction to a text without letters and digits, such as an emoji. Memory ignores such texts, but clients
 * divide by the length of an embedding.
 */
function pointByCharacters(embedding: Float32Array, text: string): void {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  addLetterFeatures(embedding, counts);
  const length = Math.hypot(...embedding);
  for (let at = 0; at < embedding.length; at++) embedding[at]! /= length;
}

function requireDimensions(wanted: number | null, actual: number | null): void {
  if (wanted === null || actual === null || wanted === actual) return;
  const message = `must be ${actual}, because this model makes embeddings of one length only`;
  throw new TandemError('VALIDATION_FAILED', `dimensions ${message}.`, { details: [{ path: 'dimensions', message }] });
}
