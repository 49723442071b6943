import { type Static, Type } from 'typebox';
import type { NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { type InvalidField, validationFailed } from '../validation.ts';

export const MOST_TEXT_CHARACTERS = 100_000;
export const MOST_QUERY_CHARACTERS = 2_000;
export const MOST_MEMORIES = 100;
export const METADATA_MAX_BYTES = 8_192;
const MEMORY_TYPES = ['user', 'team', 'knowledge', 'hive'] as const;

export const MemoryTypeSchema = Type.Enum([...MEMORY_TYPES], {
  description:
    'Whose it is: `user`, one person’s; `team`, a team’s; `knowledge` and `hive`, the whole workspace’s, written by owners and admins.',
});

export const IngestTypeSchema = Type.Enum(['user', 'knowledge', 'hive'], {
  description:
    'Where it goes when no collection is named: `user` (default) into the caller’s personal collection, `knowledge` and `hive` into the workspace’s first of that type. Those two need an owner or admin.',
});

export const MetadataSchema = Type.Record(Type.String(), Type.Unknown(), {
  description: `What searches can be filtered by; up to ${METADATA_MAX_BYTES} bytes as JSON.`,
});

const INGEST_FIELDS = {
  text: Type.String({
    minLength: 1,
    maxLength: MOST_TEXT_CHARACTERS,
    pattern: '\\S',
    description: `What to remember: up to ${MOST_TEXT_CHARACTERS} characters, all of which are billed. Plain text or Markdown; lines such as "Agent: ..." are turns of a dialogue.`,
  }),
  title: Type.Optional(Type.String({ maxLength: 500, description: 'For people; it is found by its words too.' })),
  type: Type.Optional(IngestTypeSchema),
  collection_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'A collection of GET /memory/collections.' }),
  ),
  infer: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'Whether facts and preferences are extracted by a language model, where one is configured. The text itself is kept either way.',
    }),
  ),
  metadata: Type.Optional(MetadataSchema),
};

const INGEST_EXAMPLE = {
  text: 'Asha Rao moved to Mumbai in May. She prefers calls after six in the evening.',
  title: 'Call of 3 May',
  metadata: { customer: 'C-1042' },
};

export const IngestBody = Type.Object(INGEST_FIELDS, { additionalProperties: false, examples: [INGEST_EXAMPLE] });

export const IngestBatchBody = Type.Object(
  {
    memories: Type.Array(Type.Object(INGEST_FIELDS, { additionalProperties: false }), {
      minItems: 1,
      maxItems: MOST_MEMORIES,
      description: 'As in POST /memory/ingest.',
    }),
  },
  {
    additionalProperties: false,
    examples: [{ memories: [{ text: 'Bo Lind has a boat named Vega.' }, { text: 'The harbour opens at seven.' }] }],
  },
);

const SEARCH_FIELDS = {
  collection_ids: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      minItems: 1,
      maxItems: 50,
      description: 'Default: all that you may see.',
    }),
  ),
  type: Type.Optional(MemoryTypeSchema),
  filters: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Of metadata: `{"customer": "C-1042", "year": {"$gte": 2024}}`. All conditions have to hold; a list means any of its values; dots lead deeper; `$eq`, `$ne`, `$in`, `$nin`, `$gt`, `$gte`, `$lt`, `$lte`.',
    }),
  ),
  threshold: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Least score. Default: none, the best there are.' }),
  ),
};
const QuerySchema = Type.String({
  minLength: 1,
  maxLength: MOST_QUERY_CHARACTERS,
  pattern: '\\S',
  description: 'A question or words. Each character is billed.',
});

export const SearchBody = Type.Object(
  {
    query: QuerySchema,
    ...SEARCH_FIELDS,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 10 })),
  },
  { additionalProperties: false, examples: [{ query: 'Where does Asha live?', limit: 5 }] },
);

const ContentParts = Type.Array(
  Type.Object(
    { type: Type.String({ maxLength: 64 }), text: Type.Optional(Type.String({ maxLength: MOST_TEXT_CHARACTERS })) },
    { additionalProperties: true },
  ),
  { maxItems: 100, description: 'As in OpenAI’s API; parts that are no text say nothing.' },
);

