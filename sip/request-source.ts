import ipaddr from 'ipaddr.js';
import { parseVia, SipParseError, splitList, withoutBrackets } from './message/index.ts';
import type { SrfReceivedRequest } from './srf-types.ts';

/** The used part of a request. */
type Sent = Pick<SrfReceivedRequest, 'get' | 'source_address' | 'source_port'>;

/**
 * Source of a request. For a request from a trusted proxy, it is the address that the proxy wrote into the sender's Via
 * (RFC 3261 §18.2.1, RFC 3581 §4), and so on along a chain of trusted proxies.
 */
export function sourceOf(request: Sent, trustedProxies: readonly string[]): { host: string; port: number } {
  let source = { host: request.source_address, port: request.source_port };
  if (trustedProxies.length === 0) return source;
  // The first Via belongs to the direct sender.
  const [, ...previous] = splitList(request.get('Via') ?? '');
  for (const text of previous) {
    const before = isAmong(source.host, trustedProxies) ? senderIn(text) : null;
    if (before === null) return source;
    source = before;
  }
  return source;
}

/** Null if the Via header is invalid, or its sender wrote a parameter that the proxy wrote too. */
function senderIn(text: string): { host: string; port: number } | null {
  const names = text.split(';').map((parameter) => parameter.split('=', 1)[0]!.trim().toLowerCase());
  const stamps = names.filter((name) => name === 'received' || name === 'rport');
  // kamailio replaces only the last of several.
  if (new Set(stamps).size < stamps.length) return null;
  try {
    const { host, port, params } = parseVia(text);
    return {
      host: withoutBrackets(params.get('received') ?? host),
      port: Number(params.get('rport') ?? port ?? DEFAULT_PORT),
    };
  } catch (error) {
    if (error instanceof SipParseError) return null;
    throw error;
  }
}

const DEFAULT_PORT = 5060;

function isAmong(host: string, networks: readonly string[]): boolean {
  if (!ipaddr.isValid(host)) return false;
  const address = ipaddr.process(host);
  return networks.some((text) => {
    const [network, bits] = text.includes('/') ? ipaddr.parseCIDR(text) : [ipaddr.process(text), null];
    if (network.kind() !== address.kind()) return false;
    return address.match(network, bits ?? (network.kind() === 'ipv4' ? 32 : 128));
  });
}
