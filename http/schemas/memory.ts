import { type Static, Type } from 'typebox';
import type { NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { type InvalidField, validationFailed } from '../validation.ts';

export const MAX_TEXT_CHARACTERS = 100_000;
export const MAX_QUERY_CHARACTERS = 2_000;
export const MAX_MEMORIES = 100;
export const METADATA_MAX_BYTES = 8_192;
const MEMORY_TYPES = ['user', 'team', 'knowledge', 'hive'] as const;

export const MemoryTypeSchema = Type.Enum([...MEMORY_TYPES], {
  description:
    'Audience. `user`: one person. `team`: the members of a team. `knowledge`, `hive`: the whole workspace; written by owners and admins.',
});

export const IngestTypeSchema = Type.Enum(['user', 'knowledge', 'hive'], {
  description:
    'Destination when no collection is named. `user` (default): your personal collection. `knowledge`, `hive`: the first collection of that type in the workspace; requires the admin or owner role.',
});

export const MetadataSchema = Type.Record(Type.String(), Type.Unknown(), {
  description: `Metadata to filter searches by, up to ${METADATA_MAX_BYTES} bytes of JSON.`,
});

const INGEST_FIELDS = {
  text: Type.String({
    minLength: 1,
    maxLength: MAX_TEXT_CHARACTERS,
    pattern: '\\S',
    description: `Text to store: plain text or Markdown, up to ${MAX_TEXT_CHARACTERS} characters. Lines such as "Agent: ..." are read as turns of a dialogue. Billed per character.`,
  }),
  title: Type.Optional(Type.String({ maxLength: 500, description: 'Display title. Keyword search covers it.' })),
  type: Type.Optional(IngestTypeSchema),
  collection_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'Id of a collection from GET /memory/collections.' }),
  ),
  infer: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'Extract facts and preferences with a language model, if one is configured. The text itself is stored either way.',
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
      maxItems: MAX_MEMORIES,
      description: 'Memories, as in POST /memory/ingest.',
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
      description: 'Collections to search. Default: all you can access.',
    }),
  ),
  type: Type.Optional(MemoryTypeSchema),
  filters: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Metadata filter, such as `{"customer": "C-1042", "year": {"$gte": 2024}}`. All conditions must match. A list matches any of its values. Dots address nested fields. Operators: `$eq`, `$ne`, `$in`, `$nin`, `$gt`, `$gte`, `$lt`, `$lte`. `$or`, `$and` and `$not` (or `OR`, `AND`, `NOT`) take lists of filters.',
    }),
  ),
  threshold: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description:
        'Minimum score of a result, 0 to 1. Default: no minimum for a search, only relevant memories for a context.',
    }),
  ),
};
const QuerySchema = Type.String({
  minLength: 1,
  maxLength: MAX_QUERY_CHARACTERS,
  pattern: '\\S',
  description: 'Question or keywords. Billed per character.',
});

export const SearchBody = Type.Object(
  {
    query: QuerySchema,
    ...SEARCH_FIELDS,
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: 10, description: 'Maximum number of results.' }),
    ),
  },
  { additionalProperties: false, examples: [{ query: 'Where does Asha live?', limit: 5 }] },
);

const ContentParts = Type.Array(
  Type.Object(
    { type: Type.String({ maxLength: 64 }), text: Type.Optional(Type.String({ maxLength: MAX_TEXT_CHARACTERS })) },
    { additionalProperties: true },
  ),
  { maxItems: 100, description: 'Content parts in the format of OpenAI. Parts that are not text are ignored.' },
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
              Type.Union([Type.String({ maxLength: MAX_TEXT_CHARACTERS }), ContentParts, Type.Null()]),
            ),
          },
          { additionalProperties: true },
        ),
        {
          minItems: 1,
          maxItems: 100,
          description:
            'Conversation, instead of `query`. The last messages of the user and the assistant are the query, up to 2000 characters, which are billed.',
        },
      ),
    ),
    max_tokens: Type.Optional(
      Type.Integer({
        minimum: 64,
        maximum: 16_000,
        default: 1_000,
        description: 'Maximum length of the context, in tokens of o200k_base.',
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
      description: 'Name, unique per type in the workspace.',
    }),
    type: Type.Optional(
      Type.Enum(['team', 'knowledge', 'hive'], {
        description:
          '`team` (default): for its members. `knowledge`, `hive`: readable by the whole workspace; requires the admin or owner role.',
      }),
    ),
    member_ids: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: 2_147_483_647 }), {
        maxItems: 199,
        description: 'User ids of the other members of a team collection.',
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
    // Schemas count graphemes, which can have any number of characters. Stripping NUL can leave nothing.
    if (longerThan(text, MAX_TEXT_CHARACTERS)) {
      wrong.push({ path: at('text', index), message: `must have at most ${MAX_TEXT_CHARACTERS} characters` });
    } else if (text.replaceAll('\0', '').trim() === '') {
      wrong.push({ path: at('text', index), message: 'must not be blank' });
    }
    if (!fitsMetadata(metadata)) {
      wrong.push({ path: at('metadata', index), message: `must have at most ${METADATA_MAX_BYTES} bytes of JSON` });
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

/** Reads the filters of a search or context. */
export function readScope(body: Static<typeof SearchBody> | Static<typeof ContextBody>) {
  return {
    collectionIds: body.collection_ids ?? null,
    type: body.type ?? null,
    filters: body.filters ?? null,
    threshold: body.threshold ?? null,
  };
}

/** @throws TandemError VALIDATION_FAILED unless exactly one of the two is sent. */
export function readContextQuery({ query, messages }: Static<typeof ContextBody>) {
  if (query !== undefined && messages === undefined) return { query: readQuery(query) };
  if (messages !== undefined && query === undefined) return { messages: messages.map(readMessage) };
  const message = messages === undefined ? 'or messages is required' : 'must not be combined with messages';
  throw validationFailed([{ path: 'query', message }]);
}

function readMessage({ role, content }: NonNullable<Static<typeof ContextBody>['messages']>[number]) {
  if (!Array.isArray(content)) return { role, content: content ?? '' };
  return { role, content: content.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('\n') };
}

/** @throws TandemError VALIDATION_FAILED */
export function readQuery(query: string): string {
  if (!longerThan(query, MAX_QUERY_CHARACTERS)) return query;
  throw validationFailed([{ path: 'query', message: `must have at most ${MAX_QUERY_CHARACTERS} characters` }]);
}

export function fitsMetadata(metadata: unknown): boolean {
  return metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_MAX_BYTES;
}

export function titleOf(title: string | undefined): string | null {
  const line = (title ?? '').replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line === '' ? null : line;
}

/** Counts code points. */
function longerThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let characters = 0;
  for (const _ of text) if (++characters > max) return true;
  return false;
}
