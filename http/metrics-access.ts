import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { addressOf, isWithin } from './client-address.ts';

export interface MetricsAccess {
  /** Null: no token is accepted. */
  token: string | null;
  /** Networks whose clients need no token. */
  allowCidrs: readonly string[];
}

export const LOOPBACK_ONLY: MetricsAccess = { token: null, allowCidrs: ['127.0.0.0/8', '::1/128'] };

/** Whether a client may read the metrics, by network or token. */
export function mayReadMetrics(request: FastifyRequest, { token, allowCidrs }: MetricsAccess): boolean {
  if (isWithin(addressOf(request), allowCidrs)) return true;
  const given = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  return token !== null && given !== undefined && timingSafeEqual(digestOf(given), digestOf(token));
}

/** Gives both compared values the same length. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
