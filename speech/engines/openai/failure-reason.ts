import { LongAnswerError } from './bounded-fetch.ts';

/** Why a request failed. The package says `Connection error.` and `fetch` that it failed; the deepest cause says why. */
export function reasonOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (!(deepest instanceof Error)) return 'it failed';
  const { code } = deepest as NodeJS.ErrnoException;
  return deepest.message || code || deepest.name;
}

/** The same for clients: a code of Node, and no words of the server. */
export function faultOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (deepest instanceof LongAnswerError) return deepest.message;
  if (deepest instanceof SyntaxError) return 'its response is not JSON';
  const { code } = (deepest ?? {}) as NodeJS.ErrnoException;
  return typeof code === 'string' && /^[A-Z_]{3,40}$/.test(code) ? code : 'the connection failed';
}
