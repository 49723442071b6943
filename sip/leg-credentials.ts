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
    const challenge = challengeOf(response);
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

  /** How this final response concerns the account of the trunk; null if it does not. */
  refusalBy(response: SrfResponse): string | null {
    const { status } = response;
    const { username, password } = this.#trunk;
    const hasAccount = username !== null && password !== null;
    if (status === 403 && hasAccount && this.#answered.size > 0)
      return 'the carrier refused the username or password of the trunk, or this call';
    if (!isChallenge(status)) return null;
    if (!hasAccount) return 'the carrier requires a username and password, which the trunk does not have';
    const challenge = challengeOf(response);
    const isSupported = challenge === undefined ? this.#answered.size > 0 : answerableOf(challenge) !== null;
    if (!isSupported) return 'the carrier requires an authentication that Tandem does not support';
    // A stale nonce does not mean a wrong password (RFC 7616 §3.3).
    if (challenge !== undefined && isStale(challenge)) return 'the carrier rejected each of its nonces as stale';
    return 'the carrier refused the username or password of the trunk';
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

function challengeOf(response: SrfResponse): string | undefined {
  return response.get(response.status === 407 ? 'Proxy-Authenticate' : 'WWW-Authenticate');
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
