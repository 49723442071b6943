import { Type } from 'typebox';
import { ENTITY_KEYS, type MemoryEntities } from '../../storage/queries/memory-filter.ts';
import { type InvalidField, validationFailed } from '../validation.ts';
import { nullable } from './envelope.ts';

const ABOUT = {
  user_id: 'user of yours, such as a customer',
  agent_id: 'agent of yours, such as a voice bot',
  run_id: 'conversation or session',
} as const;

type EntityKey = (typeof ENTITY_KEYS)[number];

function fieldsOf<Field>(schema: (key: EntityKey) => Field): Record<EntityKey, Field> {
  return { user_id: schema('user_id'), agent_id: schema('agent_id'), run_id: schema('run_id') };
}

function idSchema(description: string) {
  return Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', description });
}

export const ENTITY_FIELDS = fieldsOf((key) =>
  Type.Optional(
    idSchema(`Id of the ${ABOUT[key]} that the memory is about. Stored as \`metadata.${key}\`; searches filter by it.`),
  ),
);

export const ENTITY_FILTERS = fieldsOf((key) =>
  Type.Optional(idSchema(`Only memories about this ${ABOUT[key]}: with this \`metadata.${key}\`.`)),
);

export const ENTITY_VIEW = fieldsOf((key) =>
  nullable(Type.String({ description: `\`metadata.${key}\`: id of the ${ABOUT[key]}.` })),
);

export const NO_ENTITIES = { user_id: null, agent_id: null, run_id: null };

/** Returns the entities of a body. @throws TandemError VALIDATION_FAILED */
export function readEntities(body: Readonly<Partial<Record<EntityKey, string | null>>>): MemoryEntities {
  const wrong = invalidEntities(body, (field) => field);
  if (wrong.length > 0) throw validationFailed(wrong);
  return entitiesIn(body);
}

/**
 * Finds invalid ids: those with only NUL characters, which the schema accepts, and those that contradict `metadata`.
 */
export function invalidEntities(
  body: Readonly<Partial<Record<EntityKey, string | null>>> & { metadata?: Readonly<Record<string, unknown>> },
  at: (field: string) => string,
): InvalidField[] {
  return ENTITY_KEYS.flatMap((key): InvalidField[] => {
    const id = body[key];
    if (id === undefined) return [];
    if (id !== null && id.replaceAll('\0', '').trim() === '') return [{ path: at(key), message: 'must not be blank' }];
    const { metadata = {} } = body;
    if (!Object.hasOwn(metadata, key) || metadata[key] === id) return [];
    return [{ path: at(key), message: `differs from metadata.${key}` }];
  });
}

export function entitiesIn(fields: Readonly<Record<string, unknown>>): MemoryEntities {
  const named = ENTITY_KEYS.filter((key) => Object.hasOwn(fields, key) && typeof fields[key] === 'string');
  return Object.fromEntries(named.map((key) => [key, fields[key] as string]));
}

export function presentEntities(metadata: Readonly<Record<string, unknown>>) {
  return { ...NO_ENTITIES, ...entitiesIn(metadata) };
}
