/** Why a request failed. The package says `Connection error.` and `fetch` that it failed; the deepest cause says why. */
export function reasonOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  if (!(deepest instanceof Error)) return 'it failed';
  const { code } = deepest as NodeJS.ErrnoException;
  return deepest.message || code || deepest.name;
}
