import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * Resolves the address of a peer in our socket's family.
 * @throws RangeError for an address of the other family or an empty one; `ENOTFOUND` and other resolver errors.
 */
export async function resolveHost(host: string, bindHost: string): Promise<string> {
  const family = isIPv6(bindHost) ? 6 : 4;
  const ownFamily = isIP(host);
  if (ownFamily === family) return host;
  if (ownFamily !== 0 || host === '') throw new RangeError('no address of the family of the socket');
  const { address } = await lookup(host, { family });
  return address;
}

/** Whether a literal address is our bound one, or any of this machine if we are bound to all. */
export function isOwnAddress(address: string, bindHost: string): boolean {
  if (address === bindHost) return true;
  if (bindHost !== '0.0.0.0' && bindHost !== '::') return false;
  return Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => entry.address === address));
}
