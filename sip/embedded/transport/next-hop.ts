import { lookup } from 'node:dns';
import { isIP, isIPv6 } from 'node:net';
import { parseUri, type SipUri, withoutBrackets } from '../../message/index.ts';
import { defaultPort, type Remote, type TransportName } from './remote.ts';

/** Next hop of a request, before its name is resolved. */
export interface NextHop {
  transport: TransportName;
  /** Name or address, without brackets. */
  host: string;
  /** Name in the URI, which a certificate must prove (RFC 5922 §4). It differs from `host` only with `maddr`. */
  name: string;
  port: number;
}

/**
 * @returns null if the URI's transport is not enabled.
 * @throws SipParseError if it is not a SIP URI.
 */
export function nextHopOf(uriText: string, enabled: readonly TransportName[]): NextHop | null {
  const uri = parseUri(uriText);
  const transport = transportOf(uri, enabled);
  if (transport === null || !enabled.includes(transport)) return null;
  const name = withoutBrackets(uri.host);
  const host = withoutBrackets(uri.params.get('maddr') ?? uri.host);
  return { transport, host, name, port: uri.port ?? defaultPort(transport) };
}

export type Resolver = (hop: NextHop, done: (remote: Remote | null) => void) => void;

/**
 * Resolves names with the system's resolver to an address of our own family. Concurrent requests for a name share one
 * lookup and keep their order, so that an ACK stays ahead of the BYE that follows it.
 * @param localHost address that the server is bound to
 */
export function createResolver(localHost: string): Resolver {
  const family = isIPv6(localHost) ? 6 : 4;
  const waiting = new Map<string, ((address: string | null) => void)[]>();
  return (hop, done) => {
    const finish = (address: string | null): void => done(address === null ? null : remoteAt(hop, address));
    if (isIP(hop.host) !== 0) {
      finish(hop.host);
      return;
    }
    const queue = waiting.get(hop.host);
    if (queue) {
      queue.push(finish);
      return;
    }
    waiting.set(hop.host, [finish]);
    lookup(hop.host, { family }, (error, address) => {
      const queued = waiting.get(hop.host) ?? [];
      waiting.delete(hop.host);
      for (const each of queued) each(error ? null : address);
    });
  };
}

export function remoteAt(hop: NextHop, address: string): Remote {
  const remote: Remote = { transport: hop.transport, host: address, port: hop.port, connectionId: null };
  return hop.transport === 'tls' ? { ...remote, name: hop.name } : remote;
}

function transportOf(uri: SipUri, enabled: readonly TransportName[]): TransportName | null {
  const wanted = uri.params.get('transport')?.toLowerCase();
  // `sips` means TLS over the named stream transport (RFC 3261 §26.2.2).
  if (uri.scheme === 'sips') return wanted === undefined || wanted === 'tcp' || wanted === 'tls' ? 'tls' : null;
  if (wanted === undefined) return enabled.includes('udp') ? 'udp' : 'tcp';
  return wanted === 'udp' || wanted === 'tcp' || wanted === 'tls' ? wanted : null;
}
