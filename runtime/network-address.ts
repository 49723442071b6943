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

/** As `ipaddr.js` names it; that of the IPv4 address inside for a mapped one; `name` for what is no address. */
export function rangeOf(host: string): string {
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : 'name';
}

const INNER_RANGES: ReadonlySet<string> = new Set([
  ...['private', 'carrierGradeNat', 'linkLocal', 'loopback', 'uniqueLocal', 'unspecified'],
]);
