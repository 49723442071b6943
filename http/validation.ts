import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { TandemError } from '../machines/errors.ts';

/**
 * Bodies are checked as they are: "5" is not 5. Query parameters are text, so integers and booleans are read from
 * it first, and defaults filled in. Failures become VALIDATION_FAILED with `[{path, message}]`.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const check = Compile(schema);
  return (value: unknown) => {
    const input = httpPart === 'querystring' ? readQuery(schema, value as Record<string, unknown>) : value;
    if (check.Check(input)) return { value: input };
    return { error: validationFailed(describe(check.Errors(input) as readonly ValidationError[])) };
  };
};

export interface InvalidField {
  path: string;
  message: string;
}

export function validationFailed(details: readonly InvalidField[]): TandemError {
  const [first] = details;
  const message = first ? `${first.path} ${first.message}.` : 'The request is not valid.';
  return new TandemError('VALIDATION_FAILED', message, { details });
}

interface ValidationError {
  keyword: string;
  instancePath: string;
  message: string;
  params: { requiredProperties?: string[]; additionalProperties?: string[]; allowedValues?: unknown[] };
}

const MAX_DETAILS = 20;

function describe(errors: readonly ValidationError[]): InvalidField[] {
  const details = errors.flatMap(({ keyword, instancePath, message, params }) => {
    const path = instancePath.slice(1).replaceAll('/', '.').slice(0, 128);
    const at = (field: string) => (path === '' ? field : `${path}.${field}`).slice(0, 128);
    // A field that may not be there is reported twice, the first time for not matching `false`.
    if (keyword === 'boolean') return [];
    if (keyword === 'required') {
      return (params.requiredProperties ?? []).map((field) => ({ path: at(field), message: 'is required' }));
    }
    if (keyword === 'additionalProperties') {
      return (params.additionalProperties ?? []).map((field) => ({ path: at(field), message: 'is not a field here' }));
    }
    if (keyword === 'enum' && params.allowedValues) {
      return [{ path, message: `must be one of ${params.allowedValues.join(', ')}` }];
    }
    return [{ path: path === '' ? 'body' : path, message }];
  });
  return details.slice(0, MAX_DETAILS);
}

interface PropertySchema {
  type?: string;
  default?: unknown;
}

function readQuery(schema: TSchema, query: Record<string, unknown>): Record<string, unknown> {
  const properties = (schema as { properties?: Record<string, PropertySchema> }).properties ?? {};
  const read: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    // An empty parameter is how forms leave a filter out.
    const text = Object.hasOwn(query, name) && query[name] !== '' ? query[name] : undefined;
    if (text === undefined) {
      if (property.default !== undefined) read[name] = property.default;
    } else read[name] = readText(property.type, text);
  }
  return read;
}

/** What cannot be read stays text and fails the check. */
function readText(type: string | undefined, text: unknown): unknown {
  if (typeof text !== 'string') return text;
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === '1' || text === 'true')) return true;
  if (type === 'boolean' && (text === '0' || text === 'false')) return false;
  return text;
}
