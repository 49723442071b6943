/** An item and the position of its source in the list. */
export type Merged<T> = T & { choice: number };

/**
 * Items of several sources as they come. Each source is asked for its next item only when the last one was taken. If a
 * source fails, or if the reader leaves, the others are told to end, without waiting for them.
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
      // To the end of the line, so that a fast source does not keep the others waiting.
      open.delete(choice);
      open.set(choice, nextOf(sources[choice]!, choice));
    }
  } finally {
    for (const choice of open.keys()) void sources[choice]!.return().catch(() => {});
  }
}

function nextOf<T>(source: AsyncGenerator<T, void>, choice: number) {
  const next = source.next().then((result) => ({ choice, result }));
  // The race reports it, if it is still going on.
  next.catch(() => {});
  return next;
}
