/**
 * What every response tells browsers: nothing here is to be run, framed, guessed at or kept. The pages of the API's
 * documentation are the exception, as they have to load their own files.
 */
export function securityHeaders({ isHttps, path }: { isHttps: boolean; path: string }): Record<string, string> {
  const isDocs = path === '/docs' || path.startsWith('/docs/');
  return {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': isDocs ? DOCS_POLICY : API_POLICY,
    'cross-origin-resource-policy': 'same-origin',
    // Calls, recordings and credentials: nothing here is for a cache.
    'cache-control': 'no-store',
    // Over plain http it would be ignored (RFC 6797 §8.1), and the host may serve nothing else.
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}

const API_POLICY = "default-src 'none'; frame-ancestors 'none'";
/** Swagger UI sets styles from its scripts and has its pictures in data URLs. */
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
