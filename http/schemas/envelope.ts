import { type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';

export interface Success<Data> {
  success: true;
  data: Data;
}

export function success<Data>(data: Data): Success<Data> {
  return { success: true, data };
}

/** Response schemas are documentation only: neither the compiler nor the server checks bodies against them. */
export type ResponseSchema = TUnsafe<unknown>;

export function successOf(data: TSchema, description: string): ResponseSchema {
  return responseOf(Type.Object({ success: Type.Literal(true), data }, { description }));
}

export function responseOf(schema: object): ResponseSchema {
  return schema as ResponseSchema;
}

export const ErrorSchema = Type.Object(
  {
    success: Type.Literal(false),
    error: Type.String({
      description: 'Error type, derived from the status.',
      examples: ['bad_request', 'Unauthorized'],
    }),
    message: Type.String({
      description: 'Human-readable explanation: the problem and its solution. The wording can change.',
    }),
    code: Type.Enum(Object.keys(ERROR_CATALOGUE), { description: 'Stable error code to branch on.' }),
    error_code: Type.Optional(Type.String({ description: 'Same as `code`, on codes that end in _CONCURRENCY_LIMIT.' })),
    details: Type.Optional(
      Type.Unknown({ description: 'Structured details. For validation errors: `[{path, message}]`.' }),
    ),
    request_id: Type.String({ description: 'Id of the request. Quote it when you report a problem.' }),
    retry_after: Type.Optional(
      Type.Integer({ description: 'Seconds to wait before a retry, as in the Retry-After header. On 429 and 503.' }),
    ),
  },
  { description: 'Error.' },
);

/** Error format of operations for OpenAI clients. */
export const OpenaiErrorSchema = Type.Object(
  {
    ...ErrorSchema.properties,
    error: Type.Object(
      {
        message: Type.String({ description: 'Human-readable explanation.' }),
        type: Type.String({ description: 'Error type as OpenAI names it.', examples: ['invalid_request_error'] }),
        param: Type.Union([Type.String(), Type.Null()], { description: 'Invalid field, if there is exactly one.' }),
        code: Type.String({ description: 'Same as the outer `code`.' }),
      },
      { description: 'The same error in the format of OpenAI.' },
    ),
  },
  { description: 'Error.' },
);

/** Generic error responses. `complete-document.ts` replaces them with one response per status. */
const Refusal = responseOf({
  description: 'Error.',
  content: { 'application/json': { schema: { $ref: 'Error#' } } },
});
export const REFUSALS = { '4xx': Refusal, '5xx': Refusal };

/** References a schema that `openapi.ts` shares. */
export function shared(name: 'Call' | 'CallEvent'): TSchema {
  return { $ref: `${name}#` } as TSchema;
}

export interface Pagination {
  page: number;
  limit: number;
  total: number;
  pages: number;
}

export const PaginationSchema = Type.Object(
  {
    page: Type.Integer({ description: 'Page number.' }),
    limit: Type.Integer({ description: 'Page size.' }),
    total: Type.Integer({ description: 'Number of items on all pages.' }),
    pages: Type.Integer({ description: 'Number of pages.' }),
  },
  { examples: [{ page: 1, limit: 20, total: 1, pages: 1 }] },
);

export const PAGE_QUERY = {
  page: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1, description: 'Page number.' }),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Items per page.' }),
};

export function paginationOf({ page, limit }: { page: number; limit: number }, total: number): Pagination {
  return { page, limit, total, pages: Math.ceil(total / limit) };
}

/** Describes `{<name>: [item], pagination}`. */
export function pageOf(name: string, item: TSchema): TObject {
  const properties: TProperties = { [name]: Type.Array(item), pagination: PaginationSchema };
  return Type.Object(properties);
}

export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** ISO 8601 in UTC, with milliseconds. */
export const TimeSchema = Type.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] });
