import { createHash, randomBytes } from 'node:crypto';

/**
 * Answers digest challenges (RFC 3261 §22, RFC 7616, RFC 8760). drachtio-srf's own code knows only MD5, and hashes a
 * placeholder instead of the URI inside dialogs.
 */
export interface DigestRequest {
  /** 401 or 407. */
  status: number;
  /** WWW-Authenticate or Proxy-Authenticate, possibly with several challenges joined by commas. */
  challenge: string;
  method: string;
  /** The request URI as sent. */
  uri: string;
  username: string;
  password: string;
  /** Times the nonce was used, including this request. Default 1. */
  nonceCount?: number;
}

/** Header that answers the first challenge with a known algorithm (senders put the best first); null without one. */
export function answerChallenge(request: DigestRequest): { name: string; value: string } | null {
  const challenge = readChallenges(request.challenge).find(isAnswerable);
  if (challenge === undefined) return null;
  return {
    name: request.status === 407 ? 'Proxy-Authorization' : 'Authorization',
    value: credentialsFor(request, challenge),
  };
}

/** Realm and nonce of the challenge that `answerChallenge` answers. Null if none can be answered. */
export function answerableOf(challenge: string): { realm: string; nonce: string } | null {
  const answerable = readChallenges(challenge).find(isAnswerable);
  return answerable === undefined ? null : { realm: answerable.get('realm') ?? '', nonce: answerable.get('nonce')! };
}

/** Whether only the nonce was too old, so the same password may be retried. */
export function isStale(challenge: string): boolean {
  return readChallenges(challenge).some((parameters) => parameters.get('stale')?.toLowerCase() === 'true');
}

export type Challenge = ReadonlyMap<string, string>;

const HASH_OF_ALGORITHM: Readonly<Record<string, string>> = { MD5: 'md5', 'SHA-256': 'sha256' };

function isAnswerable(challenge: Challenge): boolean {
  const { name } = algorithmOf(challenge);
  const qop = challenge.get('qop');
  return HASH_OF_ALGORITHM[name] !== undefined && challenge.has('nonce') && (qop === undefined || offersAuth(qop));
}

export function algorithmOf(challenge: Challenge): { name: string; written: string; isSession: boolean } {
  const written = challenge.get('algorithm') ?? 'MD5';
  const isSession = /-sess$/i.test(written);
  return { name: written.replace(/-sess$/i, '').toUpperCase(), written, isSession };
}

function offersAuth(qop: string): boolean {
  return qop.split(',').some((option) => option.trim().toLowerCase() === 'auth');
}

function credentialsFor(request: DigestRequest, challenge: Challenge): string {
  const { name, written, isSession } = algorithmOf(challenge);
  const realm = challenge.get('realm') ?? '';
  const nonce = challenge.get('nonce')!;
  const cnonce = randomBytes(8).toString('hex');
  const nonceCount = (request.nonceCount ?? 1).toString(16).padStart(8, '0');
  const hasQop = challenge.has('qop');
  const { username, password, method, uri } = request;
  const response = digestResponse({
    ...{ algorithm: name, isSession, username, password, realm, method, uri, nonce, cnonce },
    nonceCount: hasQop ? nonceCount : null,
  });

  const parts = [
    `username="${quotable(username)}"`,
    `realm="${realm}"`,
    `nonce="${nonce}"`,
    `uri="${quotable(uri)}"`,
    `response="${response}"`,
    `algorithm=${written}`,
  ];
  if (hasQop) parts.push('qop=auth', `nc=${nonceCount}`);
  if (hasQop || isSession) parts.push(`cnonce="${cnonce}"`);
  if (challenge.has('opaque')) parts.push(`opaque="${challenge.get('opaque')}"`);
  return `Digest ${parts.join(', ')}`;
}

export interface DigestInput {
  /** `MD5` or `SHA-256`. */
  algorithm: string;
  /** Whether the algorithm has the suffix `-sess`. */
  isSession: boolean;
  username: string;
  password: string;
  realm: string;
  method: string;
  uri: string;
  nonce: string;
  cnonce: string;
  /** Eight hexadecimal digits. Null without `qop`, as in RFC 2069. */
  nonceCount: string | null;
}

/** The `response` parameter in lower-case hexadecimal (RFC 7616 §3.4.1), with `qop=auth`. */
export function digestResponse(input: DigestInput): string {
  const { realm, nonce, cnonce, nonceCount } = input;
  const hash = (...parts: string[]) =>
    createHash(HASH_OF_ALGORITHM[input.algorithm]!).update(parts.join(':')).digest('hex');
  const user = hash(input.username, realm, input.password);
  const secret = input.isSession ? hash(user, nonce, cnonce) : user;
  const what = hash(input.method, input.uri);
  return nonceCount === null ? hash(secret, nonce, what) : hash(secret, nonce, nonceCount, cnonce, 'auth', what);
}

/** Escapes for a quoted string (RFC 3261 §25.1), so that the text can end neither it nor the header. */
function quotable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is taken out
  return text.replace(/[\u0000-\u001f\u007f]/g, '').replace(/["\\]/g, '\\$&');
}

/** Parses challenges or credentials. Quoted values keep their escapes, because they are returned unchanged. */
export function readChallenges(text: string): Challenge[] {
  const challenges: Map<string, string>[] = [];
  const known = text.slice(0, 8192);
  let scheme = '';
  for (const match of known.matchAll(SCHEME_OR_PARAMETER)) {
    const [whole, name = '', value, quoted, token] = match;
    if (value !== undefined) {
      if (scheme === 'digest') challenges.at(-1)?.set(name.toLowerCase(), quoted ?? token ?? '');
    } else if (/\s/.test(known[match.index + whole.length] ?? '')) {
      scheme = name.toLowerCase();
      if (scheme === 'digest') challenges.push(new Map());
    }
  }
  return challenges;
}

/** A word with an optional value. Parsing takes linear time. */
const SCHEME_OR_PARAMETER = /([a-z][\w-]*)(\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/gi;
