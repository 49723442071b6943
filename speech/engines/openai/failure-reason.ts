import { LongAnswerError } from './bounded-fetch.ts';

/** Why a request failed. The package and `fetch` only report a connection error; the innermost cause says why. */
export function reasonOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (!(deepest instanceof Error)) return 'it failed';
  const { code } = deepest as NodeJS.ErrnoException;
  return deepest.message || code || deepest.name;
}

/** The same for clients: an error code of Node, without the server's text. */
export function faultOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (deepest instanceof LongAnswerError) return deepest.message;
  if (deepest instanceof SyntaxError) return 'its response is not JSON';
  const { code } = (deepest ?? {}) as NodeJS.ErrnoException;
  return typeof code === 'string' && /^[A-Z_]{3,40}$/.test(code) ? code : 'the connection failed';
}
