import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import type { HttpFixture } from './fixture.ts';

/** The part of JSON Schema that the tests read. */
export interface Schema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}
interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
export interface Response {
  description: string;
  headers?: Record<string, { description: string; schema: Schema }>;
  content?: Record<string, Media>;
}
export interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  security?: Record<string, unknown>[];
  parameters?: { in: string; name: string; required?: boolean; schema: Schema; example?: unknown }[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Response>;
}
export interface NamedOperation extends Operation {
  method: string;
  path: string;
}
export interface ApiDocument {
  openapi: string;
  info: { title: string };
  servers: { url: string }[];
  tags: { name: string }[];
  security: Record<string, unknown>[];
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, { type: string; scheme: string }> };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, Record<string, Operation>>;
}

/** The served document with all references resolved. */
export async function readDocument(fixture: HttpFixture): Promise<ApiDocument> {
  const { status, body } = await fixture.call('GET', '/openapi.json', { as: null });
  expect(status).toBe(200);
  return resolve(body, body) as ApiDocument;
}

/** The committed document, for tests that enumerate operations before a server runs. */
export async function committedDocument(): Promise<ApiDocument> {
  const document = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8'));
  return resolve(document, document) as ApiDocument;
}

export function operationsOf({ paths }: ApiDocument): NamedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

export function examplesOf({ schema = {}, example, examples }: Media): { schema: Schema; value: unknown }[] {
  const values = Object.values(examples ?? {}).map(({ value }) => value);
  return [...(example === undefined ? [] : [example]), ...values].map((value) => ({ schema, value }));
}

/** Headers that the document must declare where sent. CORS and caching headers depend on the settings. */
const DECLARED =
  /^(x-|ratelimit|idempotency-|retry-after$|content-(disposition|range)$|etag$|last-modified$|accept-ranges$|location$|link$|deprecation$|sunset$|www-authenticate$)/;

/** Names of undeclared headers, and of headers whose value the document does not allow. */
export function undeclaredHeaders({ headers: declared = {} }: Response, sent: Record<string, unknown>): string[] {
  return Object.entries(sent)
    .filter(([name]) => DECLARED.test(name))
    .filter(([name, value]) => !allows(declared[name]?.schema, String(value)))
    .map(([name, value]) => `${name}: ${value}`);
}

function allows(schema: Schema | undefined, value: string): boolean {
  if (schema === undefined) return false;
  if (schema.type === 'integer') return /^\d+$/.test(value);
  return schema.const === undefined || schema.const === value;
}

function resolve(value: unknown, root: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => resolve(item, root));
  if (typeof value !== 'object' || value === null) return value;
  if ('$ref' in value && typeof value.$ref === 'string') {
    const steps = value.$ref.replace('#/', '').split('/');
    const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], root);
    expect(target, value.$ref).toBeDefined();
    return resolve(target, root);
  }
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, resolve(field, root)]));
}
