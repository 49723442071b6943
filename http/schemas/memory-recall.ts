import { Type } from 'typebox';
import type { AssembledContext, Found } from '../../actors/memory/memory-desk.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { MemoryTypeSchema } from './memory.ts';
import { COLLECTION_ID, CollectionIdSchema, ID, IdSchema, STATEMENT_EXAMPLE } from './memory-views.ts';

const ScoreSchema = Type.Number({ description: '0 to 1.', examples: [0.82] });
const DegradedSchema = Type.Boolean({
  description:
    'True when part of the search could not be done, such as that by meaning because the embeddings server did not answer. Then nothing is charged.',
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
  created_at: '2026-01-31T09:30:00.000Z',
};
export const FoundSchema = Type.Object(
  {
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
    created_at: createdAt.toISOString(),
  }));
  return { results, total, timing_ms: Math.round(tookMs * 10) / 10, degraded: isDegraded };
}

export const ContextSchema = Type.Object(
  {
    context: Type.String({
      description:
        'For a prompt: lines of JSON between tags that nothing in them can end, with a sentence that says they are data. Empty when nothing was found.',
    }),
    token_count: Type.Integer({ description: 'At most `max_tokens`; the context has no more.' }),
    sources: Type.Array(Type.Object({ id: IdSchema, score: ScoreSchema }), {
      description: 'Of each line its memory, in their order.',
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
