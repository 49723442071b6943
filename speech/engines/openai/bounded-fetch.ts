/** A `fetch` that limits the length of a response, and follows no redirects, which would leak the key and the audio. */
export function fetchAtMost(mostBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'error' });
    const body = await readAtMost(response, mostBytes);
    const hasBody = response.status !== 204 && response.status !== 304;
    return new Response(hasBody ? body : null, { status: response.status, headers: response.headers });
  };
}

export class LongAnswerError extends Error {
  override readonly name = 'LongAnswerError';
}

async function readAtMost({ body }: Response, mostBytes: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > mostBytes) throw new LongAnswerError(`its answer is longer than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
