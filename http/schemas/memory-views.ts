import { type TSchema, Type } from 'typebox';
import type {
  AssembledContext,
  CollectionView,
  Found,
  Ingested,
  IngestedMemory,
  MemoryUsage,
  MemoryView,
} from '../../actors/memory/memory-desk.ts';
import type { TandemError } from '../../machines/errors.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { MemoryTypeSchema } from './memory.ts';
import { nanoToUsd } from './money.ts';

const ID = '3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11';
const COLLECTION_ID = '0b7c8a52-1f0e-4b6a-9d1c-6a5f0e2d3c44';
const IdSchema = Type.String({ format: 'uuid', examples: [ID] });
const CollectionIdSchema = Type.String({ format: 'uuid', examples: [COLLECTION_ID] });
const StatusSchema = Type.Enum(['pending', 'processing', 'ready', 'failed']);
const StageSchema = nullable(Type.Enum(['extracting', 'chunking', 'embedding', 'indexing']));

const IngestResultSchema = Type.Object({
  id: nullable(IdSchema),
  status: Type.Enum(['pending', 'processing', 'ready', 'failed'], {
    description: '`pending` when it was queued; of one that was there before, what that is; `failed`: refused.',
  }),
  message: Type.String({ examples: ['Queued.'] }),
  deduplicated_into: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'The memory that says the same already; nothing is stored or charged.',
    }),
  ),
  code: Type.Optional(Type.String({ description: 'Of one that was refused.' })),
});

const INGESTED = {
  collection_id: CollectionIdSchema,
  collection_label: Type.String({ examples: ['Personal'] }),
  memory_type: MemoryTypeSchema,
  total_queued: Type.Integer({ examples: [1] }),
  results: Type.Array(IngestResultSchema),
};
export const IngestedSchema = Type.Object(INGESTED);
export const BatchIngestedSchema = Type.Object({
  ...INGESTED,
  total_failed: Type.Integer({ examples: [0] }),
  total_charged: Type.Number({ description: 'USD.', examples: [0.0000071] }),
});

export function presentIngested({ collectionId, collectionLabel, memoryType, results }: Ingested) {
  return {
    collection_id: collectionId,
    collection_label: collectionLabel,
    memory_type: memoryType,
    total_queued: results.filter(({ outcome }) => outcome === 'queued').length,
    results: results.map(presentResult),
  };
}

export function presentBatch(ingested: Ingested) {
  return {
    ...presentIngested(ingested),
    total_failed: ingested.results.filter(({ outcome }) => outcome === 'refused').length,
    total_charged: nanoToUsd(ingested.charge?.chargedNano ?? 0n),
  };
}

function presentResult(result: IngestedMemory) {
  switch (result.outcome) {
    case 'queued':
      return { id: result.id, status: 'pending', message: 'Queued.' };
    case 'deduplicated': {
      const message = 'The collection has this memory already. Nothing was stored or charged.';
      return { id: result.id, status: result.status, message, deduplicated_into: result.id };
    }
    case 'refused': {
      const { message, code } = result.refusal as TandemError;
      return { id: null, status: 'failed', message, code };
    }
  }
}

const ErrorOfMemorySchema = nullable(
  Type.Object(
    { code: Type.String(), message: Type.String() },
    { description: 'Why it failed, or why the last attempt did; it is tried again while it is `processing`.' },
  ),
);
const STATUS_FIELDS = {
  id: IdSchema,
  status: StatusSchema,
  stage: StageSchema,
  attempts: Type.Integer({ description: 'So far.' }),
  error: ErrorOfMemorySchema,
  created_at: TimeSchema,
  updated_at: TimeSchema,
};
export const MemoryStatusSchema = Type.Object(STATUS_FIELDS);

export function presentStatus({ id, status, stage, attempts, error, createdAt, updatedAt }: MemoryView) {
  const times = { created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() };
  return { id, status, stage, attempts, error, ...times };
}

const SourceSchema = nullable(
  Type.Object(
    {
      file_name: nullable(Type.String()),
      format: Type.String({ examples: ['pdf'] }),
      pages: nullable(Type.Integer()),
      ocr: Type.Boolean(),
      warnings: Type.Array(Type.String()),
    },
    { description: 'The document that it was read from.' },
  ),
);
const LISTED_FIELDS = {
  ...STATUS_FIELDS,
  title: nullable(Type.String()),
  type: MemoryTypeSchema,
  collection_id: CollectionIdSchema,
  infer: Type.Boolean(),
  stored_as: nullable(
    Type.Enum(['facts', 'chunks'], {
      description:
        'Once it is ready. `facts`: what a language model drew from it, beside its text in chunks. `chunks`: its text alone, because `infer` was false, no model is configured, or the model’s answer was of no use.',
    }),
  ),
  characters: Type.Integer(),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  source: SourceSchema,
  created_by: Type.Integer({ description: 'User id.' }),
};
export const ListedMemorySchema = Type.Object({
  ...LISTED_FIELDS,
  excerpt: Type.String({ description: 'How its text begins.' }),
});
const FactSchema = Type.Object({
  id: IdSchema,
  category: Type.Enum(['fact', 'preference']),
  memory: Type.String({ examples: ['Asha Rao moved to Mumbai in May.'] }),
  deduplicated_into: nullable(IdSchema as TSchema),
  superseded_by: nullable(IdSchema as TSchema),
});
export const MemorySchema = Type.Object({
  ...LISTED_FIELDS,
  text: Type.String(),
  facts: Type.Array(FactSchema, {
    description:
      'Drawn from it. One that repeats another fact names it in `deduplicated_into`; one that a later fact contradicts is kept as history and names that in `superseded_by`. Neither is found any more.',
  }),
});

