import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

type DatagramListener = (datagram: Buffer, source: RemoteInfo) => void;

/**
 * Binds a UDP socket. Addresses given to `send` must be literal: the resolver is replaced by one that answers at
 * once, because Node's own would put every packet off by a turn of the event loop.
 * @throws the system's error (`EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`).
 */
export function bindUdp(host: string, port: number, onDatagram: DatagramListener): Promise<Socket> {
  const socket = createSocket({
    type: isIPv6(host) ? 'udp6' : 'udp4',
    lookup: (hostname, _options, callback) => callback(null, hostname, isIPv6(hostname) ? 6 : 4),
  });
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close();
      reject(error);
    });
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.removeAllListeners('error');
      // Errors of single sends (network unreachable) are what loss statistics are for.
      socket.on('error', () => {});
      socket.on('message', onDatagram);
      resolve(socket);
    });
  });
}

export function closeUdp(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.close(() => resolve());
  });
}

/**
 * The literal address of a peer, in the family of our socket.
 * @throws RangeError for an address of the other family or none at all; `ENOTFOUND` and other resolver errors.
 */
export async function resolveHost(host: string, bindHost: string): Promise<string> {
  const family = isIPv6(bindHost) ? 6 : 4;
  const ownFamily = isIP(host);
  if (ownFamily === family) return host;
  if (ownFamily !== 0 || host === '') throw new RangeError('no address of the family of the socket');
  const { address } = await lookup(host, { family });
  return address;
}

/** Whether a literal address is the one that we are bound to, or one of this machine when we are bound to all. */
export function isOwnAddress(address: string, bindHost: string): boolean {
  if (address === bindHost) return true;
  if (bindHost !== '0.0.0.0' && bindHost !== '::') return false;
  return Object.values(networkInterfaces()).some((entries) => entries?.some((entry) => entry.address === address));
}
