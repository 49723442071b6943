import type postgres from 'postgres';
import { TandemError } from '../../machines/errors.ts';
import { isObject } from '../../runtime/is-object.ts';
import type { SqlOrTx } from '../database.ts';
import { storableText } from './memory-text.ts';

type Scalar = string | number | boolean | null;
type RangeOperator = '$gt' | '$gte' | '$lt' | '$lte';
type TextOperator = '$contains' | '$icontains';

export type MetadataCondition =
  | ({ path: string[] } & (
      | { operator: '$in' | '$nin'; values: Scalar[] }
      | { operator: RangeOperator; value: string | number }
      | { operator: TextOperator; value: string }
    ))
  /** `$not`: none of the conditions holds. */
  | { operator: GroupOperator; conditions: MetadataCondition[] };
type GroupOperator = '$and' | '$or' | '$not';

/** `groups`: nesting of groups. */
export const FILTER_LIMITS = {
  conditions: 20,
  values: 100,
  depth: 8,
  groups: 4,
  keyCharacters: 200,
  textCharacters: 2_000,
};

/** Metadata keys of the entities that a memory is about, as in mem0. */
export const ENTITY_KEYS = ['user_id', 'agent_id', 'run_id'] as const;
export type MemoryEntities = Readonly<Partial<Record<(typeof ENTITY_KEYS)[number], string>>>;

export function conditionsOfEntities(entities: MemoryEntities): MetadataCondition[] {
  return ENTITY_KEYS.flatMap((key): MetadataCondition[] => {
    const id = entities[key];
    return id === undefined ? [] : [{ path: [key], operator: '$in', values: [storableText(id)] }];
  });
}

/**
 * Parses a filter such as `{"language": "en", "author.team": ["a", "b"], "year": {"$gte": 2024, "$ne": 2025}}`. A value
 * must be equal to the metadata value, or an element of it if that is a list; a list means any of its values. `$gt`,
 * `$gte`, `$lt` and `$lte` compare numbers with numbers, and texts with texts by code point (which suits ISO 8601
 * dates). `$contains` finds a part of a text, `$icontains` in any case. Dots or nested objects select nested keys. Null
 * also matches a missing key.
 *
 * `{"$or": [{...}, {...}]}`, `$and` and `$not` combine filters. As in mem0, `OR`, `AND` and `NOT`, and operators
 * without `$`, are accepted. A metadata key with such a name needs dots (`range.gt`).
 * @throws TandemError `VALIDATION_FAILED` that names the error
 */
export function parseMetadataFilter(filters: unknown): MetadataCondition[] {
  const conditions = conditionsOf(filters, { within: [], path: [] });
  if (countOf(conditions) > FILTER_LIMITS.conditions) {
    refuse({ within: [], path: [] }, `has more than ${FILTER_LIMITS.conditions} conditions`);
  }
  return conditions;
}

/** SQL conditions on `memories m`, each beginning with `and`. Every value is a parameter. */
export function matchingMetadata(
  sql: SqlOrTx,
  conditions: readonly MetadataCondition[],
): postgres.PendingQuery<postgres.Row[]> {
  return conditions.reduce((all, condition) => sql`${all} and ${sqlOf(sql, condition)}`, sql``);
}

/** Location in a filter: enclosing groups by name and position, and keys. */
interface Place {
  within: string[];
  path: string[];
}

function countOf(conditions: readonly MetadataCondition[]): number {
  return conditions.reduce(
    (sum, condition) => sum + ('conditions' in condition ? countOf(condition.conditions) : 1),
    0,
  );
}

function conditionsOf(value: unknown, place: Place): MetadataCondition[] {
  const { path } = place;
  if (Array.isArray(value)) return [{ path, operator: '$in', values: scalarsOf(value, place) }];
  if (!isObject(value)) return [{ path, operator: '$in', values: [scalarOf(value, place)] }];
  const entries = Object.entries(value);
  if (entries.length === 0 && path.length + place.within.length > 0) refuse(place, 'is an empty object');
  if (entries.length > FILTER_LIMITS.conditions) refuse(place, `has more than ${FILTER_LIMITS.conditions} conditions`);
  if (path.length === 0) return entries.flatMap(([key, inner]) => conditionsOfKey(key, inner, place));
  const hasOperators = entries.some(([key]) => key.startsWith('$') || BARE_OPERATORS.has(key));
  if (hasOperators) return entries.map(([operator, operand]) => operatorOf(operator, operand, place));
  return entries.flatMap(([key, inner]) => conditionsOf(inner, deeper(place, key)));
}

