import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';

/** What a proxy claims in X-Forwarded-For need not be an address. */
export function addressOf(request: FastifyRequest): string {
  return isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? 'unknown') : request.ip;
}

/**
 * The same of an upgrade, which never becomes a request of the framework: the last address of the way here that is no
 * trusted proxy.
 */
export function addressOfUpgrade({ socket, headers }: IncomingMessage, trustedProxies: readonly string[]): string {
  const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  const own = socket.remoteAddress ?? 'unknown';
  const way = [own, ...forwarded.map((address) => address.trim()).reverse()];
  const client = way.find((address) => !isTrusted(address, trustedProxies)) ?? way.at(-1)!;
  return isIP(client) === 0 ? own : client;
}

function isTrusted(address: string, trustedProxies: readonly string[]): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  const kind = parsed.range();
  return trustedProxies.some((trusted) => {
    if (trusted === 'loopback') return kind === 'loopback';
    if (trusted === 'uniquelocal') return kind === 'private' || kind === 'uniqueLocal';
    if (!trusted.includes('/')) return ipaddr.process(trusted).toString() === parsed.toString();
    const [network, bits] = ipaddr.parseCIDR(trusted);
    return network.kind() === parsed.kind() && parsed.match(network, bits);
  });
}
