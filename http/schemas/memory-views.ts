import { type TSchema, Type } from 'typebox';
import type {
  CollectionView,
  Ingested,
  IngestedMemory,
  MemoryUsage,
  MemoryView,
} from '../../actors/memory/memory-desk.ts';
import type { TandemError } from '../../machines/errors.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { MemoryTypeSchema } from './memory.ts';
import { ENTITY_VIEW, NO_ENTITIES, presentEntities } from './memory-entities.ts';

export const ID = '3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11';
export const COLLECTION_ID = '0b7c8a52-1f0e-4b6a-9d1c-6a5f0e2d3c44';
export const IdSchema = Type.String({ format: 'uuid', examples: [ID] });
export const CollectionIdSchema = Type.String({ format: 'uuid', examples: [COLLECTION_ID] });
const StatusSchema = Type.Enum(['pending', 'processing', 'ready', 'failed'], { description: 'Processing status.' });
const StageSchema = nullable(
  Type.Enum(['extracting', 'chunking', 'embedding', 'indexing'], { description: 'Stage of `processing`.' }),
);

const IngestResultSchema = Type.Object({
  id: nullable(IdSchema),
  status: Type.Enum(['pending', 'processing', 'ready', 'failed'], {
    description:
      '`pending`: queued. `failed`: rejected, see `code`. For a duplicate, the status of the existing memory.',
  }),
  message: Type.String({ examples: ['Queued.'] }),
  deduplicated_into: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'Existing memory with the same content. Nothing was stored or charged.',
    }),
  ),
  code: Type.Optional(Type.String({ description: 'Error code of a rejected memory.' })),
});

const INGESTED = {
  collection_id: CollectionIdSchema,
  collection_label: Type.String({ description: 'Display name of the collection.', examples: ['Personal'] }),
  memory_type: MemoryTypeSchema,
  total_queued: Type.Integer({ description: 'Number of memories queued for processing.', examples: [1] }),
  results: Type.Array(IngestResultSchema, { description: 'One result per memory, in the order sent.' }),
};
export const IngestedSchema = Type.Object(INGESTED);
export const BatchIngestedSchema = Type.Object({
  ...INGESTED,
  total_failed: Type.Integer({ description: 'Number of rejected memories.', examples: [0] }),
  total_charged: Type.Number({ description: 'Total charge, in USD.', examples: [0.0000071] }),
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
      const message = 'The collection already has this memory. Nothing was stored or charged.';
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
    { description: 'Why processing failed, or why the last attempt did while it is retried.' },
  ),
);
const STATUS_FIELDS = {
  id: IdSchema,
  status: StatusSchema,
  stage: StageSchema,
  attempts: Type.Integer({ description: 'Processing attempts so far.' }),
  error: ErrorOfMemorySchema,
  created_at: TimeSchema,
  updated_at: TimeSchema,
};
const STATUS_EXAMPLE = {
  id: ID,
  status: 'ready',
  stage: null,
  attempts: 1,
  error: null,
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:01.000Z',
};
export const MemoryStatusSchema = Type.Object(STATUS_FIELDS, { examples: [STATUS_EXAMPLE] });

export function presentStatus({ id, status, stage, attempts, error, createdAt, updatedAt }: MemoryView) {
  const times = { created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() };
  return { id, status, stage, attempts, error, ...times };
}

