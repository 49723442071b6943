/**
 * Headers of every response that forbid browsers to run, frame, sniff or cache it. The documentation pages and the
 * console may load their own files.
 */
export function securityHeaders({
  isHttps,
  path,
  objectOrigin = null,
}: {
  isHttps: boolean;
  path: string;
  objectOrigin?: string | null;
}): Record<string, string> {
  const isDocs = path === '/docs' || path.startsWith('/docs/');
  const isConsole = path.startsWith('/console/');
  return {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': isConsole ? consolePolicy({ objectOrigin }) : isDocs ? DOCS_POLICY : API_POLICY,
    // Browser phones need the microphone.
    ...(isConsole ? { 'permissions-policy': 'microphone=(self), camera=(), geolocation=()' } : {}),
    'cross-origin-resource-policy': 'same-origin',
    // Responses contain calls, recordings and credentials.
    'cache-control': 'no-store',
    // Ignored over plain http (RFC 6797 §8.1), and the host may not serve https.
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
}

/**
 * Content security policy of the console: it loads only its own files and runs no inline script. React and Mantine set
 * style attributes; style elements need the response's nonce. Browsers count WebSockets of this host as 'self' (CSP
 * Level 3).
 * @param objectOrigin origin of presigned recording URLs, with an S3 store
 */
export function consolePolicy({ nonce, objectOrigin }: { nonce?: string; objectOrigin: string | null }): string {
  const andObjects = objectOrigin === null ? '' : ` ${objectOrigin}`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self'${nonce === undefined ? '' : ` 'nonce-${nonce}'`}`,
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src 'self'${andObjects}`,
    `media-src 'self' blob:${andObjects}`,
    "worker-src 'self' blob:",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
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
