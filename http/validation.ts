import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/schema';
import { TandemError } from '../machines/errors.ts';

/**
 * Validates parts of requests. Bodies are not coerced: "5" is not 5. Query parameters are text, so integers and
 * booleans are parsed and defaults applied first. Failures become VALIDATION_FAILED with `[{path, message}]`.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const compiled = compiledOnce(schema);
  return (value: unknown) => {
    const check = compiled();
    const isQuery = httpPart === 'querystring';
    const input = isQuery ? readQuery(schema, value as Record<string, unknown>) : value;
    const unknown = unknownFields(schema, input);
    if (unknown.length > 0) return { error: validationFailed(unknown) };
    if (check.Check(input)) return { value: input };
    const repeated = isQuery ? repeatedParameters(input as Record<string, unknown>) : [];
    if (repeated.length > 0) return { error: validationFailed(repeated) };
    return { error: failureOf(schema, check, input) };
  };
};

/** Validates other values, such as socket messages. Returns null if valid. */
export function compileCheck(schema: TSchema): (value: unknown) => TandemError | null {
  const compiled = compiledOnce(schema);
  return (value) => {
    const check = compiled();
    if (check.Check(value)) return null;
    return failureOf(schema, check, value);
  };
}

function failureOf(schema: TSchema, check: Validator, value: unknown): TandemError {
  const [, errors] = check.Errors(value);
  return validationFailed(describe(schema, errors as readonly ValidationError[]));
}

/** Compiles on first use, because compiling all schemas took a quarter of the HTTP server's start. */
function compiledOnce(schema: TSchema): () => Validator {
  let validator: Validator | null = null;
  return () => {
    validator ??= Compile(schema);
    return validator;
  };
}

export interface InvalidField {
  path: string;
  message: string;
}

export function validationFailed(details: readonly InvalidField[]): TandemError {
  const [first] = details;
  const message = first ? `${first.path} ${first.message}.` : 'The request is invalid.';
  return new TandemError('VALIDATION_FAILED', message, { details });
}

interface ValidationError {
  keyword: string;
  /** JSON pointer into the schema, after `#`. */
  schemaPath: string;
  instancePath: string;
  message: string;
  params: {
    requiredProperties?: string[];
    additionalProperties?: string[];
    allowedValues?: unknown[];
    limit?: number;
    type?: string;
  };
}

const MAX_DETAILS = 20;
/** The library stops after this many errors, and reports unknown fields first, as not matching `false`. */
const MAX_LIBRARY_ERRORS = 8;

/** Finds unknown fields early, because the library takes long for many of them. */
function unknownFields(schema: TSchema, value: unknown): InvalidField[] {
  const { additionalProperties, properties = {} } = schema as { additionalProperties?: unknown; properties?: object };
  if (additionalProperties !== false || typeof value !== 'object' || value === null) return [];
  const names = Object.keys(value);
  if (names.length < Object.keys(properties).length + MAX_LIBRARY_ERRORS) return [];
  const unknown = names.filter((name) => !Object.hasOwn(properties, name)).slice(0, MAX_DETAILS);
  return unknown.map((name) => ({ path: name.slice(0, 128), message: UNKNOWN_FIELD }));
}

const UNKNOWN_FIELD = 'is not a known field';

function describe(schema: TSchema, errors: readonly ValidationError[]): InvalidField[] {
  const details = detailsOf(schema, errors);
  if (details.length > 0) return details;
  const unknown = errors.filter(({ keyword }) => keyword === 'boolean');
  return unknown.map(({ instancePath }) => ({ path: pathOf(instancePath), message: UNKNOWN_FIELD }));
}

function pathOf(instancePath: string): string {
  return instancePath.slice(1).replaceAll('/', '.').slice(0, 128);
}

function detailsOf(schema: TSchema, errors: readonly ValidationError[]): InvalidField[] {
  const details = errors.flatMap((error) => {
    const path = pathOf(error.instancePath);
    const at = (field: string) => (path === '' ? field : `${path}.${field}`).slice(0, 128);
    if (isRepetition(error) || isOtherAlternative(error, errors)) return [];
    if (error.keyword === 'required') {
      return (error.params.requiredProperties ?? []).map((field) => ({ path: at(field), message: 'is required' }));
    }
    if (error.keyword === 'additionalProperties') {
      const unknown = error.params.additionalProperties ?? [];
      return unknown.map((field) => ({ path: at(field), message: UNKNOWN_FIELD }));
    }
    return [{ path: path === '' ? 'body' : path, message: messageOf(schema, error) }];
  });
  return withoutAlternatives(details).slice(0, MAX_DETAILS);
}