const BARE_OPERATORS: ReadonlySet<string> = new Set([
  ...['eq', 'ne', 'in', 'nin', 'gt', 'gte', 'lt', 'lte', 'contains', 'icontains'],
]);
const GROUPS: ReadonlyMap<string, GroupOperator> = new Map([
  ...(['$and', '$or', '$not'] as const).map((operator) => [operator, operator] as const),
  ...([
    ['AND', '$and'],
    ['OR', '$or'],
    ['NOT', '$not'],
  ] as const),
]);

function conditionsOfKey(key: string, value: unknown, place: Place): MetadataCondition[] {
  const operator = GROUPS.get(key);
  // Metadata may have a key OR. No other filter for it is a list of objects.
  const isGroup = key.startsWith('$') || (Array.isArray(value) && value.length > 0 && value.every(isObject));
  if (operator !== undefined && isGroup)
    return [groupOf(operator, value, { ...place, within: [...place.within, key] })];
  if (key.startsWith('$')) refuse(place, 'has an operator where a key is expected');
  return conditionsOf(value, deeper(place, key));
}

function groupOf(operator: GroupOperator, filters: unknown, place: Place): MetadataCondition {
  // Each level has a name and a position.
  if (place.within.length > 2 * FILTER_LIMITS.groups) {
    refuse(place, `leads deeper than ${FILTER_LIMITS.groups} groups`);
  }
  if (!Array.isArray(filters) || filters.length === 0) return refuse(place, 'must be a list of filters');
  if (filters.length > FILTER_LIMITS.conditions) refuse(place, `has more than ${FILTER_LIMITS.conditions} filters`);
  const conditions = filters.map((filter, index): MetadataCondition => {
    const at = { ...place, within: [...place.within, String(index)] };
    if (!isObject(filter)) return refuse(at, 'must be a filter');
    return { operator: '$and', conditions: conditionsOf(filter, at) };
  });
  return { operator, conditions };
}

function operatorOf(operator: string, operand: unknown, place: Place): MetadataCondition {
  const { path } = place;
  const name = BARE_OPERATORS.has(operator) ? `$${operator}` : operator;
  switch (name) {
    case '$eq':
      return { path, operator: '$in', values: [scalarOf(operand, place)] };
    case '$ne':
      return { path, operator: '$nin', values: [scalarOf(operand, place)] };
    case '$in':
    case '$nin':
      if (!Array.isArray(operand)) return refuse(place, `has ${name} without a list`);
      return { path, operator: name, values: scalarsOf(operand, place) };
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte': {
      const value = scalarOf(operand, place);
      if (typeof value === 'string' || typeof value === 'number') return { path, operator: name, value };
      return refuse(place, `has ${name} without a number or text`);
    }
    case '$contains':
    case '$icontains': {
      const value = scalarOf(operand, place);
      return typeof value === 'string' ? { path, operator: name, value } : refuse(place, `has ${name} without a text`);
    }
    default:
      return refuse(
        place,
        'has an operator other than $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte, $contains and $icontains',
      );
  }
}

function deeper({ within, path }: Place, key: string): Place {
  const place = { within, path };
  const parts = [...path, ...key.split('.').map(storableText)];
  if (parts.length > FILTER_LIMITS.depth) refuse(place, `leads deeper than ${FILTER_LIMITS.depth} keys`);
  if (parts.some((part) => part === '')) refuse(place, 'has an empty key');
  if (key.length > FILTER_LIMITS.keyCharacters) {
    refuse(place, `has a key of more than ${FILTER_LIMITS.keyCharacters} characters`);
  }
  return { within, path: parts };
}

function scalarsOf(values: unknown[], place: Place): Scalar[] {
  if (values.length > FILTER_LIMITS.values) refuse(place, `has a list of more than ${FILTER_LIMITS.values} values`);
  return values.map((value) => scalarOf(value, place));
}

