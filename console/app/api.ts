import { createTandemClient, type TandemClient } from '@tandem/client';
import { learnServerTime } from '../parts/clock.ts';
import { apiText } from '../text/app.ts';
import { ApiError } from './api-error.ts';
import { currentWorkspaceId } from './workspace.ts';

/** The typed client of this page. The session is a cookie that scripts cannot read. */
export const api = clientOf(currentWorkspaceId);

/** For what belongs to one workspace, even after the page has switched to another. */
export function apiIn(workspaceId: string | null): TandemClient {
  return clientOf(() => workspaceId);
}

function clientOf(workspaceId: () => string | null): TandemClient {
  return createTandemClient({ baseUrl: location.origin, workspaceId, fetch: reach });
}

/** Fetches from the server. @throws ApiError UNREACHABLE if it does not answer. */
export async function reach(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    learnServerTime(response);
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError({ status: 0, code: 'UNREACHABLE', message: apiText.unreachable });
  }
}

interface Answer<T> {
  data?: { data: T } | undefined;
  error?: unknown;
  response: Response;
}

/** The `data` of a response. @throws ApiError */
export async function dataOf<T>(answering: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answering;
  if (!response.ok || data === undefined) throw apiErrorOf(response, error);
  return data.data;
}

/** For responses without an envelope, such as 204 or those in OpenAI's shape. @throws ApiError */
export async function bodyOf<T>(answering: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answering;
  if (!response.ok) throw apiErrorOf(response, error);
  return data as T;
}

export function apiErrorOf(response: Response, body: unknown): ApiError {
  const { code, message, request_id, error } = (body ?? {}) as Partial<Record<string, unknown>>;
  const openai = typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  return new ApiError({
    status: response.status,
    code: String(code ?? openai.code ?? response.status),
    message: String(message ?? openai.message ?? apiText.unexpected(response.status)),
    requestId: typeof request_id === 'string' ? request_id : response.headers.get('x-request-id'),
  });
}
