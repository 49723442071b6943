import { type Finding, ok, reasonOf, warn } from './finding.ts';

export function brokenFolders(problems: readonly { folder: string; problem: string }[]): Finding[] {
  const advice = 'Fetch it anew (tandem models fetch), or remove the folder.';
  return problems.map(({ folder, problem }) => warn('model', `${folder}: ${problem}`, advice));
}

/** Checks the server of an engine, by its settings `<prefix>_BASE_URL` and `<prefix>_API_KEY`. */
export async function checkUpstream(
  prefix: 'STT' | 'TTS',
  { url, key }: { url: string | null; key: string | null },
): Promise<Finding[]> {
  if (url === null) return [];
  const check = `${prefix}_BASE_URL`;
  try {
    const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
    const { status } = await fetch(`${url}/models`, { headers, signal: AbortSignal.timeout(3_000) });
    if (status === 401 || status === 403) {
      return [warn(check, 'The server refuses the key.', `Set ${prefix}_API_KEY to one that it knows.`)];
    }
    if (status >= 500) return [warn(check, `The server answers ${status}.`, 'Look at its log.')];
    return [ok(check, 'the server responds')];
  } catch (error) {
    // The message of `fetch` says little; its cause distinguishes a wrong name from a wrong port.
    const reason = reasonOf((error as Error).cause ?? error);
    return [warn(check, `No server there: ${reason}`, `Start it, or correct ${check}; it ends in /v1 mostly.`)];
  }
}
