import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** Whether a socket can be bound to the address: it belongs to an interface of this machine. */
export function isOwnAddress(host: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host));
}

/**
 * Whether a peer at a public address names one that only its own network reaches, as software behind NAT does. Sent from
 * here, a packet would reach a stranger in our network.
 */
export function isInsideOf(peer: string, named: string): boolean {
  return rangeOf(peer) === 'unicast' && INNER_RANGES.has(rangeOf(named));
}

/** What one subscriber usually has: an IPv4 address, or a whole IPv6 /64. What is no address is returned as it is. */
export function networkOf(host: string): string {
  if (!ipaddr.isValid(host)) return host;
  const address = ipaddr.process(host);
  return address instanceof ipaddr.IPv6
    ? address.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')
    : address.toString();
}

/** As `ipaddr.js` names it; that of the IPv4 address inside for a mapped one; `name` for what is no address. */
export function rangeOf(host: string): string {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : 'name';
}

const INNER_RANGES: ReadonlySet<string> = new Set([
  ...['private', 'carrierGradeNat', 'linkLocal', 'loopback', 'uniqueLocal', 'unspecified'],
]);
