/** Lower-case long name of a header, with compact forms expanded, for comparison. */
export function headerKey(name: string): string {
  const lower = name.toLowerCase();
  return lower.length === 1 ? (COMPACT_FORMS.get(lower) ?? lower) : lower;
}

/**
 * Spelling of a header on the wire. Known names use their RFC spelling. Unknown names keep their capitals, or are
 * capitalised word by word if they are in lower case, as drachtio-srf sends all names.
 */
export function canonicalHeaderName(name: string): string {
  const key = headerKey(name);
  const irregular = IRREGULAR_NAMES.get(key);
  if (irregular !== undefined) return irregular;
  if (key.length === name.length && name !== key && !KNOWN_NAMES.has(key)) return name;
  let written = '';
  let wordStart = true;
  for (const character of key) {
    written += wordStart ? character.toUpperCase() : character;
    wordStart = character === '-';
  }
  return written;
}

/** RFC 3261 §7.3.3 and the registrations of its extensions (IANA "SIP Header Fields"). */
const COMPACT_FORMS: ReadonlyMap<string, string> = new Map([
  ['a', 'accept-contact'],
  ['b', 'referred-by'],
  ['c', 'content-type'],
  ['d', 'request-disposition'],
  ['e', 'content-encoding'],
  ['f', 'from'],
  ['i', 'call-id'],
  ['j', 'reject-contact'],
  ['k', 'supported'],
  ['l', 'content-length'],
  ['m', 'contact'],
  ['n', 'identity-info'],
  ['o', 'event'],
  ['r', 'refer-to'],
  ['s', 'subject'],
  ['t', 'to'],
  ['u', 'allow-events'],
  ['v', 'via'],
  ['x', 'session-expires'],
  ['y', 'identity'],
]);

const IRREGULAR_NAMES: ReadonlyMap<string, string> = new Map([
  ['call-id', 'Call-ID'],
  ['cseq', 'CSeq'],
  ['mime-version', 'MIME-Version'],
  ['rack', 'RAck'],
  ['rseq', 'RSeq'],
  ['sip-etag', 'SIP-ETag'],
  ['sip-if-match', 'SIP-If-Match'],
  ['www-authenticate', 'WWW-Authenticate'],
]);

const KNOWN_NAMES: ReadonlySet<string> = new Set([
  ...COMPACT_FORMS.values(),
  'accept',
  'accept-encoding',
  'accept-language',
  'alert-info',
  'allow',
  'authentication-info',
  'authorization',
  'call-info',
  'content-disposition',
  'content-language',
  'date',
  'error-info',
  'expires',
  'in-reply-to',
  'max-forwards',
  'min-expires',
  'min-se',
  'organization',
  'p-asserted-identity',
  'path',
  'priority',
  'privacy',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-require',
  'reason',
  'record-route',
  'replaces',
  'reply-to',
  'require',
  'retry-after',
  'route',
  'server',
  'service-route',
  'subscription-state',
  'timestamp',
  'unsupported',
  'user-agent',
  'warning',
]);
