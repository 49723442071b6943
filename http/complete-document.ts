import { ERROR_CATALOGUE, type ErrorCode, TandemError } from '../machines/errors.ts';
import { OPTIONAL_BODIES } from './empty-body.ts';
import { exampleOf, type JsonSchema } from './example-of.ts';
import { isOpenaiPath, openaiErrorBody } from './openai-errors.ts';
import { exampleRefusal, refusalsOf } from './operation-refusals.ts';
import { errorBody } from './refusals.ts';
import { HEADER_TRAITS, type HeaderTraits, headersOf, isReplayed, RESPONSE_HEADERS } from './response-headers.ts';

interface Media {
  schema?: JsonSchema;
  example?: unknown;
  examples?: unknown;
}
interface ApiResponse {
  description?: string;
  headers?: Record<string, { $ref: string }>;
  content?: Record<string, Media>;
}
interface Operation {
  [HEADER_TRAITS]?: HeaderTraits;
  operationId?: string;
  security?: unknown[];
  requestBody?: { content: Record<string, Media>; required?: boolean };
  responses: Record<string, ApiResponse | { $ref: string }>;
}
interface ApiDocument {
  paths?: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, JsonSchema>; responses?: Record<string, ApiResponse> };
}

/**
 * Completes the OpenAPI document. It adds missing examples and response headers. It replaces generic error responses by
 * one response per status with its codes. Shared responses and all headers are defined once, in `components`.
 */
export function completeDocument<Document extends object>(document: Document): Document {
  const { paths = {}, components = {} } = document as ApiDocument;
  const sharedRefusals: Record<string, ApiResponse> = {};
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      delete operation.responses['4XX'];
      delete operation.responses['5XX'];
      if (operation.requestBody && OPTIONAL_BODIES.has(operation.operationId ?? ''))
        operation.requestBody.required = false;
      const media = Object.values(operation.responses).flatMap((response) =>
        'content' in response ? Object.values(response.content ?? {}) : [],
      );
      for (const one of [...media, ...Object.values(operation.requestBody?.content ?? {})]) {
        addExample(one, components.schemas ?? {});
      }
      const traits = operation[HEADER_TRAITS] ?? {};
      delete operation[HEADER_TRAITS];
      for (const [status, response] of Object.entries(operation.responses) as [string, ApiResponse][]) {
        response.headers = headersOf(traits, { status: Number(status) });
      }
      Object.assign(operation.responses, refusalResponses({ method, path, operation, traits }, sharedRefusals));
    }
  }
  const responses = Object.fromEntries(Object.entries(sharedRefusals).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...document, components: { ...components, headers: RESPONSE_HEADERS, responses } };
}

function addExample(media: Media, schemas: Record<string, JsonSchema>): void {
  if (media.schema === undefined || media.example !== undefined || media.examples !== undefined) return;
  const example = exampleOf(media.schema, schemas);
  if (example !== undefined) media.example = example;
}

/** Returns the error responses by status. Adds those with at most two codes to `shared`. */
function refusalResponses(
  { method, path, operation, traits }: { method: string; path: string; operation: Operation; traits: HeaderTraits },
  shared: Record<string, ApiResponse>,
): Record<string, ApiResponse | { $ref: string }> {
  const { operationId = '' } = operation;
  const codes = refusalsOf({
    operationId,
    isPublic: operation.security?.length === 0,
    mayHaveBody: method !== 'get',
    isIdempotent: traits.idempotent === true,
  });
  const byStatus = Object.groupBy(codes, (code) => ERROR_CATALOGUE[code].status);
  const entries = Object.entries(byStatus as Record<string, ErrorCode[]>).map(([status, statusCodes]) => {
    const isOpenai = isOpenaiPath(path);
    const headers = headersOf(traits, { status: Number(status), codes: statusCodes });
    const response = refusalResponse(statusCodes, { isOpenai, headers });
    if (statusCodes.length > 2) return [status, response] as const;
    const isRepeatable = traits.idempotent === true && statusCodes.some(isReplayed);
    const name = [...(isOpenai ? ['Openai'] : []), ...(isRepeatable ? ['Repeatable'] : []), ...statusCodes].join('.');
    shared[name] = response;
    return [status, { $ref: `#/components/responses/${name}` }] as const;
  });
  return Object.fromEntries(entries);
}

function refusalResponse(
  codes: readonly ErrorCode[],
  { isOpenai, headers }: { isOpenai: boolean; headers: ApiResponse['headers'] },
): ApiResponse {
  const [bodyOf, name] = isOpenai ? ([openaiErrorBody, 'OpenaiError'] as const) : ([errorBody, 'Error'] as const);
  const examples = codes.map((code) => {
    const { message, details } = exampleRefusal(code);
    return [code, { value: bodyOf(new TandemError(code, message, { details }), REQUEST_ID) }];
  });
  return {
    description: `Error ${codes.map((code) => `\`${code}\``).join(' or ')}.`,
    headers,
    content: {
      'application/json': { schema: { $ref: `#/components/schemas/${name}` }, examples: Object.fromEntries(examples) },
    },
  };
}

const REQUEST_ID = '5b0e1c5e-8a51-4cf5-9d0c-6d1f3f0e7a42';
