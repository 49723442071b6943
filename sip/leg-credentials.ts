import { answerChallenge, isStale } from './digest.ts';
import type { TrunkEndpoint } from './sip-gateway.ts';
import type { SrfResponse } from './srf-types.ts';

/** A stale nonce deserves another try, but not for ever. */
const MOST_ANSWERS = 3;

/** Answers the challenges that the requests of one method meet, without ever insisting on a refused password. */
export class LegCredentials {
  readonly #trunk: Pick<TrunkEndpoint, 'username' | 'password'>;
  readonly #method: string;
  #answered = 0;

  constructor(trunk: Pick<TrunkEndpoint, 'username' | 'password'>, method: string) {
    this.#trunk = trunk;
    this.#method = method;
  }

  /**
   * The header that answers this 401 or 407; null when there is no password, or the trunk has refused it already.
   * @param uri the request URI as it went out.
   */
  answer(response: SrfResponse, uri: string): { name: string; value: string } | null {
    const { username, password } = this.#trunk;
    const challenge = response.get(response.status === 407 ? 'Proxy-Authenticate' : 'WWW-Authenticate');
    if (username === null || password === null || challenge === undefined) return null;
    if (this.#answered > 0 && !(isStale(challenge) && this.#answered < MOST_ANSWERS)) return null;
    this.#answered++;
    return answerChallenge({ status: response.status, challenge, method: this.#method, uri, username, password });
  }
}

export function isChallenge(sipStatus: number): boolean {
  return sipStatus === 401 || sipStatus === 407;
}

/**
 * The answer to a challenge goes to the very server that asked, since a name may stand for several that do not share
 * their nonces. Null when the server does not say who it was.
 */
export function challengerOf(response: SrfResponse): string | null {
  const { source_address: host, source_port: port, protocol } = response;
  if (!/^[0-9.]{7,15}$/.test(host)) return null;
  return `sip:${host}:${port}${/tcp/i.test(protocol) ? ';transport=tcp' : ''}`;
}