export const ContextBody = Type.Object(
  {
    query: Type.Optional(QuerySchema),
    messages: Type.Optional(
      Type.Array(
        Type.Object(
          {
            role: Type.String({ maxLength: 32 }),
            content: Type.Optional(
              Type.Union([Type.String({ maxLength: MOST_TEXT_CHARACTERS }), ContentParts, Type.Null()]),
            ),
          },
          { additionalProperties: true },
        ),
        {
          minItems: 1,
          maxItems: 100,
          description:
            'A conversation instead of `query`: what its user and assistant said last is asked, up to 2000 characters, which are billed.',
        },
      ),
    ),
    max_tokens: Type.Optional(
      Type.Integer({
        minimum: 64,
        maximum: 16_000,
        default: 1_000,
        description: 'The context never has more, as o200k_base counts them.',
      }),
    ),
    ...SEARCH_FIELDS,
  },
  { additionalProperties: false, examples: [{ query: 'Where does Asha live?', max_tokens: 500 }] },
);

export const CollectionBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '\\S',
      description: 'One of its type in the workspace.',
    }),
    type: Type.Optional(
      Type.Enum(['team', 'knowledge', 'hive'], {
        description:
          '`team` (default): of its members. `knowledge`, `hive`: everybody in the workspace reads it; needs an owner or admin.',
      }),
    ),
    member_ids: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: 2_147_483_647 }), {
        maxItems: 199,
        description: 'User ids of a team’s members beside you.',
      }),
    ),
  },
  { additionalProperties: false, examples: [{ name: 'Support', type: 'team' }] },
);

/** @throws TandemError VALIDATION_FAILED */
export function readMemories(
  bodies: readonly Static<typeof IngestBody>[],
  at: (field: string, index: number) => string,
) {
  const wrong: InvalidField[] = [];
  const memories = bodies.map((body, index): NewMemoryText => {
    const { text, title, type, collection_id, infer, metadata } = body;
    // Schemas count graphemes, of which one can have any number of characters; what is left of NUL alone is nothing.
    if (longerThan(text, MOST_TEXT_CHARACTERS)) {
      wrong.push({ path: at('text', index), message: `must have at most ${MOST_TEXT_CHARACTERS} characters` });
    } else if (text.replaceAll('\0', '').trim() === '') {
      wrong.push({ path: at('text', index), message: 'has no text in it' });
    }
    if (!fitsMetadata(metadata)) {
      wrong.push({ path: at('metadata', index), message: `must have at most ${METADATA_MAX_BYTES} bytes as JSON` });
    }
    return {
      text,
      title: titleOf(title),
      type: type ?? null,
      collectionId: collection_id ?? null,
      infer: infer ?? true,
      metadata: metadata ?? {},
    };
  });
  if (wrong.length > 0) throw validationFailed(wrong.slice(0, 20));
  return memories;
}

/** What to look for and where, of searches and contexts. */
export function readScope(body: Static<typeof SearchBody> | Static<typeof ContextBody>) {
  return {
    collectionIds: body.collection_ids ?? null,
    type: body.type ?? null,
    filters: body.filters ?? null,
    threshold: body.threshold ?? null,
  };
}

/** @throws TandemError VALIDATION_FAILED unless it is one of the two */
export function readAsked({ query, messages }: Static<typeof ContextBody>) {
  if (query !== undefined && messages === undefined) return { query: readQuery(query) };
  if (messages !== undefined && query === undefined) return { messages: messages.map(readMessage) };
  const message = messages === undefined ? 'is required, or messages' : 'cannot be sent together with messages';
  throw validationFailed([{ path: 'query', message }]);
}

function readMessage({ role, content }: NonNullable<Static<typeof ContextBody>['messages']>[number]) {
  if (!Array.isArray(content)) return { role, content: content ?? '' };
  return { role, content: content.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('\n') };
}

/** @throws TandemError VALIDATION_FAILED */
export function readQuery(query: string): string {
  if (!longerThan(query, MOST_QUERY_CHARACTERS)) return query;
  throw validationFailed([{ path: 'query', message: `must have at most ${MOST_QUERY_CHARACTERS} characters` }]);
}

export function fitsMetadata(metadata: unknown): boolean {
  return metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_MAX_BYTES;
}

export function titleOf(title: string | undefined): string | null {
  const line = (title ?? '').replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line === '' ? null : line;
}

/** In code points. */
function longerThan(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let characters = 0;
  for (const _ of text) if (++characters > most) return true;
  return false;
}
