/**
 * Headers of every response that forbid browsers to run, frame, sniff or cache it. The documentation pages are the
 * exception, because they load their own files.
 */
export function securityHeaders({ isHttps, path }: { isHttps: boolean; path: string }): Record<string, string> {
  const isDocs = path === '/docs' || path.startsWith('/docs/');
  return {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': isDocs ? DOCS_POLICY : API_POLICY,
    'cross-origin-resource-policy': 'same-origin',
    // Responses contain calls, recordings and credentials, so they must not be cached.
    'cache-control': 'no-store',
    // Ignored over plain http (RFC 6797 §8.1), and the host may not serve https at all.
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}

const API_POLICY = "default-src 'none'; frame-ancestors 'none'";
/** Swagger UI sets styles from scripts and embeds images as data URLs. */
const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
