import { apiErrorOf } from '../app/api.ts';

/** Cost and duration of a request. */
export interface Charge {
  /** Null: not in the response. */
  usd: number | null;
  tookMs: number;
}

interface Answer<T> {
  data?: T | undefined;
  error?: unknown;
  response: Response;
}

/** Returns the body of a billed response, and its charge from the headers. @throws ApiError */
export async function charged<T>(answering: Promise<Answer<T>>): Promise<Charge & { body: T }> {
  const startedAt = performance.now();
  const { data, error, response } = await answering;
  if (!response.ok || data === undefined) throw apiErrorOf(response, error);
  return { body: data, usd: chargedUsd(response.headers), tookMs: performance.now() - startedAt };
}

export function chargedUsd(headers: Headers): number | null {
  const usd = headers.get('x-credit-charged');
  return usd === null ? null : Number(usd);
}
