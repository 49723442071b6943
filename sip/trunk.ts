import { SipError } from './sip-error.ts';
import type { TrunkEndpoint } from './sip-gateway.ts';

/** A trunk's address and the URIs made from it. */

export interface TrunkAddress {
  /** Name, IPv4 address or bracketed IPv6 address. */
  host: string;
  /** null: 5060, or what DNS says (RFC 3263). */
  port: number | null;
}

/**
 * Reads `sip:host[:port][;parameters]`; a user part is refused because the called number takes its place.
 * @throws SipError `trunk.bad_uri`
 */
export function readTrunkUri(sipUri: string): TrunkAddress {
  const match = /^sip:(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(\d{1,5}))?(?:;[\w;=.~-]*)?$/i.exec(sipUri);
  const port = match?.[2] === undefined ? null : Number(match[2]);
  if (match === null || (port !== null && (port < 1 || port > 65_535))) {
    throw new SipError('trunk.bad_uri', 'a trunk is written sip:host or sip:host:port');
  }
  return { host: match[1]!, port };
}

/** The request URI of OPTIONS, and without a number the next hop of every request. */
export function trunkUri(trunk: Pick<TrunkEndpoint, 'sipUri' | 'transport'>): string {
  const { host, port } = readTrunkUri(trunk.sipUri);
  return `sip:${host}${port === null ? '' : `:${port}`}${trunk.transport === 'tcp' ? ';transport=tcp' : ''}`;
}

/**
 * The request URI of an INVITE: the called number at the trunk.
 * @throws SipError `trunk.bad_uri`, `number.malformed`
 */
export function calledUri(trunk: Pick<TrunkEndpoint, 'sipUri' | 'transport'>, calledNumber: string): string {
  return trunkUri(trunk).replace('sip:', `sip:${dialable(calledNumber)}@`);
}

/**
 * A number fit for the user part of a URI, so that no number can add a header or a parameter to a request.
 * @throws SipError `number.malformed`
 */
export function dialable(number: string): string {
  if (!/^\+?[0-9]{1,20}$/.test(number)) throw new SipError('number.malformed', 'the number is not +E.164');
  return number;
}