function scalarOf(value: unknown, place: Place): Scalar {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'string') {
    if (value.length <= FILTER_LIMITS.textCharacters) return storableText(value);
    return refuse(place, `has a text of more than ${FILTER_LIMITS.textCharacters} characters`);
  }
  return refuse(place, 'has a value that is not a string, number, boolean or null');
}

function refuse({ within, path }: Place, reason: string): never {
  const where = ['filters', ...within, ...path].join('.');
  const message = `${where} ${reason}`;
  throw new TandemError('VALIDATION_FAILED', message, { details: [{ path: where, message: reason }] });
}

function sqlOf(sql: SqlOrTx, condition: MetadataCondition): postgres.PendingQuery<postgres.Row[]> {
  switch (condition.operator) {
    case '$and':
      return sql`(true ${matchingMetadata(sql, condition.conditions)})`;
    case '$or':
      return sql`(${anyHolds(sql, condition.conditions)})`;
    case '$not':
      return sql`not (${anyHolds(sql, condition.conditions)})`;
    case '$in':
      return sql`(${anyOf(sql, condition.path, condition.values)})`;
    case '$nin':
      return sql`not (${anyOf(sql, condition.path, condition.values)})`;
    case '$contains':
    case '$icontains':
      return containing(sql, condition.path, condition);
    default:
      return inRange(sql, condition.path, condition.operator, condition.value);
  }
}

function anyHolds(sql: SqlOrTx, conditions: readonly MetadataCondition[]): postgres.PendingQuery<postgres.Row[]> {
  return conditions.reduce((any, condition) => sql`${any} or ${sqlOf(sql, condition)}`, sql`false`);
}

/** Tests containment, which has an index, of the value or of a list with it. */
function anyOf(sql: SqlOrTx, path: string[], values: Scalar[]): postgres.PendingQuery<postgres.Row[]> {
  return values.reduce(
    (any, value) =>
      value === null
        ? sql`${any} or coalesce(m.metadata #> ${path}::text[], 'null') = 'null'::jsonb`
        : sql`${any} or m.metadata @> ${nested(path, value)}::text::jsonb or m.metadata @> ${nested(path, [value])}::text::jsonb`,
    sql`false`,
  );
}

function inRange(
  sql: SqlOrTx,
  path: string[],
  operator: RangeOperator,
  bound: string | number,
): postgres.PendingQuery<postgres.Row[]> {
  const value = sql`m.metadata #>> ${path}::text[]`;
  const isOfType = sql`jsonb_typeof(m.metadata #> ${path}::text[]) = ${typeof bound}`;
  const sides =
    typeof bound === 'number'
      ? { left: sql`(${value})::numeric`, right: sql`${String(bound)}::numeric` }
      : { left: sql`(${value}) collate "C"`, right: sql`${bound}::text` };
  // `case` prevents a text from being cast to a number.
  return sql`(case when ${isOfType} then ${sides.left} ${COMPARISONS[operator](sql)} ${sides.right} else false end)`;
}

function containing(
  sql: SqlOrTx,
  path: string[],
  { operator, value }: { operator: TextOperator; value: string },
): postgres.PendingQuery<postgres.Row[]> {
  const found = sql`m.metadata #> ${path}::text[]`;
  const isInElement =
    operator === '$contains'
      ? sql`position(${value}::text in element #>> '{}') > 0`
      : sql`position(lower(${value}::text) in lower(element #>> '{}')) > 0`;
  return sql`exists (
    select from jsonb_array_elements(case jsonb_typeof(${found}) when 'array' then ${found} else jsonb_build_array(${found}) end) element
    where jsonb_typeof(element) = 'string' and ${isInElement})`;
}

const COMPARISONS: Record<RangeOperator, (sql: SqlOrTx) => postgres.PendingQuery<postgres.Row[]>> = {
  $gt: (sql) => sql`>`,
  $gte: (sql) => sql`>=`,
  $lt: (sql) => sql`<`,
  $lte: (sql) => sql`<=`,
};

/** JSON with the value nested under the path's keys. */
function nested(path: readonly string[], value: Scalar | [Scalar]): string {
  return path.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, JSON.stringify(value));
}
