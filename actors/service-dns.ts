import { Resolver } from 'node:dns/promises';
import type { SipDns } from '../sip/server-location.ts';

/** NAPTR and SRV records. */
export type ServiceDns = Pick<SipDns, 'naptr' | 'srv'>;

/**
 * Queries the DNS servers of the system. Gives up after a few seconds, or when aborted.
 * @param servers `host` or `host:port`
 */
export function createServiceDns(servers?: readonly string[]): ServiceDns {
  async function query<Records>(
    ask: (resolver: Resolver) => Promise<readonly Records[]>,
    signal?: AbortSignal,
  ): Promise<readonly Records[]> {
    signal?.throwIfAborted();
    const resolver = new Resolver({ timeout: 2_000, tries: 2, maxTimeout: 3_000 });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await ask(resolver);
    } catch (error) {
      if (NO_RECORDS.has((error as NodeJS.ErrnoException).code ?? '')) return [];
      throw error;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
  return {
    naptr: (name, signal) => query((resolver) => resolver.resolveNaptr(name), signal),
    srv: (name, signal) => query((resolver) => resolver.resolveSrv(name), signal),
  };
}

/** The name exists without such records, or does not exist. Some servers refuse or fail queries of types they do not know. */
const NO_RECORDS: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'ENOTIMP', 'EREFUSED', 'ESERVFAIL']);
