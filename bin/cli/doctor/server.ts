import type { Config } from '../../../config.ts';
import { type Finding, fail, ok } from '../../../diagnosis/finding.ts';
import { localUrl } from '../api-access.ts';

/** The listener on the HTTP port: nothing, another program, or a Tandem, ready or not. */
export type RunningServer =
  | { kind: 'none' }
  | { kind: 'stranger' }
  | { kind: 'tandem'; url: string; notReady: string | null };

export async function findRunningServer(config: Config): Promise<RunningServer> {
  if (config.port === 0) return { kind: 'none' };
  const url = localUrl(config);
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) });
    const answer = (await response.json()) as {
      data?: { ready?: boolean };
      code?: string;
      message?: string;
    };
    if (answer.data?.ready === true) return { kind: 'tandem', url, notReady: null };
    if (answer.code === undefined) return { kind: 'stranger' };
    return { kind: 'tandem', url, notReady: answer.message ?? answer.code };
  } catch (error) {
    // Refused means that nothing listens; any other failure means that another program does.
    const { code } = ((error as Error).cause ?? {}) as { code?: string };
    return code === 'ECONNREFUSED' || code === 'EADDRNOTAVAIL' ? { kind: 'none' } : { kind: 'stranger' };
  }
}

export function checkServer(server: RunningServer): Finding {
  if (server.kind !== 'tandem') return ok('server', 'does not run here');
  if (server.notReady === null) return ok('server', `runs at ${server.url}`);
  return fail(
    'server',
    `It runs at ${server.url}, but: ${server.notReady}`,
    'Check its log; a restart settles interrupted calls.',
  );
}
