import { type Static, Type } from 'typebox';
import { isObject } from '../../runtime/is-object.ts';
import { METADATA_MAX_BYTES } from '../../storage/queries/memory-text.ts';
import { validationFailed } from '../validation.ts';
import { ENTITY_FILTERS, readEntities } from './memory-entities.ts';
import { messagesSchema, readMessage } from './memory-messages.ts';

export const MAX_TEXT_CHARACTERS = 100_000;
export const MAX_QUERY_CHARACTERS = 2_000;
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
        'Metadata filter, such as `{"customer": "C-1042", "year": {"$gte": 2024}}`. All conditions must match. A list matches any of its values. Dots address nested fields. Operators: `$eq`, `$ne`, `$in`, `$nin`, `$gt`, `$gte`, `$lt`, `$lte`, and `$contains` and `$icontains` (any case) for a part of a text. `$or`, `$and` and `$not` (or `OR`, `AND`, `NOT`) take lists of filters.',
    }),
  ),
  ...ENTITY_FILTERS,
  threshold: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description:
        'Minimum score of a result, 0 to 1. Default: no minimum for a search, only relevant memories for a context.',
    }),
  ),
};
export const ListFiltersSchema = Type.String({
  maxLength: 4_000,
  description: 'Metadata filter in JSON, as in POST /memory/search.',
  examples: ['{"customer":"C-1042"}'],
});
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

export const ContextBody = Type.Object(
  {
    query: Type.Optional(QuerySchema),
    messages: Type.Optional(
      messagesSchema({
        maxItems: 100,
        description:
          'Conversation, instead of `query`. The last messages of the user and the assistant are the query, up to 2000 characters, which are billed.',
      }),
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

/** Parses the filters of a search or context. @throws TandemError VALIDATION_FAILED */
export function readScope(body: Static<typeof SearchBody> | Static<typeof ContextBody>) {
  return {
    collectionIds: body.collection_ids ?? null,
    type: body.type ?? null,
    filters: body.filters ?? null,
    entities: readEntities(body),
    threshold: body.threshold ?? null,
  };
}

/** @throws TandemError VALIDATION_FAILED */
export function readListFilters(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { ...value };
  } catch {
    // Reported below.
  }
  throw validationFailed([{ path: 'filters', message: 'must be a JSON object' }]);
}

/** @throws TandemError VALIDATION_FAILED unless exactly one of the two is sent */
export function readContextQuery({ query, messages }: Static<typeof ContextBody>) {
  if (query !== undefined && messages === undefined) return { query: readQuery(query) };
  if (messages !== undefined && query === undefined) return { messages: messages.map(readMessage) };
  const message = messages === undefined ? 'or messages is required' : 'must not be combined with messages';
  throw validationFailed([{ path: 'query', message }]);
}

/** @throws TandemError VALIDATION_FAILED */
export function readQuery(query: string): string {
  if (!longerThan(query, MAX_QUERY_CHARACTERS)) return query;
  throw validationFailed([{ path: 'query', message: `must have at most ${MAX_QUERY_CHARACTERS} characters` }]);
}

export function titleOf(title: string | undefined): string | null {
  const line = (title ?? '').replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line === '' ? null : line;
}

/** Counts code points. */
export function longerThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let characters = 0;
  for (const _ of text) if (++characters > max) return true;
  return false;
}
