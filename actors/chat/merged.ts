/** An item with the position of its source. */
export type Merged<T> = T & { choice: number };

/**
 * Merges several sources as their items come, without buffering. If a source fails or the consumer stops, the other
 * sources are closed without waiting.
 * @throws the error of the first source that fails
 */
export async function* merged<T extends object>(
  sources: readonly AsyncGenerator<T, void>[],
): AsyncGenerator<Merged<T>> {
  const open = new Map(sources.map((source, choice) => [choice, nextOf(source, choice)]));
  try {
    while (open.size > 0) {
      const { choice, result } = await Promise.race(open.values());
      if (result.done) {
        open.delete(choice);
        continue;
      }
      yield { ...result.value, choice };
      // Move it to the end of the queue, so that a fast source does not starve the others.
      open.delete(choice);
      open.set(choice, nextOf(sources[choice]!, choice));
    }
  } finally {
    for (const choice of open.keys()) void sources[choice]!.return().catch(() => {});
  }
}

function nextOf<T>(source: AsyncGenerator<T, void>, choice: number) {
  const next = source.next().then((result) => ({ choice, result }));
  // The race reports the error, unless it is over. Avoids an unhandled rejection.
  next.catch(() => {});
  return next;
}
