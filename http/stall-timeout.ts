/**
 * Calls `onStalled` if the consumer does not ask for the next chunk in time. Otherwise a client that stops reading
 * would hold a slot and an engine.
 */
export async function* withStallTimeout<Chunk>(
  chunks: AsyncGenerator<Chunk, void>,
  { withinMs, onStalled }: { withinMs: number; onStalled: () => void },
): AsyncGenerator<Chunk, void> {
  for await (const chunk of chunks) {
    const timer = setTimeout(onStalled, withinMs);
    try {
      yield chunk;
    } finally {
      clearTimeout(timer);
    }
  }
}
