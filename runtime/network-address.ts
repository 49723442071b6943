import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** Whether a socket can bind to the address: it belongs to an interface of this machine. */
export function isOwnAddress(host: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host));
}

/**
 * Whether a peer at a public address names an address inside its own network, as software behind NAT does. A packet to
 * it would reach a stranger in our network.
 */
export function isInsideOf(peer: string, named: string): boolean {
  return rangeOf(peer) === 'unicast' && INNER_RANGES.has(rangeOf(named));
}

/** Network of one subscriber: an IPv4 address, or an IPv6 /64. Returns any other text unchanged. */
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

/** Range name of `ipaddr.js`; `name` for any other text. A mapped address counts as IPv4. */
export function rangeOf(host: string): string {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : 'name';
}

const INNER_RANGES: ReadonlySet<string> = new Set([
  ...['private', 'carrierGradeNat', 'linkLocal', 'loopback', 'uniqueLocal', 'unspecified'],
]);
