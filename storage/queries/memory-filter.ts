import type postgres from 'postgres';
import { TandemError } from '../../machines/errors.ts';
import type { SqlOrTx } from '../database.ts';
import { storableText } from './memory-text.ts';

type Scalar = string | number | boolean | null;
type RangeOperator = '$gt' | '$gte' | '$lt' | '$lte';

/** One condition on the metadata of a memory; all of a filter have to hold. */
export type MetadataCondition = { path: string[] } & (
  | { operator: '$in' | '$nin'; values: Scalar[] }
  | { operator: RangeOperator; value: string | number }
);

/** What a filter may ask at most. */
export const FILTER_LIMITS = { conditions: 20, values: 100, depth: 8, keyCharacters: 200, textCharacters: 2_000 };

/**
 * `{"language": "en", "author.team": ["a", "b"], "year": {"$gte": 2024, "$ne": 2025}}`: a value is equal, or one of those
 * in a list of the metadata; a list means any of its values; `$gt`, `$gte`, `$lt` and `$lte` compare numbers with
 * numbers and texts with texts by their code points (dates in ISO 8601 do); dots, or objects in objects, lead to keys
 * deeper inside. Null also means that there is no such key.
 * @throws TandemError `VALIDATION_FAILED` that names what is wrong
 */
export function parseMetadataFilter(filters: unknown): MetadataCondition[] {
  const conditions = conditionsOf(filters, []);
  if (conditions.length > FILTER_LIMITS.conditions) refuse([], `has more than ${FILTER_LIMITS.conditions} conditions`);
  return conditions;
}

/** The conditions on `memories m`, each beginning with `and`. Every value is a parameter. */
export function matchingMetadata(
  sql: SqlOrTx,
  conditions: readonly MetadataCondition[],
): postgres.PendingQuery<postgres.Row[]> {
  return conditions.reduce((all, condition) => sql`${all} and ${sqlOf(sql, condition)}`, sql``);
}

function conditionsOf(value: unknown, path: string[]): MetadataCondition[] {
  if (Array.isArray(value)) return [{ path, operator: '$in', values: scalarsOf(value, path) }];
  if (typeof value !== 'object' || value === null) {
    return [{ path, operator: '$in', values: [scalarOf(value, path)] }];
  }
  const entries = Object.entries(value);
  if (entries.length === 0 && path.length > 0) refuse(path, 'is an empty object');
  if (entries.length > FILTER_LIMITS.conditions) refuse(path, `has more than ${FILTER_LIMITS.conditions} conditions`);
  const operators = entries.filter(([key]) => key.startsWith('$'));
  if (operators.length === 0) return entries.flatMap(([key, inner]) => conditionsOf(inner, deeper(path, key)));
  if (path.length === 0) refuse(path, 'has an operator where a key is expected');
  return entries.map(([operator, operand]) => operatorOf(operator, operand, path));
}

function operatorOf(operator: string, operand: unknown, path: string[]): MetadataCondition {
  switch (operator) {
    case '$eq':
      return { path, operator: '$in', values: [scalarOf(operand, path)] };
    case '$ne':
      return { path, operator: '$nin', values: [scalarOf(operand, path)] };
    case '$in':
    case '$nin':
      if (!Array.isArray(operand)) return refuse(path, `has ${operator} without a list`);
      return { path, operator, values: scalarsOf(operand, path) };
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte': {
      const value = scalarOf(operand, path);
      if (typeof value === 'string' || typeof value === 'number') return { path, operator, value };
      return refuse(path, `has ${operator} without a number or text`);
    }
    default:
      return refuse(path, 'has an operator other than $eq, $ne, $in, $nin, $gt, $gte, $lt and $lte');
  }
}

function deeper(path: string[], key: string): string[] {
  const parts = [...path, ...key.split('.').map(storableText)];
  if (parts.length > FILTER_LIMITS.depth) refuse(path, `leads deeper than ${FILTER_LIMITS.depth} keys`);
  if (parts.some((part) => part === '')) refuse(path, 'has an empty key');
  if (key.length > FILTER_LIMITS.keyCharacters) {
    refuse(path, `has a key of more than ${FILTER_LIMITS.keyCharacters} characters`);
  }
  return parts;
}

function scalarsOf(values: unknown[], path: string[]): Scalar[] {
  if (values.length > FILTER_LIMITS.values) refuse(path, `has a list of more than ${FILTER_LIMITS.values} values`);
  return values.map((value) => scalarOf(value, path));
}

function scalarOf(value: unknown, path: string[]): Scalar {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'string') {
    if (value.length <= FILTER_LIMITS.textCharacters) return storableText(value);
    return refuse(path, `has a text of more than ${FILTER_LIMITS.textCharacters} characters`);
  }
  return refuse(path, 'has a value that is not a string, number, boolean or null');
}

function refuse(path: string[], reason: string): never {
  const where = ['filters', ...path].join('.');
  const message = `${where} ${reason}`;
  throw new TandemError('VALIDATION_FAILED', message, { details: [{ path: where, message: reason }] });
}

function sqlOf(sql: SqlOrTx, condition: MetadataCondition): postgres.PendingQuery<postgres.Row[]> {
  const { path, operator } = condition;
  switch (operator) {
    case '$in':
      return sql`(${anyOf(sql, path, condition.values)})`;
    case '$nin':
      return sql`not (${anyOf(sql, path, condition.values)})`;
    default:
      return inRange(sql, path, operator, condition.value);
  }
}

/** By containment, which an index answers, of the value itself or of a list that has it. */
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
  // `case` keeps a text from being read as a number.
  return sql`(case when ${isOfType} then ${sides.left} ${COMPARISONS[operator](sql)} ${sides.right} else false end)`;
}

const COMPARISONS: Record<RangeOperator, (sql: SqlOrTx) => postgres.PendingQuery<postgres.Row[]>> = {
  $gt: (sql) => sql`>`,
  $gte: (sql) => sql`>=`,
  $lt: (sql) => sql`<`,
  $lte: (sql) => sql`<=`,
};

/** JSON of the value below the keys of the path, whatever those are called. */
function nested(path: readonly string[], value: Scalar | [Scalar]): string {
  return path.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, JSON.stringify(value));
}