/** Keeps one detail per path, because a value that matches no alternative has an error for each. */
function withoutAlternatives(details: readonly InvalidField[]): InvalidField[] {
  const byPath = new Map<string, string>();
  for (const { path, message } of details) {
    const before = byPath.get(path);
    const isAlternative = before?.startsWith(MUST_BE) && message.startsWith(MUST_BE) && before !== message;
    byPath.set(path, isAlternative ? `${before} or ${message.slice(MUST_BE.length)}` : (before ?? message));
  }
  return [...byPath].map(([path, message]) => ({ path, message }));
}

const MUST_BE = 'must be ';

/**
 * Whether an earlier error covers this one. An unknown field also does not match `false`. An invalid nullable field
 * also is not null and matches no alternative.
 */
function isRepetition({ keyword, schemaPath, params }: ValidationError): boolean {
  return keyword === 'boolean' || keyword === 'anyOf' || (params.type === 'null' && schemaPath.includes('/anyOf/'));
}

/** Whether the value has the type of another alternative, whose errors say more. */
function isOtherAlternative(error: ValidationError, errors: readonly ValidationError[]): boolean {
  const [, alternatives] = /^(.*\/anyOf\/)\d+$/.exec(error.schemaPath) ?? [];
  if (error.keyword !== 'type' || alternatives === undefined) return false;
  return errors.some(
    ({ keyword, schemaPath, instancePath }) =>
      schemaPath.startsWith(alternatives) &&
      (instancePath === error.instancePath
        ? !/^(?:type|const)$/.test(keyword)
        : instancePath.startsWith(`${error.instancePath}/`)),
  );
}

function messageOf(schema: TSchema, { keyword, schemaPath, params, message }: ValidationError): string {
  switch (keyword) {
    case 'type':
      return `must be ${TYPE_NAMES[params.type ?? ''] ?? params.type}`;
    case 'enum':
      return `must be one of ${params.allowedValues?.join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(schemaAt(schema, schemaPath).const)}`;
    case 'minimum':
      return `must be at least ${params.limit}`;
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'exclusiveMinimum':
      return `must be more than ${params.limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${params.limit}`;
    case 'minProperties':
      return 'must have at least one field';
    case 'pattern': {
      const description = schemaAt(schema, schemaPath).description;
      return description === undefined ? message : `is invalid. Expected: ${description.replace(/\.$/, '')}`;
    }
    default:
      return message;
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'an array',
  object: 'a JSON object',
};

function schemaAt(schema: TSchema, schemaPath: string): { description?: string; const?: unknown } {
  let found: unknown = schema;
  for (const step of schemaPath.split('/').slice(1)) found = (found as Record<string, unknown> | undefined)?.[step];
  return found ?? {};
}

/** Finds repeated parameters, which arrive as arrays. No parameter takes a list. */
function repeatedParameters(query: Record<string, unknown>): InvalidField[] {
  const names = Object.keys(query).filter((name) => Array.isArray(query[name]));
  return names.map((path) => ({ path, message: 'must be sent only once' }));
}

interface PropertySchema {
  type?: string;
  default?: unknown;
}

function readQuery(schema: TSchema, query: Record<string, unknown>): Record<string, unknown> {
  const properties = (schema as { properties?: Record<string, PropertySchema> }).properties ?? {};
  const read: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    // Forms send an empty parameter for an unset filter.
    const text = Object.hasOwn(query, name) && query[name] !== '' ? query[name] : undefined;
    if (text === undefined) {
      if (property.default !== undefined) read[name] = property.default;
    } else read[name] = readText(property.type, text);
  }
  return read;
}

/** Leaves unparsable text unchanged, so that validation fails. */
function readText(type: string | undefined, text: unknown): unknown {
  if (typeof text !== 'string') return text;
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === '1' || text === 'true')) return true;
  if (type === 'boolean' && (text === '0' || text === 'false')) return false;
  return text;
}
