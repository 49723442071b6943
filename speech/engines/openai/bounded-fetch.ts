import { readAtMost } from '../../../runtime/read-at-most.ts';

/** A `fetch` that limits the length of a response, and follows no redirects, which would leak the key and the audio. */
export function fetchAtMost(mostBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'error' });
    const tooLong = () => new LongAnswerError(`its answer is longer than ${mostBytes} bytes`);
    const body = await readAtMost(response, { mostBytes, tooLong });
    const hasBody = response.status !== 204 && response.status !== 304;
    return new Response(hasBody ? body : null, { status: response.status, headers: response.headers });
  };
}

export class LongAnswerError extends Error {
  override readonly name = 'LongAnswerError';
}
