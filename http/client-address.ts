import type { IncomingHttpHeaders } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';

/** Falls back to the socket's address if X-Forwarded-For contains something else. */
export function addressOf(request: FastifyRequest): string {
  return isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? 'unknown') : request.ip;
}

/**
 * Returns the client address of an upgrade, which never becomes a Fastify request: the last address in X-Forwarded-For
 * that is not a trusted proxy.
 */
export function addressOfUpgrade(
  { socket, headers }: { socket: Pick<Socket, 'remoteAddress'>; headers: IncomingHttpHeaders },
  trustedProxies: readonly string[],
): string {
  const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  const own = socket.remoteAddress ?? 'unknown';
  const hops = [own, ...forwarded.map((address) => address.trim()).reverse()];
  const client = hops.find((address) => !isWithin(address, trustedProxies)) ?? hops.at(-1)!;
  return isIP(client) === 0 ? own : client;
}

/** @param networks addresses, networks, `loopback` and `uniquelocal` */
export function isWithin(address: string, networks: readonly string[]): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  const kind = parsed.range();
  return networks.some((one) => {
    if (one === 'loopback') return kind === 'loopback';
    if (one === 'uniquelocal') return kind === 'private' || kind === 'uniqueLocal';
    if (!one.includes('/')) return ipaddr.process(one).toString() === parsed.toString();
    const [network, bits] = ipaddr.parseCIDR(one);
    return network.kind() === parsed.kind() && parsed.match(network, bits);
  });
}
