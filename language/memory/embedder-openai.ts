import { setTimeout as delay } from 'node:timers/promises';
import type OpenAI from 'openai';
import { TandemError } from '../../machines/errors.ts';
import type { LanguageEngineError } from '../engine.ts';
import type { ModelServerAddress } from '../engines/openai/openai-client.ts';
import type { Embedder } from './embedder.ts';

export interface OpenAiEmbedderOptions extends ModelServerAddress {
  model: string;
  /** Request timeout. Default 10 000 ms. */
  timeoutMs?: number;
  /** Retries after a transient failure. Default 2. */
  retries?: number;
  /** Delay before the first retry; doubles with each, with jitter. Default 300 ms. */
  retryDelayMs?: number;
}

/** Embeds with any server that has OpenAI's `/embeddings`. The response is untrusted and validated. */
export function createOpenAiEmbedder(options: OpenAiEmbedderOptions): Embedder {
  const { model, timeoutMs = 10_000, retries = 2, retryDelayMs = 300 } = options;
  // Loads OpenAI's package at start-up, because that takes a while, and only on servers that use it.
  const loading = import('../engines/openai/openai-client.ts').then(({ createOpenAiClient }) =>
    createOpenAiClient(options),
  );
  // Avoids an unhandled rejection. The first request reports the failure.
  loading.catch(() => {});
  let dimensions: number | null = null;

  return {
    name: `openai:${model}`,
    get dimensions() {
      return dimensions;
    },
    batchSize: BATCH,
    typicalCosine: TYPICAL_COSINE,
    leastEvidence: LEAST_EVIDENCE,
    async embed(texts, signal) {
      const points: Float32Array[] = [];
      for (let start = 0; start < texts.length; start += BATCH) {
        points.push(...(await embedBatch(texts.slice(start, start + BATCH), signal)));
      }
      return points;
    },
  };

  async function embedBatch(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted();
      try {
        const points = await ask(texts, signal);
        dimensions ??= points[0]?.length ?? null;
        return points;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const { serverRefusal } = await import('../engines/openai/server-refusal.ts');
        const refusal = error instanceof UnusableEmbeddings ? null : serverRefusal(error, options);
        if (attempt < retries && refusal?.retryable === true) {
          await delay(waitBefore(attempt, refusal), undefined, { signal }).catch(() => {});
          continue;
        }
        throw unreachable(refusal ?? error);
      }
    }
  }

  async function ask(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    const answer: unknown = await (await loading).embeddings.create(
      // Most servers reject an empty text, and half of a surrogate pair.
      { model, input: texts.map((text) => text.toWellFormed().trim() || ' . '), encoding_format: 'base64' },
      { signal, timeout: timeoutMs },
    );
    return readEmbeddings(answer, { count: texts.length, dimensions });
  }

  function waitBefore(attempt: number, { retryAfterS }: LanguageEngineError): number {
    const waitMs = retryDelayMs * 2 ** attempt * (0.5 + Math.random());
    return Math.min(LONGEST_WAIT_MS, Math.max(waitMs, 1000 * (retryAfterS ?? 0)));
  }
}

/** Texts per request; their embeddings have some hundred kilobytes. */
const BATCH = 32;
const LONGEST_WAIT_MS = 10_000;
/** The server's model is unknown, so only texts hardly nearer than average count as chance. */
const TYPICAL_COSINE = 0.1;
const LEAST_EVIDENCE = 0.05;
const MOST_DIMENSIONS = 8_192;

/** The response is not a valid list of embeddings for the texts. */
class UnusableEmbeddings extends Error {
  override readonly name = 'UnusableEmbeddings';
}

/** Ordered by `index`, each of length 1. @throws UnusableEmbeddings */
function readEmbeddings(
  answer: unknown,
  { count, dimensions }: { count: number; dimensions: number | null },
): Float32Array[] {
  const data = (answer as Partial<OpenAI.CreateEmbeddingResponse> | null)?.data;
  if (!Array.isArray(data) || data.length !== count) throw new UnusableEmbeddings('there is not one for each text');
  const points: (Float32Array | undefined)[] = Array.from({ length: count });
  for (const [position, item] of data.entries() as Iterable<
    [number, { index?: unknown; embedding?: unknown } | null]
  >) {
    const index = item?.index ?? position;
    if (typeof index !== 'number' || !(index in points) || points[index] !== undefined) {
      throw new UnusableEmbeddings('they are not numbered');
    }
    points[index] = readPoint(item?.embedding);
  }
  const expected = dimensions ?? points[0]?.length;
  if (points.some((point) => point?.length !== expected)) throw new UnusableEmbeddings('their dimensions differ');
  return points as Float32Array[];
}

function readPoint(embedding: unknown): Float32Array {
  const values = typeof embedding === 'string' ? fromBase64(embedding) : embedding;
  const isList = Array.isArray(values) || values instanceof Float32Array;
  if (!isList || values.length === 0 || values.length > MOST_DIMENSIONS) {
    throw new UnusableEmbeddings(`one has no dimensions, or more than ${MOST_DIMENSIONS}`);
  }
  let squares = 0;
  for (const value of values as ArrayLike<unknown> & Iterable<unknown>) {
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new UnusableEmbeddings('one is not of numbers');
    squares += value * value;
  }
  const length = Math.sqrt(squares);
  if (length === 0 || !Number.isFinite(length)) throw new UnusableEmbeddings('one has no direction');
  return Float32Array.from(values as ArrayLike<number>, (value) => value / length);
}

/** Little-endian 32-bit floats. */
function fromBase64(text: string): Float32Array {
  if (text.length > 8 * MOST_DIMENSIONS) throw new UnusableEmbeddings('one is too long');
  const bytes = Buffer.from(text, 'base64');
  const values = new Float32Array(bytes.length >> 2);
  for (let at = 0; at < values.length; at++) values[at] = bytes.readFloatLE(4 * at);
  return values;
}

/** Never repeats what the server wrote. */
function unreachable(cause: unknown): TandemError {
  const reason = cause instanceof Error ? cause.message : 'it failed';
  return new TandemError('MEMORY_UNREACHABLE', `The embeddings server cannot be used: ${reason}.`, {
    cause,
    retryAfterS: 10,
  });
}
