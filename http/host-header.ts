import type { IncomingMessage } from 'node:http';

/**
 * HTTP/1.1 requires exactly one Host header with a usable value (RFC 9112 §3.2). A proxy and a server that choose
 * different ones of two would not agree on who is asked.
 */
export function hasOneHost({ httpVersion, rawHeaders }: Pick<IncomingMessage, 'httpVersion' | 'rawHeaders'>): boolean {
  const hosts: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === 'host') hosts.push(rawHeaders[at + 1] ?? '');
  }
  if (hosts.length === 0) return httpVersion === '1.0';
  return hosts.length === 1 && /^[^\s,/?#@]*$/.test(hosts[0] ?? '');
}