const SourceSchema = nullable(
  Type.Object(
    {
      file_name: nullable(Type.String({ description: 'File name from the client.' })),
      format: Type.String({ description: 'Detected format.', examples: ['pdf'] }),
      pages: nullable(Type.Integer({ description: 'Number of pages.' })),
      ocr: Type.Boolean({ description: 'True if text was recognised in images.' }),
      warnings: Type.Array(Type.String(), { description: 'Content that was left out.' }),
      part: Type.Integer({
        description: 'Part number, from 1. A document of over 100 000 characters becomes several memories.',
      }),
      parts: Type.Integer({ description: 'Number of parts.' }),
    },
    { description: 'Document that the memory came from. Null for texts.' },
  ),
);
const LISTED_FIELDS = {
  ...STATUS_FIELDS,
  title: nullable(Type.String({ description: 'Display title.' })),
  type: MemoryTypeSchema,
  collection_id: CollectionIdSchema,
  infer: Type.Boolean({ description: 'True if fact extraction was requested.' }),
  stored_as: nullable(
    Type.Enum(['facts', 'chunks'], {
      description:
        'Set once the memory is ready. `facts`: facts extracted by a language model, plus the text in chunks. `chunks`: only the text, because `infer` was false, no model is configured, or its answer was unusable.',
    }),
  ),
  characters: Type.Integer({ description: 'Length of the text, in characters.' }),
  metadata: Type.Record(Type.String(), Type.Unknown(), { description: 'Metadata, as sent.' }),
  ...ENTITY_VIEW,
  source: SourceSchema,
  created_by: Type.Integer({ description: 'Id of the user who created it.' }),
};
const LISTED_EXAMPLE = {
  ...STATUS_EXAMPLE,
  title: 'Call of 3 May',
  type: 'user',
  collection_id: COLLECTION_ID,
  infer: true,
  stored_as: 'facts',
  characters: 76,
  metadata: { customer: 'C-1042' },
  ...NO_ENTITIES,
  source: null,
  created_by: 7,
};
const TEXT_EXAMPLE = 'Asha Rao moved to Mumbai in May. She prefers calls after six in the evening.';
export const STATEMENT_EXAMPLE = 'Asha Rao moved to Mumbai in May.';
export const ListedMemorySchema = Type.Object(
  { ...LISTED_FIELDS, excerpt: Type.String({ description: 'Start of the text.' }) },
  { examples: [{ ...LISTED_EXAMPLE, excerpt: TEXT_EXAMPLE }] },
);
const FactSchema = Type.Object({
  id: IdSchema,
  category: Type.Enum(['fact', 'preference']),
  memory: Type.String({ description: 'The fact.', examples: ['Asha Rao moved to Mumbai in May.'] }),
  deduplicated_into: nullable({ ...IdSchema, description: 'Fact that this one repeats.' } as TSchema),
  superseded_by: nullable({ ...IdSchema, description: 'Later fact that contradicts this one.' } as TSchema),
});
const FACT_EXAMPLE = {
  id: '9a1d6c3b-27f4-4c58-8a5e-1f3f5b9f0d21',
  category: 'fact',
  memory: STATEMENT_EXAMPLE,
  deduplicated_into: null,
  superseded_by: null,
};
export const MemorySchema = Type.Object(
  {
    ...LISTED_FIELDS,
    text: Type.String({ description: 'Stored text.' }),
    facts: Type.Array(FactSchema, {
      description:
        'Facts extracted from the text. A fact that repeats another one (`deduplicated_into`) or that a later one contradicts (`superseded_by`) is kept as history, but not found by searches.',
    }),
  },
  { examples: [{ ...LISTED_EXAMPLE, text: TEXT_EXAMPLE, facts: [FACT_EXAMPLE] }] },
);

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
    ...presentEntities(metadata),
    source,
    created_by: createdBy,
  };
}

export const CollectionSchema = Type.Object(
  {
    collection_id: CollectionIdSchema,
    name: Type.String({ description: 'Name.' }),
    label: Type.String({ description: 'Display name.' }),
    type: MemoryTypeSchema,
    memory_count: Type.Integer({ description: 'Number of memories.' }),
    created_by: Type.Integer({ description: 'Id of the user who created it.' }),
    created_at: TimeSchema,
  },
  {
    examples: [
      {
        collection_id: COLLECTION_ID,
        name: 'Support',
        label: 'Support',
        type: 'team',
        memory_count: 3,
        created_by: 7,
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

export function presentCollection({ id, name, label, type, memoryCount, createdBy, createdAt }: CollectionView) {
  const created = { created_by: createdBy, created_at: createdAt.toISOString() };
  return { collection_id: id, name, label, type, memory_count: memoryCount, ...created };
}

export const UsageSchema = Type.Object(
  {
    period: Type.Object({ from: TimeSchema, to: TimeSchema }),
    total_usd: Type.Number({ description: 'Total charge minus refunds, in USD.', examples: [0.0123] }),
    breakdown: Type.Array(
      Type.Object({
        operation: Type.String({
          description: 'Operation: `ingest`, `ingest_batch`, `ingest_document`, `retry`, `search` or `context`.',
          examples: ['ingest'],
        }),
        count: Type.Integer({ description: 'Number of operations.' }),
        units: Type.Number({ description: 'Billed units of 1000 characters.' }),
        amount_usd: Type.Number({ description: 'Charge, in USD.' }),
      }),
    ),
    wallet: nullable(
      Type.Object(
        { balance: Type.Number({ description: 'Wallet balance.' }), currency: Type.Literal('USD') },
        { description: 'Wallet. Null unless you may read it, as an owner and with the scope `billing:manage`.' },
      ),
    ),
  },
  {
    examples: [
      {
        period: { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' },
        total_usd: 0.0123,
        breakdown: [{ operation: 'ingest', count: 41, units: 123, amount_usd: 0.0123 }],
        wallet: { balance: 9.9877, currency: 'USD' },
      },
    ],
  },
);

export function presentUsage(
  { from, to, totalNano, breakdown, walletNano }: MemoryUsage,
  { showsWallet }: { showsWallet: boolean },
) {
  return {
    period: { from: from.toISOString(), to: to.toISOString() },
    total_usd: nanoToUsd(totalNano),
    breakdown: breakdown.map(({ operation, count, units, amountNano }) => ({
      operation,
      count,
      units,
      amount_usd: nanoToUsd(amountNano),
    })),
    wallet: walletNano === null || !showsWallet ? null : { balance: nanoToUsd(walletNano), currency: 'USD' },
  };
}
