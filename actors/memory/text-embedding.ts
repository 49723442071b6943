import type { MemoryCaller, MemoryCharge } from './memory-desk.ts';

/** Embeddings of texts, made by the embedder of memory. Implemented in `text-embedding.actor.ts`. */
export interface TextEmbedding {
  /** Name of the embedder. Embeddings of different names do not compare. */
  embeddingModel(): string;
  /**
   * Embeds the texts and then charges for their characters, so a request that fails is free.
   * @throws TandemError `VALIDATION_FAILED` for other dimensions than the embedder's, `INSUFFICIENT_CREDITS`,
   * `MEMORY_UNREACHABLE`, `SHUTTING_DOWN`; the signal's reason
   */
  embedTexts(request: EmbedTextsRequest, signal: AbortSignal): Promise<EmbeddedTexts>;
}

export interface EmbedTextsRequest {
  texts: readonly string[];
  /** Null: those of the embedder. */
  dimensions: number | null;
  by: Pick<MemoryCaller, 'workspaceId' | 'userId' | 'apiKeyId' | 'operationId'>;
}

export interface EmbeddedTexts {
  /** Each has length 1. */
  embeddings: readonly Float32Array[];
  /** Tokens of the texts, as Tandem counts them. */
  tokens: number;
  charge: MemoryCharge;
}
