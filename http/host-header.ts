import type { IncomingMessage } from 'node:http';

/**
 * Checks for exactly one usable Host header (RFC 9112 §3.2). With two, a proxy and a server might use different ones.
 */
export function hasOneHost({ httpVersion, rawHeaders }: Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>): boolean {
  const hosts: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === 'host') hosts.push(rawHeaders[at + 1] ?? '');
  }
  if (hosts.length === 0) return httpVersion === '1.0';
  return hosts.length === 1 && /^[^\s,/?#@]*$/.test(hosts[0] ?? '');
}
