import { Type } from 'typebox';
import type { AssembledContext, Found } from '../../actors/memory/memory-desk.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { MemoryTypeSchema } from './memory.ts';
import { ENTITY_VIEW, NO_ENTITIES, presentEntities } from './memory-entities.ts';
import { COLLECTION_ID, CollectionIdSchema, ID, IdSchema, STATEMENT_EXAMPLE } from './memory-views.ts';

const ScoreSchema = Type.Number({ description: 'Score, 0 to 1.', examples: [0.82] });
const DegradedSchema = Type.Boolean({
  description:
    'True if part of the search failed, such as semantic search because the embeddings server did not respond. A degraded search is free.',
});
const HIT_EXAMPLE = {
  id: ID,
  memory: STATEMENT_EXAMPLE,
  title: 'Call of 3 May',
  score: 0.82,
  scores: { semantic: 0.64, keyword: 0.75 },
  collection_id: COLLECTION_ID,
  type: 'user',
  metadata: { customer: 'C-1042' },
  ...NO_ENTITIES,
  created_at: '2026-01-31T09:30:00.000Z',
};
export const FoundSchema = Type.Object(
  {
    results: Type.Array(
      Type.Object({
        id: IdSchema,
        memory: Type.String({ description: 'Matching text: a fact or a chunk.' }),
        title: nullable(Type.String({ description: 'Display title.' })),
        score: ScoreSchema,
        scores: Type.Object(
          { semantic: nullable(ScoreSchema), keyword: nullable(ScoreSchema) },
          { description: 'Scores by search method. Null if the method did not find the memory.' },
        ),
        collection_id: CollectionIdSchema,
        type: MemoryTypeSchema,
        metadata: Type.Record(Type.String(), Type.Unknown(), { description: 'Metadata of the memory.' }),
        ...ENTITY_VIEW,
        created_at: TimeSchema,
      }),
      { description: 'Results, best first.' },
    ),
    total: Type.Integer({
      description: 'Number of matches, capped at some hundred. `results` has up to `limit` of them.',
    }),
    timing_ms: Type.Number({ description: 'Duration of the search, in milliseconds.' }),
    degraded: DegradedSchema,
  },
  { examples: [{ results: [HIT_EXAMPLE], total: 1, timing_ms: 8.4, degraded: false }] },
);

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
    ...presentEntities(metadata),
    created_at: createdAt.toISOString(),
  }));
  return { results, total, timing_ms: Math.round(tookMs * 10) / 10, degraded: isDegraded };
}

export const ContextSchema = Type.Object(
  {
    context: Type.String({
      description:
        'Text for a prompt: one line of JSON per memory, between tags that the content cannot close, with a note that it is data. Empty if no memory is relevant.',
    }),
    token_count: Type.Integer({ description: 'Number of tokens, at most `max_tokens`.' }),
    sources: Type.Array(Type.Object({ id: IdSchema, score: ScoreSchema }), {
      description: 'Memory of each line, in the same order.',
    }),
    degraded: DegradedSchema,
  },
  {
    examples: [
      {
        context: `...\n<memories>\n${JSON.stringify({ title: 'Call of 3 May', text: STATEMENT_EXAMPLE })}\n</memories>`,
        token_count: 72,
        sources: [{ id: ID, score: 0.82 }],
        degraded: false,
      },
    ],
  },
);

export function presentContext({ text, tokens, sources, isDegraded }: AssembledContext) {
  return { context: text, token_count: tokens, sources, degraded: isDegraded };
}
