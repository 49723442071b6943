import { networkInterfaces } from 'node:os';

/** Whether a socket can be bound to the address: it belongs to an interface of this machine. */
export function isOwnAddress(host: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host));
}
