import { type Static, Type } from 'typebox';
import type { NewMemoryText } from '../../actors/memory/memory-desk.ts';
import { fitsMetadata, METADATA_MAX_BYTES } from '../../storage/queries/memory-text.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { IngestTypeSchema, longerThan, MAX_TEXT_CHARACTERS, MetadataSchema, titleOf } from './memory.ts';
import { ENTITY_FIELDS, entitiesIn, invalidEntities } from './memory-entities.ts';
import { messagesSchema, textOfMessages } from './memory-messages.ts';

export const MAX_MEMORIES = 100;
export const MAX_MESSAGES = 1_000;

const TEXT = {
  minLength: 1,
  maxLength: MAX_TEXT_CHARACTERS,
  pattern: '\\S',
  description: `Text to store: plain text or Markdown, up to ${MAX_TEXT_CHARACTERS} characters. Lines such as "Agent: ..." are read as turns of a dialogue. Billed per character.`,
};
const TITLE = { maxLength: 500, description: 'Display title. Keyword search covers it.' };

const INGEST_FIELDS = {
  text: Type.Optional(Type.String(TEXT)),
  messages: Type.Optional(
    messagesSchema({
      maxItems: MAX_MESSAGES,
      description:
        'Conversation to store, instead of `text`. The messages of the user and the assistant are stored as a dialogue, with `name` or the role as the speaker; other messages are left out. The limit and the price of `text` apply to the dialogue.',
    }),
  ),
  title: Type.Optional(Type.String(TITLE)),
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
  ...ENTITY_FIELDS,
};

const INGEST_EXAMPLE = {
  text: 'Asha Rao moved to Mumbai in May. She prefers calls after six in the evening.',
  title: 'Call of 3 May',
  metadata: { customer: 'C-1042' },
};
const MESSAGES_EXAMPLE = {
  messages: [{ role: 'user', content: 'Please call after six in the evening.' }],
  user_id: 'C-1042',
};

export const IngestBody = Type.Object(INGEST_FIELDS, {
  additionalProperties: false,
  examples: [INGEST_EXAMPLE, MESSAGES_EXAMPLE],
});

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

/** @throws TandemError VALIDATION_FAILED */
export function readMemories(
  bodies: readonly Static<typeof IngestBody>[],
  at: (field: string, index: number) => string,
) {
  const wrong: InvalidField[] = [];
  const memories = bodies.map((body, index): NewMemoryText => {
    const { title, type, collection_id, infer } = body;
    const text = textOf(body);
    if (typeof text !== 'string') wrong.push({ ...text, path: at(text.path, index) });
    wrong.push(...invalidEntities(body, (field) => at(field, index)));
    const metadata = { ...body.metadata, ...entitiesIn(body) };
    if (!fitsMetadata(metadata)) {
      wrong.push({ path: at('metadata', index), message: `must have at most ${METADATA_MAX_BYTES} bytes of JSON` });
    }
    return {
      text: typeof text === 'string' ? text : '',
      title: titleOf(title),
      type: type ?? null,
      collectionId: collection_id ?? null,
      infer: infer ?? true,
      metadata,
    };
  });
  if (wrong.length > 0) throw validationFailed(wrong.slice(0, 20));
  return memories;
}

export const UpdateBody = Type.Object(
  {
    text: Type.Optional(Type.String({ ...TEXT, description: `New text. ${TEXT.description}` })),
    title: Type.Optional(Type.Union([Type.String(TITLE), Type.Null()])),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: `Keys to set; null deletes a key, and other keys stay. The result has at most ${METADATA_MAX_BYTES} bytes of JSON.`,
      }),
    ),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ metadata: { customer: 'C-1043', draft: null } }] },
);

/** @throws TandemError VALIDATION_FAILED */
export function readUpdate({ text, title, metadata }: Static<typeof UpdateBody>) {
  const read = text === undefined ? null : textOf({ text });
  if (read !== null && typeof read !== 'string') throw validationFailed([read]);
  return {
    text: read,
    title: title === undefined ? undefined : titleOf(title ?? undefined),
    metadata: metadata ?? null,
  };
}

/** Returns the text to store, or an error. */
function textOf({ text, messages }: Static<typeof IngestBody>): string | InvalidField {
  if (text === undefined && messages === undefined) return { path: 'text', message: 'or messages is required' };
  if (text !== undefined && messages !== undefined) {
    return { path: 'messages', message: 'must not be combined with text' };
  }
  const path = text === undefined ? 'messages' : 'text';
  const given = text ?? textOfMessages(messages ?? []);
  // Schemas count graphemes, which have any number of characters. Removing NUL may leave nothing.
  if (longerThan(given, MAX_TEXT_CHARACTERS)) {
    return { path, message: `must have at most ${MAX_TEXT_CHARACTERS} characters` };
  }
  if (given.replaceAll('\0', '').trim() !== '') return given;
  return { path, message: text === undefined ? 'must have a text of the user or the assistant' : 'must not be blank' };
}
