/**
 * Extracts code, type and field from the error body of an OpenAI-compatible server. Drops the rest, because servers
 * repeat prompts and keys.
 * @param secret the key of the request, which is dropped too
 */
export function refusalNames(body: unknown, secret: string | null): string[] {
  const { code, type, param } = (body ?? {}) as Record<string, unknown>;
  const names = [code, type, param].filter(
    (name): name is string => typeof name === 'string' && ERROR_NAME.test(name) && !isOfKey(name, secret),
  );
  return [...new Set(names)];
}

const ERROR_NAME = /^[a-z][a-z0-9_.]{1,59}$/i;

/** Whether it contains most of the key, with any characters around or between. */
function isOfKey(name: string, apiKey: string | null): boolean {
  if (apiKey === null) return false;
  const [inName, inKey] = [name, apiKey].map((text) => text.replace(/[^a-z0-9]/gi, '').toLowerCase()) as [
    string,
    string,
  ];
  return inName.includes(inKey) || (inName.length * 2 > inKey.length && inKey.includes(inName));
}
