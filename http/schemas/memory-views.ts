import { type TSchema, Type } from 'typebox';
import type {
  CollectionView,
  Ingested,
  IngestedMemory,
  MemoryUsage,
  MemoryView,
} from '../../actors/memory/memory-desk.ts';
import type { TandemError } from '../../machines/errors.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { MemoryTypeSchema } from './memory.ts';
import { nanoToUsd } from './money.ts';

export const ID = '3f0d2c4e-8a51-4f43-9f5b-0c9f1b7c2a11';
export const COLLECTION_ID = '0b7c8a52-1f0e-4b6a-9d1c-6a5f0e2d3c44';
export const IdSchema = Type.String({ format: 'uuid', examples: [ID] });
export const CollectionIdSchema = Type.String({ format: 'uuid', examples: [COLLECTION_ID] });
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
      file_name: nullable(Type.String()),
      format: Type.String({ examples: ['pdf'] }),
      pages: nullable(Type.Integer()),
      ocr: Type.Boolean(),
      warnings: Type.Array(Type.String()),
      part: Type.Integer({ description: 'From 1: a document of over 100 000 characters becomes several memories.' }),
      parts: Type.Integer(),
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
const LISTED_EXAMPLE = {
  ...STATUS_EXAMPLE,
  title: 'Call of 3 May',
  type: 'user',
  collection_id: COLLECTION_ID,
  infer: true,
  stored_as: 'facts',
  characters: 76,
  metadata: { customer: 'C-1042' },
  source: null,
  created_by: 7,
};
const TEXT_EXAMPLE = 'Asha Rao moved to Mumbai in May. She prefers calls after six in the evening.';
export const STATEMENT_EXAMPLE = 'Asha Rao moved to Mumbai in May.';
export const ListedMemorySchema = Type.Object(
  { ...LISTED_FIELDS, excerpt: Type.String({ description: 'How its text begins.' }) },
  { examples: [{ ...LISTED_EXAMPLE, excerpt: TEXT_EXAMPLE }] },
);
const FactSchema = Type.Object({
  id: IdSchema,
  category: Type.Enum(['fact', 'preference']),
  memory: Type.String({ examples: ['Asha Rao moved to Mumbai in May.'] }),
  deduplicated_into: nullable(IdSchema as TSchema),
  superseded_by: nullable(IdSchema as TSchema),
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
    text: Type.String(),
    facts: Type.Array(FactSchema, {
      description:
        'Drawn from it. One that repeats another fact names it in `deduplicated_into`; one that a later fact contradicts is kept as history and names that in `superseded_by`. Neither is found any more.',
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
    source,
    created_by: createdBy,
  };
}

export const CollectionSchema = Type.Object(
  {
    collection_id: CollectionIdSchema,
    name: Type.String(),
    label: Type.String({ description: 'For people.' }),
    type: MemoryTypeSchema,
    memory_count: Type.Integer(),
    created_by: Type.Integer({ description: 'User id.' }),
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
