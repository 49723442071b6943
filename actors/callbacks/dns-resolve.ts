import { Resolver } from 'node:dns/promises';

/** Resolves a name to addresses in text form, or throws. Never called with an IP literal or localhost. */
export type Resolve = (hostname: string, signal?: AbortSignal) => Promise<readonly string[]>;

export interface DnsResolveOptions {
  /** `host` or `host:port`. Default: the system's. */
  servers?: readonly string[];
}

/**
 * Resolves A and AAAA records through c-ares. `getaddrinfo` would block libuv's four threads, also used for files, with
 * slow or hostile names. It ignores /etc/hosts and search domains. Gives up after a few seconds, or when aborted.
 * @throws the resolver's error (`ENOTFOUND`, `ENODATA`, `ETIMEOUT`, ...) if neither family has an answer. If one query
 * failed, the name may still have addresses, so throws that failure.
 */
export function createDnsResolve(options: DnsResolveOptions = {}): Resolve {
  return (hostname, signal) =>
    queryDns({ ...options, signal }, async (resolver) => {
      const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      if (ipv4.status === 'rejected' && ipv6.status === 'rejected') {
        throw [ipv4.reason, ipv6.reason].find(({ code }) => !MISSING.has(code)) ?? ipv4.reason;
      }
      return [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    });
}

/** Codes of names without addresses. */
const MISSING: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA']);

/** Runs queries on a new resolver. Cancels them when aborted and times out after a few seconds. */
export async function queryDns<Answer>(
  { servers, signal }: DnsResolveOptions & { signal: AbortSignal | undefined },
  ask: (resolver: Resolver) => Promise<Answer>,
): Promise<Answer> {
  signal?.throwIfAborted();
  const resolver = new Resolver({ timeout: 2_000, tries: 2, maxTimeout: 3_000 });
  if (servers) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await ask(resolver);
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}
