import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** What a proxy claims in X-Forwarded-For need not be an address. */
export function addressOf(request: FastifyRequest): string {
  return isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? 'unknown') : request.ip;
}
