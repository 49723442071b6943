import { answerChallenge, isStale, realmOf } from './digest.ts';
import type { TrunkEndpoint } from './sip-gateway.ts';
import type { SrfResponse } from './srf-types.ts';

/** A stale nonce deserves another try, and so does a proxy in front of the carrier, but not for ever. */
const MOST_ANSWERS = 5;

/** The last challenge that one header answers. */
interface Answered {
  status: number;
  challenge: string;
  realm: string;
  uses: number;
}

/**
 * Answers the challenges that the requests of one method meet, without ever insisting on a refused password. A proxy (407)
 * and the server behind it (401) may both ask in one exchange: then each request carries both answers.
 */
export class LegCredentials {
  readonly #trunk: Pick<TrunkEndpoint, 'username' | 'password'>;
  readonly #method: string;
  /** By status. */
  readonly #answered = new Map<number, Answered>();
  /** Answers in this exchange, and the challenges that were answered in it. */
  #answers = 0;
  readonly #tried = new Set<string>();

  constructor(trunk: Pick<TrunkEndpoint, 'username' | 'password'>, method: string) {
    this.#trunk = trunk;
    this.#method = method;
  }

  /**
   * The headers that answer this 401 or 407, and the challenges before it; null when there is no password, or the trunk
   * has refused it already.
   * @param uri the request URI as it went out.
   */
  answer(response: SrfResponse, uri: string): Record<string, string> | null {
    const { status } = response;
    const challenge = response.get(status === 407 ? 'Proxy-Authenticate' : 'WWW-Authenticate');
    const realm = challenge === undefined ? null : realmOf(challenge);
    if (challenge === undefined || realm === null || this.#answers >= MOST_ANSWERS) return null;
    const key = `${status} ${realm}`;
    if (this.#tried.has(key) && !isStale(challenge)) return null;
    this.#tried.add(key);
    this.#answers++;
    this.#answered.set(status, { status, challenge, realm, uses: 0 });
    const headers = this.#headers(uri);
    return Object.keys(headers).length === 0 ? null : headers;
  }

  /** Begins another exchange: the headers that the challenges so far let expect. Empty when there were none. */
  again(uri: string): Record<string, string> {
    this.#answers = 0;
    this.#tried.clear();
    return this.#headers(uri);
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
      if (answer !== null) headers[answer.name] = answer.value;
    }
    return headers;
  }
}

export function isChallenge(sipStatus: number): boolean {
  return sipStatus === 401 || sipStatus === 407;
}

/**
 * The answer to a challenge goes to the very server that asked, since a name may stand for several that do not share
 * their nonces. Null when the server does not say who it was, and over TLS: an address would not prove a certificate, so
 * the answer goes where the request went.
 */
export function challengerOf(response: SrfResponse): string | null {
  const { source_address: host, source_port: port, protocol } = response;
  const isTcp = /^tcp$/i.test(protocol);
  if (!/^[0-9.]{7,15}$/.test(host) || !(isTcp || /^udp$/i.test(protocol))) return null;
  return `sip:${host}:${port}${isTcp ? ';transport=tcp' : ''}`;
}
