/**
 * Replaces secrets in a SIP message by asterisks: credentials, password proofs, passwords in URIs, media keys, and
 * digits in INFO, which may be a PIN. Bodies keep their length and Content-Length. `text` has one character per byte.
 * Takes linear time.
 */
export function maskMessage(text: string): string {
  const end = /\r?\n\r?\n/.exec(text);
  const bodyStart = end === null ? text.length : end.index + end[0].length;
  const [head, body] = [text.slice(0, bodyStart), text.slice(bodyStart)];
  return maskHead(head) + maskBody(DIGIT_TYPE.test(head) ? maskDigits(body) : body);
}

function maskHead(head: string): string {
  const masked = head.replace(
    CREDENTIALS,
    (_, name: string, value: string) => `${name} ${maskCredentials(name, value)}`,
  );
  return masked.replace(WORD, (word) => maskPasswords(word, () => '***'));
}

/** Keeps only parameters known to be harmless. Joins continuation lines. */
function maskCredentials(name: string, value: string): string {
  const scheme = /^\s*([A-Za-z][\w-]{0,31})(?=\s)/.exec(value)?.[1];
  // Authentication-Info has no scheme (RFC 7615).
  if (!/info\s*:$/i.test(name) && scheme?.toLowerCase() !== 'digest') return `${scheme ?? ''} ***`.trimStart();
  const parameters = Array.from(value.matchAll(PARAMETER), ([, key = '', content = '']) =>
    PUBLIC_PARAMETERS.has(key.toLowerCase()) ? `${key}=${content.replace(/[\r\n]+/g, ' ')}` : `${key}="***"`,
  );
  return `${scheme === undefined ? '' : `${scheme} `}${parameters.join(', ')}`;
}

/**
 * Keys of SDES (RFC 4568), MIKEY (RFC 4567), SDP (RFC 4566 §5.12) and ICE (RFC 8839); headers in a message/sip body.
 */
function maskBody(body: string): string {
  return body
    .replace(/(inline:[ \t]{0,8})([^\s|;]+)/gi, hideSecond)
    .replace(/^(a=key-mgmt:|a=ice-pwd:|k=)([^\r\n]+)/gim, hideSecond)
    .replace(CREDENTIALS, hideSecond)
    .replace(WORD, (word) => maskPasswords(word, (password) => '*'.repeat(password.length)));
}

/** `Signal=5` of application/dtmf-relay, or a bare digit of application/dtmf. */
function maskDigits(body: string): string {
  const isRelay = /^\s{0,8}(?:signal|duration)\s{0,8}=/i.test(body);
  return isRelay
    ? body.replace(/^(\s{0,8}signal\s{0,8}=)([^\r\n]+)/gim, hideSecond)
    : body.replace(/[0-9A-D*#]/gi, '*');
}

function hideSecond(_whole: string, kept: string, secret: string): string {
  return kept + secret.replace(/[^\r\n]/g, '*');
}

/** `sip:user:password@host` (RFC 3261 §19.1.1). */
function maskPasswords(word: string, mask: (password: string) => string): string {
  const parts = word.split('@');
  const last = parts.pop() ?? '';
  const masked = parts.map((part) => {
    const user = /sips?:/i.exec(part);
    const colon = user === null ? -1 : part.indexOf(':', user.index + user[0].length);
    return colon === -1 ? part : part.slice(0, colon + 1) + mask(part.slice(colon + 1));
  });
  return [...masked, last].join('@');
}

const CREDENTIALS =
  /^((?:proxy-)?(?:authorization|authentication-info)[ \t]{0,64}:)((?:[^\r\n]+|\r?\n[ \t]|\r(?!\n))*)/gim;
const DIGIT_TYPE = /^(?:content-type|c)[ \t]{0,64}:[ \t]{0,64}application\/(?:dtmf|vnd\.nortelnetworks\.digits)/im;
const PARAMETER = /([A-Za-z][\w-]{0,63})\s{0,64}=\s{0,64}("(?:[^"\\]|\\[\s\S])*(?:"|$)|[^\s,"]*)/g;
const WORD = /[^\s<>"]+/g;
/** Parameters of a digest that do not prove the password (RFC 7616 §3.4). */
const PUBLIC_PARAMETERS: ReadonlySet<string> = new Set([
  ...['username', 'realm', 'nonce', 'uri', 'algorithm', 'qop', 'nc', 'opaque', 'stale', 'nextnonce'],
]);
