import type { IncomingMessage } from 'node:http';
import { TandemError } from '../machines/errors.ts';
import { isWithin } from './client-address.ts';
import type { HttpContext } from './context.ts';

type OwnAddress = Pick<HttpContext, 'publicUrl' | 'trustedProxies'>;

/**
 * Requires that a request with a session cookie comes from a page of this server, because browsers send cookies with
 * other sites' requests too. Checks `Sec-Fetch-Site` (Fetch Metadata) or, over plain http and in some WebSocket
 * handshakes, `Origin`. A safe request may also come from the address bar or a link, or have neither header.
 *
 * A WebSocket handshake is a GET request but not safe, because CORS does not protect its data.
 * @throws TandemError CROSS_ORIGIN_REQUEST
 */
export function requireSameOrigin(request: IncomingMessage, own: OwnAddress & { isSafe: boolean }): void {
  if (isSameOrigin(request, own)) return;
  throw new TandemError(
    'CROSS_ORIGIN_REQUEST',
    'A request with a session cookie must come from a page of this server. Elsewhere, send Authorization: Bearer with a session token or an API key.',
  );
}

/** Whether the client uses https: directly, according to a trusted proxy, or by the public URL. */
export function isOverHttps(request: IncomingMessage, { publicUrl, trustedProxies }: OwnAddress): boolean {
  if (publicUrl?.startsWith('https:')) return true;
  const isEncrypted = (request.socket as { encrypted?: boolean }).encrypted === true;
  return isEncrypted || forwarded(request, { name: 'x-forwarded-proto', trustedProxies }) === 'https';
}

function isSameOrigin(request: IncomingMessage, { isSafe, ...own }: OwnAddress & { isSafe: boolean }): boolean {
  const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
  if (site === 'same-origin') return true;
  if (site !== undefined) return isSafe && (site === 'none' || mode === 'navigate');
  if (origin === undefined) return isSafe;
  return isOwnOrigin(origin, request, own);
}

/** Sandboxed pages send `Origin: null`, which is not a URL. */
function isOwnOrigin(origin: string, request: IncomingMessage, own: OwnAddress): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  if (protocol !== 'https:' && protocol !== 'http:') return false;
  // Anyone on the network can forge a page over plain http.
  if (protocol === 'http:' && isOverHttps(request, own)) return false;
  const hosts = [
    forwarded(request, { name: 'x-forwarded-host', ...own }) ?? request.headers.host,
    own.publicUrl === null ? undefined : new URL(own.publicUrl).host,
  ];
  return hosts.some((each) => each !== undefined && hostOf(each, protocol) === host);
}

/** Omits the default port, as `Origin` does. Null if it is not a host. */
function hostOf(host: string, protocol: string): string | null {
  const url = `${protocol}//${host}`;
  return URL.canParse(url) ? new URL(url).host : null;
}

/** Returns the value added by the nearest proxy, if trusted. Works like Fastify, which does not see upgrades. */
function forwarded(
  { headers, socket }: IncomingMessage,
  { name, trustedProxies }: { name: string; trustedProxies: readonly string[] },
): string | undefined {
  const value = [headers[name] ?? []].flat().join(',');
  if (value === '' || !isWithin(socket.remoteAddress ?? '', trustedProxies)) return undefined;
  return value.split(',').at(-1)?.trim();
}
