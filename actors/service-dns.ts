import type { Resolver } from 'node:dns/promises';
import type { SipDns } from '../sip/server-location.ts';
import { type DnsResolveOptions, queryDns } from './callbacks/dns-resolve.ts';

export type ServiceDns = Pick<SipDns, 'naptr' | 'srv'>;

/** Queries DNS servers. Gives up after a few seconds, or when aborted. */
export function createServiceDns(options: DnsResolveOptions = {}): ServiceDns {
  async function recordsOf<Records>(
    ask: (resolver: Resolver) => Promise<readonly Records[]>,
    signal: AbortSignal | undefined,
  ): Promise<readonly Records[]> {
    return await queryDns({ ...options, signal }, ask).catch((error: NodeJS.ErrnoException) => {
      if (NO_RECORDS.has(error.code ?? '')) return [];
      throw error;
    });
  }
  return {
    naptr: (name, signal) => recordsOf((resolver) => resolver.resolveNaptr(name), signal),
    srv: (name, signal) => recordsOf((resolver) => resolver.resolveSrv(name), signal),
  };
}

/** The name has no such records or does not exist. Some servers refuse or fail queries of unknown types. */
const NO_RECORDS: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND', 'ENOTIMP', 'EREFUSED', 'ESERVFAIL']);
