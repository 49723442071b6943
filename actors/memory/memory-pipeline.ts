import { randomUUID } from 'node:crypto';
import type { LanguageModels } from '../../language/llm.ts';
import { type Chunk, chunksOf } from '../../language/memory/chunks.ts';
import type { Embedder } from '../../language/memory/embedder.ts';
import { decideFacts, type FactDecision } from '../../language/memory/fact-decisions.ts';
import { extractFacts, type Fact } from '../../language/memory/facts.ts';
import { makePoints } from '../../language/memory/make-points.ts';
import type { CountTokens } from '../../language/tokens.ts';
import { runInSlices } from '../../runtime/slices.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import type { MemoryRow } from '../../storage/queries/memories.ts';
import { insertFacts, type NewFact, removeFactsOf, similarFacts } from '../../storage/queries/memory-facts.ts';
import { finishMemory, lockAttempt } from '../../storage/queries/memory-processing.ts';
import { addUnits, removeUnitsOf, type UnitPoint } from '../../storage/queries/memory-units.ts';
import type { Logger } from '../logger.ts';

export interface PipelineOptions {
  sql: Sql;
  models: Pick<LanguageModels, 'complete'>;
  embedder: Embedder;
  countTokens: CountTokens;
  now: () => Date;
  logger: Logger;
  /** Time limit for the model. Default: five minutes. */
  extractWithinMs?: number;
}

/** One attempt at a memory, in stages. Each stage uses the results of earlier ones. */
export interface MemoryPipeline {
  extract(signal: AbortSignal): Promise<void>;
  chunk(signal: AbortSignal): Promise<void>;
  embed(signal: AbortSignal): Promise<void>;
  /** Stores the results. False: another attempt has the memory, or it was deleted; nothing is stored. */
  index(): Promise<boolean>;
}

/** A slow model must not block other memories. */
const EXTRACT_WITHIN_MS = 300_000;
const MOST_SIMILAR = 6;
/** Readable for people too. */
const HEADING_SEPARATOR = ' › ';

export function createPipeline(memory: MemoryRow, options: PipelineOptions): MemoryPipeline {
  const { sql, models, embedder, countTokens, now, logger, extractWithinMs = EXTRACT_WITHIN_MS } = options;
  let facts: (Fact & { decision: FactDecision })[] | null = null;
  let chunks: (Chunk & { heading: string | null })[] = [];
  let points: UnitPoint[] = [];

  return {
    async extract(signal) {
      if (!memory.infer) return;
      const within = AbortSignal.any([signal, AbortSignal.timeout(extractWithinMs)]);
      try {
        facts = await drawnFacts(within);
      } catch (error) {
        if (signal.aborted || !within.aborted) throw error;
        without('LLM_TIMEOUT');
      }
    },

    async chunk(signal) {
      const found = await runInSlices(collected(chunksOf(memory.content, { countTokens })), signal);
      chunks = found.map((chunk) => ({ ...chunk, heading: chunk.headings.join(HEADING_SEPARATOR) || null }));
    },

    async embed(signal) {
      const statements = (facts ?? []).map(({ statement }) => ({ heading: null, text: statement }));
      points = await makePoints(embedder, { texts: [...statements, ...chunks], signal });
    },

    async index() {
      return await inTransaction(sql, async (tx) => {
        const attempt = { id: memory.id, attempt: memory.attempts };
        const locked = await lockAttempt(tx, attempt);
        if (locked === null) return false;
        const { revision, collectionId } = locked;
        const at = now();
        await removeUnitsOf(tx, { memoryId: memory.id, collectionId, revision, now: at });
        await removeFactsOf(tx, { memoryId: memory.id, revision });
        const factCount = facts?.length ?? 0;
        const rows = (facts ?? []).map((fact, index): NewFact => newFact(fact, points[index] ?? null));
        await insertFacts(tx, { memory: locked, facts: rows, revision, now: at });
        const units = chunks.map(({ heading, text }, index) => ({
          kind: 'chunk' as const,
          text,
          heading,
          point: points[factCount + index] ?? null,
        }));
        await addUnits(tx, { memory: locked, units, revision });
        return await finishMemory(tx, attempt, { processedAs: facts === null ? 'chunks' : 'facts', now: at });
      });
    },
  };

  /** Null: store the text without facts. */
  async function drawnFacts(signal: AbortSignal): Promise<(Fact & { decision: FactDecision })[] | null> {
    const { id: memoryId, content: text, title, collectionId } = memory;
    const extraction = await extractFacts({ text, title }, { models, signal });
    if (extraction.facts === null) {
      without(extraction.because);
      return null;
    }
    const questions = [];
    for (const fact of extraction.facts) {
      const { statement, subject, attribute } = fact;
      const like = { memoryId, collectionId, statement, subject, attribute, limit: MOST_SIMILAR };
      questions.push({ fact, similar: await similarFacts(sql, like) });
      signal.throwIfAborted();
    }
    const decisions = await decideFacts(questions, { models, signal });
    return extraction.facts.map((fact, index) => ({ ...fact, decision: decisions[index]! }));
  }

  function without(because: string): void {
    const isExpected = because === 'LLM_NOT_CONFIGURED';
    logger[isExpected ? 'debug' : 'warn']({ memoryId: memory.id, because }, 'a memory is stored without its facts');
  }
}

/** Collects all chunks; can pause wherever `chunks` yields. */
function* collected(chunks: Generator<Chunk | undefined, void>): Generator<void, Chunk[]> {
  const all: Chunk[] = [];
  for (const chunk of chunks) {
    if (chunk !== undefined) all.push(chunk);
    yield;
  }
  return all;
}

function newFact({ decision, ...fact }: Fact & { decision: FactDecision }, point: UnitPoint | null): NewFact {
  return {
    ...fact,
    id: randomUUID(),
    deduplicatedInto: decision.action === 'same' ? decision.as : null,
    supersedes: decision.action === 'supersede' ? decision.ids : [],
    point,
  };
}
