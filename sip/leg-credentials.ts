import { answerableOf, answerChallenge, isStale } from './digest.ts';
import type { TrunkEndpoint } from './sip-gateway.ts';
import type { SrfResponse } from './srf-types.ts';

/** Allows a stale nonce and a proxy in front of the carrier. */
const MOST_ANSWERS = 5;

/** The last challenge of one server. */
interface Answered {
  status: number;
  challenge: string;
  nonce: string;
  /** Requests with this nonce. */
  uses: number;
}

/**
 * Answers the challenges to requests of one method, without repeating a rejected password. Several proxies (407) and the
 * server behind them (401) may challenge one exchange; then each request carries all answers.
 */
export class LegCredentials {
  readonly #trunk: Pick<TrunkEndpoint, 'username' | 'password'>;
  readonly #method: string;
  /** By status, and for proxies also realm. */
  readonly #answered = new Map<string, Answered>();
  /** Number of answers in this exchange, and the answered challenges. */
  #answers = 0;
  readonly #tried = new Set<string>();

  constructor(trunk: Pick<TrunkEndpoint, 'username' | 'password'>, method: string) {
    this.#trunk = trunk;
    this.#method = method;
  }

  /**
   * Headers that answer this 401 or 407 and earlier challenges; null without a password, or if the trunk rejected it.
   * @param uri the request URI as sent.
   */
  answer(response: SrfResponse, uri: string): Record<string, string> | null {
    const { status } = response;
    const challenge = response.get(status === 407 ? 'Proxy-Authenticate' : 'WWW-Authenticate');
    const answerable = challenge === undefined ? null : answerableOf(challenge);
    if (challenge === undefined || answerable === null || this.#answers >= MOST_ANSWERS) return null;
    const { realm, nonce } = answerable;
    const key = `${status} ${realm}`;
    if (this.#tried.has(key) && !isStale(challenge)) return null;
    this.#tried.add(key);
    this.#answers++;
    const server = status === 407 ? key : '401';
    const before = this.#answered.get(server);
    this.#answered.delete(server);
    this.#answered.set(server, { status, challenge, nonce, uses: before?.nonce === nonce ? before.uses : 0 });
    const [oldest = ''] = this.#answered.keys();
    if (this.#answered.size > MOST_ANSWERS) this.#answered.delete(oldest);
    const headers = this.#headers(uri);
    return Object.keys(headers).length === 0 ? null : headers;
  }

  /** Starts another exchange, with headers for the earlier challenges; empty without any. */
  again(uri: string): Record<string, string> {
    this.#answers = 0;
    this.#tried.clear();
    return this.#headers(uri);
  }

  /** How this final status concerns the account of the trunk; null if it does not. */
  refusalBy(status: number): string | null {
    const { username, password } = this.#trunk;
    const hasAccount = username !== null && password !== null;
    const hasAnswered = hasAccount && this.#answered.size > 0;
    if (status === 403 && hasAnswered) return 'the carrier refused the username or password of the trunk, or this call';
    if (!isChallenge(status)) return null;
    if (hasAnswered) return 'the carrier refused the username or password of the trunk';
    return hasAccount
      ? 'the carrier requires an authentication that Tandem does not support'
      : 'the carrier requires a username and password, which the trunk does not have';
  }

  #headers(uri: string): Record<string, string> {
    const { username, password } = this.#trunk;
    if (username === null || password === null) return {};
    const headers: Record<string, string> = {};
    for (const answered of this.#answered.values()) {
      const { status, challenge } = answered;
      answered.uses++;
      const account = { method: this.#method, uri, username, password };
      const answer = answerChallenge({ status, challenge, nonceCount: answered.uses, ...account });
      if (answer === null) continue;
      const { name, value } = answer;
      // Several proxies need a header each (RFC 3261 §22.3); drachtio-srf writes the text of one as it is.
      headers[name] = headers[name] === undefined ? value : `${headers[name]}\r\n${name}: ${value}`;
    }
    return headers;
  }
}

export function isChallenge(sipStatus: number): boolean {
  return sipStatus === 401 || sipStatus === 407;
}

/**
 * URI of the server that challenged, for the answer, because a name may stand for several servers with separate nonces.
 * Null if it is unknown, and over TLS, where an address proves no certificate: then the answer goes to the original
 * destination.
 */
export function challengerOf(response: SrfResponse): string | null {
  const { source_address: host, source_port: port, protocol } = response;
  const isTcp = /^tcp$/i.test(protocol);
  if (!/^[0-9.]{7,15}$/.test(host) || !(isTcp || /^udp$/i.test(protocol))) return null;
  return `sip:${host}:${port}${isTcp ? ';transport=tcp' : ''}`;
}