export function presentListedMemory(memory: MemoryView) {
  return { ...presentBasics(memory), excerpt: memory.text };
}

export function presentMemory(memory: MemoryView) {
  const facts = (memory.facts ?? []).map(({ id, category, text, deduplicatedInto, supersededBy }) => ({
    id,
    category,
    memory: text,
    deduplicated_into: deduplicatedInto,
    superseded_by: supersededBy,
  }));
  return { ...presentBasics(memory), text: memory.text, facts };
}

function presentBasics(memory: MemoryView) {
  const { title, type, collectionId, infer, storedAs, characters, metadata, source, createdBy } = memory;
  return {
    ...presentStatus(memory),
    title,
    type,
    collection_id: collectionId,
    infer,
    stored_as: storedAs,
    characters,
    metadata,
    source,
    created_by: createdBy,
  };
}

const ScoreSchema = Type.Number({ description: '0 to 1.', examples: [0.82] });
const DegradedSchema = Type.Boolean({
  description:
    'True when part of the search could not be done, such as that by meaning because the embeddings server did not answer. Then nothing is charged.',
});
export const FoundSchema = Type.Object({
  results: Type.Array(
    Type.Object({
      id: IdSchema,
      memory: Type.String({ description: 'The words that were found: a fact, or a part of the text.' }),
      title: nullable(Type.String()),
      score: ScoreSchema,
      scores: Type.Object({ semantic: nullable(ScoreSchema), keyword: nullable(ScoreSchema) }),
      collection_id: CollectionIdSchema,
      type: MemoryTypeSchema,
      metadata: Type.Record(Type.String(), Type.Unknown()),
      created_at: TimeSchema,
    }),
    { description: 'The best first.' },
  ),
  total: Type.Integer({ description: 'How many were found, some hundred at most; `limit` of them are here.' }),
  timing_ms: Type.Number(),
  degraded: DegradedSchema,
});

export function presentFound({ hits, total, tookMs, isDegraded }: Found) {
  const results = hits.map(({ memoryId, text, title, score, scores, collectionId, type, metadata, createdAt }) => ({
    id: memoryId,
    memory: text,
    title,
    score,
    scores,
    collection_id: collectionId,
    type,
    metadata,
    created_at: createdAt.toISOString(),
  }));
  return { results, total, timing_ms: Math.round(tookMs * 10) / 10, degraded: isDegraded };
}

export const ContextSchema = Type.Object({
  context: Type.String({
    description:
      'For a prompt: lines of JSON between tags that nothing in them can end, with a sentence that says they are data. Empty when nothing was found.',
  }),
  token_count: Type.Integer({ description: 'At most `max_tokens`; the context has no more.' }),
  sources: Type.Array(Type.Object({ id: IdSchema, score: ScoreSchema }), {
    description: 'Of each line its memory, in their order.',
  }),
  degraded: DegradedSchema,
});

export function presentContext({ text, tokens, sources, isDegraded }: AssembledContext) {
  return { context: text, token_count: tokens, sources, degraded: isDegraded };
}

export const CollectionSchema = Type.Object({
  collection_id: CollectionIdSchema,
  name: Type.String(),
  label: Type.String({ description: 'For people.' }),
  type: MemoryTypeSchema,
  memory_count: Type.Integer(),
  created_by: Type.Integer({ description: 'User id.' }),
  created_at: TimeSchema,
});

export function presentCollection({ id, name, label, type, memoryCount, createdBy, createdAt }: CollectionView) {
  const created = { created_by: createdBy, created_at: createdAt.toISOString() };
  return { collection_id: id, name, label, type, memory_count: memoryCount, ...created };
}

export const UsageSchema = Type.Object({
  period: Type.Object({ from: TimeSchema, to: TimeSchema }),
  total_usd: Type.Number({ description: 'What was given back counts as not spent.', examples: [0.0123] }),
  breakdown: Type.Array(
    Type.Object({
      operation: Type.String({
        description: '`ingest`, `ingest_batch`, `ingest_document`, `retry`, `search` or `context`.',
        examples: ['ingest'],
      }),
      count: Type.Integer(),
      units: Type.Number({ description: 'Of 1000 characters.' }),
      amount_usd: Type.Number(),
    }),
  ),
  wallet: nullable(
    Type.Object(
      { balance: Type.Number(), currency: Type.Literal('USD') },
      { description: 'For owners; null for all others.' },
    ),
  ),
});

export function presentUsage({ from, to, totalNano, breakdown, walletNano }: MemoryUsage) {
  return {
    period: { from: from.toISOString(), to: to.toISOString() },
    total_usd: nanoToUsd(totalNano),
    breakdown: breakdown.map(({ operation, count, units, amountNano }) => ({
      operation,
      count,
      units,
      amount_usd: nanoToUsd(amountNano),
    })),
    wallet: walletNano === null ? null : { balance: nanoToUsd(walletNano), currency: 'USD' },
  };
}
