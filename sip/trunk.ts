import { isIP } from 'node:net';
import { uriHost, withoutBrackets } from './message/index.ts';
import { SipError } from './sip-error.ts';
import type { TrunkEndpoint } from './sip-gateway.ts';

/** A trunk's address and the URIs made from it. */

export interface TrunkAddress {
  scheme: 'sip' | 'sips';
  /** Name, IPv4 address or bracketed IPv6 address. */
  host: string;
  /** The host without brackets if it is an IP address; null if it is a name. */
  address: string | null;
  /** null: 5060, over TLS 5061, or from DNS (RFC 3263). */
  port: number | null;
}

/**
 * Parses `sip:host[:port][;parameters]`, or `sips:`. Rejects a user part, because the called number takes its place.
 * @throws SipError `trunk.bad_uri`
 */
export function readTrunkUri(sipUri: string): TrunkAddress {
  const match = /^(sips?):(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}))?(?:;[\w;=.~-]*)?$/i.exec(
    sipUri,
  );
  const port = match?.[3] === undefined ? null : Number(match[3]);
  if (match === null || (port !== null && (port < 1 || port > 65_535))) {
    throw new SipError('trunk.bad_uri', 'a trunk is written sip:host or sip:host:port');
  }
  const host = match[2]!;
  const bare = withoutBrackets(host);
  const scheme = match[1]!.toLowerCase() === 'sips' ? 'sips' : 'sip';
  return { scheme, host, address: isIP(bare) === 0 ? null : bare, port };
}

/** The request URI of OPTIONS; without a number, the next hop of every request. */
export function trunkUri({ sipUri, transport }: Pick<TrunkEndpoint, 'sipUri' | 'transport'>): string {
  const { scheme, host, port } = readTrunkUri(sipUri);
  // `sips` implies TLS (RFC 3261 §26.2.2).
  const named = scheme === 'sips' || transport === 'udp' ? '' : `;transport=${transport}`;
  return `${scheme}:${host}${port === null ? '' : `:${port}`}${named}`;
}

/**
 * The next hop of a trunk at a known address, as a request option; empty if the request URI decides. The request URI
 * keeps the name, by which a carrier may identify its customers.
 */
export function nextHopOf({ sipUri, transport, nextHop }: Pick<TrunkEndpoint, 'sipUri' | 'transport' | 'nextHop'>): {
  proxy?: string;
} {
  if (!nextHop) return {};
  const { scheme, host, address, port } = readTrunkUri(sipUri);
  if (address !== null) return {};
  const hop = uriHost(nextHop.address);
  const at = nextHop.port ?? port;
  const atPort = at === null ? '' : `:${at}`;
  // The certificate must prove the name of the trunk, not the address or an SRV target (RFC 5922 §4).
  if (scheme === 'sips' || transport === 'tls') {
    return { proxy: `${trunkUri({ sipUri: `${scheme}:${host}${atPort}`, transport })};maddr=${hop}` };
  }
  return { proxy: trunkUri({ sipUri: `sip:${hop}${atPort}`, transport }) };
}

/**
 * The request URI of an INVITE: the called number at the trunk.
 * @throws SipError `trunk.bad_uri`, `number.malformed`
 */
export function calledUri(trunk: Pick<TrunkEndpoint, 'sipUri' | 'transport'>, calledNumber: string): string {
  return trunkUri(trunk).replace(/^(sips?):/, `$1:${dialable(calledNumber)}@`);
}

/**
 * Validates a number for the user part of a URI, so that it cannot add a header or a parameter.
 * @throws SipError `number.malformed`
 */
export function dialable(number: string): string {
  if (!/^\+?[0-9]{1,20}$/.test(number)) throw new SipError('number.malformed', 'the number is not +E.164');
  return number;
}
