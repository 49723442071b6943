import { type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';

export interface Success<Data> {
  success: true;
  data: Data;
}

export function success<Data>(data: Data): Success<Data> {
  return { success: true, data };
}

/**
 * Responses are described for the document and not checked against their schemas, neither by the compiler nor when
 * they are sent: what presenters make goes out exactly as it is.
 */
export type ResponseSchema = TUnsafe<unknown>;

/** Schema of a success envelope around `data`. */
export function successOf(data: TSchema, description: string): ResponseSchema {
  return responseOf(Type.Object({ success: Type.Literal(true), data }, { description }));
}

export function responseOf(schema: object): ResponseSchema {
  return schema as ResponseSchema;
}

export const ErrorSchema = Type.Object(
  {
    success: Type.Literal(false),
    error: Type.String({ description: 'Kind of refusal, by its status.', examples: ['bad_request', 'Unauthorized'] }),
    message: Type.String({ description: 'For a person: what is wrong and what to do.' }),
    code: Type.Enum(Object.keys(ERROR_CATALOGUE), { description: 'Stable code.' }),
    error_code: Type.Optional(Type.String({ description: 'The code again, where it ends in _CONCURRENCY_LIMIT.' })),
    details: Type.Optional(Type.Unknown({ description: 'For validation errors `[{path, message}]`.' })),
    request_id: Type.String(),
    retry_after: Type.Optional(Type.Integer({ description: 'Seconds; on 429 and 503, as is the Retry-After header.' })),
  },
  { description: 'Refused.' },
);

/** Of operations that OpenAI's clients call. */
export const OpenaiErrorSchema = Type.Object(
  {
    ...ErrorSchema.properties,
    error: Type.Object(
      {
        message: Type.String(),
        type: Type.String({ description: "Kind of refusal in OpenAI's words.", examples: ['invalid_request_error'] }),
        param: Type.Union([Type.String(), Type.Null()], { description: 'The field that is wrong, where it is one.' }),
        code: Type.String({ description: 'The code again.' }),
      },
      { description: "The same again as OpenAI's clients read it." },
    ),
  },
  { description: 'Refused.' },
);

/** Responses of every operation that is not public. */
const Refusal = responseOf({
  description: 'Refused.',
  content: { 'application/json': { schema: { $ref: 'Error#' } } },
});
export const REFUSALS = { '4xx': Refusal, '5xx': Refusal };

/** A shared schema of `openapi.ts`. */
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
  { page: Type.Integer(), limit: Type.Integer(), total: Type.Integer(), pages: Type.Integer() },
  { examples: [{ page: 1, limit: 20, total: 1, pages: 1 }] },
);

export const PAGE_QUERY = {
  page: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1 }),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
};

export function paginationOf({ page, limit }: { page: number; limit: number }, total: number): Pagination {
  return { page, limit, total, pages: Math.ceil(total / limit) };
}

/** Schema of `{<name>: [item], pagination}`. */
export function pageOf(name: string, item: TSchema): TObject {
  const properties: TProperties = { [name]: Type.Array(item), pagination: PaginationSchema };
  return Type.Object(properties);
}

export function nullable(schema: TSchema): TSchema {
  return Type.Union([schema, Type.Null()]);
}

/** ISO 8601, UTC, milliseconds. */
export const TimeSchema = Type.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] });
