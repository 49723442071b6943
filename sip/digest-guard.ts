import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { networkOf } from '../runtime/network-address.ts';
import { algorithmOf, digestResponse, readChallenges } from './digest.ts';
import { userOfUri } from './message/index.ts';

export interface DigestAttempt {
  authorization: string | undefined;
  method: string;
  /** User part of the request URI, which the digest must cover. */
  user: string;
  /** Address of the sender. */
  source: string;
  /** Password of a user name; null for an unknown one. */
  passwordOf: (username: string) => string | null;
}

/**
 * `challenge`: no usable answer to a challenge. `stale`: retry the same password with a new nonce. `refused`: wrong
 * password, unknown user name, or too many wrong passwords.
 */
export type DigestVerdict = 'accepted' | 'challenge' | 'stale' | 'refused';

export interface DigestGuardOptions {
  /** Milliseconds since the Unix epoch. Default: the system's. */
  now?: () => number;
}

const REALM = 'tandem';
/** baresip 1.0 and other phones fail if SHA-256 (RFC 8760) is offered too. */
const ALGORITHM = 'MD5';
const NONCE_LASTS_MS = 60_000;
/** A nonce is used once, so this limits the calls within its lifetime. */
const MOST_USED_NONCES = 100_000;
const MOST_WRONG = { points: 10, duration: 60 };

/**
 * Challenges requests and checks the answers (RFC 3261 §22, RFC 7616) with MD5 and `qop=auth`. Each nonce is valid
 * once, and only from the challenged address. So an overheard answer is worthless, and a forged source address locks no
 * one out. Ten wrong answers within a minute block an address, or IPv6 /64, for a minute.
 */
export class DigestGuard {
  readonly #now: () => number;
  readonly #key = randomBytes(32);
  /** Expiry of each used nonce, oldest first. */
  readonly #used = new Map<string, number>();
  readonly #wrong = new RateLimiterMemory(MOST_WRONG);

  constructor({ now = Date.now }: DigestGuardOptions = {}) {
    this.#now = now;
  }

  challenge({ isStale, source }: { isStale: boolean; source: string }): string {
    const stale = isStale ? ', stale=true' : '';
    return `Digest realm="${REALM}", nonce="${this.#newNonce(source)}", algorithm=${ALGORITHM}, qop="auth"${stale}`;
  }

  async check({ authorization, method, user, source, passwordOf }: DigestAttempt): Promise<DigestVerdict> {
    const given = readChallenges(authorization ?? '').find((each) => each.get('realm') === REALM);
    if (given === undefined) return 'challenge';
    const { name: algorithm, isSession } = algorithmOf(given);
    const [nonce = '', cnonce = '', nonceCount = '', uri = ''] = ['nonce', 'cnonce', 'nc', 'uri'].map((key) =>
      given.get(key),
    );
    const isReadable = given.get('qop') === 'auth' && /^[0-9a-f]{8}$/i.test(nonceCount) && cnonce !== '';
    if (algorithm !== ALGORITHM || !isReadable) return 'challenge';
    // A phone that took it for a wrong password would not retry.
    if (!this.#isOurs(nonce, source)) return 'stale';
    if (this.#isLocked(await this.#wrong.get(networkOf(source)))) return 'refused';
    const username = (given.get('username') ?? '').replace(/\\(.)/g, '$1');
    const password = passwordOf(username);
    // Unknown user names take equal time.
    const account = { username, password: password ?? '', realm: REALM };
    const expected = digestResponse({ ...account, algorithm, isSession, method, uri, nonce, cnonce, nonceCount });
    const isSameResponse = isSame(expected, (given.get('response') ?? '').toLowerCase());
    // Not counted as a guess: outsiders can make a PBX call numbers with another account, or none.
    if (password === null) return 'refused';
    if (!isSameResponse) {
      await this.#wrong.consume(networkOf(source)).catch(() => {});
      return 'refused';
    }
    if (userOfUri(uri) !== user) return 'refused';
    return this.#use(nonce) ? 'accepted' : 'stale';
  }

  #isLocked(wrong: { consumedPoints: number } | null): boolean {
    return wrong !== null && wrong.consumedPoints >= MOST_WRONG.points;
  }

  #newNonce(source: string): string {
    const text = `${this.#now().toString(36)}.${randomBytes(9).toString('base64url')}`;
    return `${text}.${this.#sign(text, source)}`;
  }

  #isOurs(nonce: string, source: string): boolean {
    const cut = nonce.lastIndexOf('.');
    return cut > 0 && isSame(nonce.slice(cut + 1), this.#sign(nonce.slice(0, cut), source));
  }

  #sign(text: string, source: string): string {
    return createHmac('sha256', this.#key).update(`${text} ${source}`).digest('base64url');
  }

  /** False if it has expired or was used before. */
  #use(nonce: string): boolean {
    const now = this.#now();
    for (const [used, expiresAt] of this.#used) {
      if (expiresAt > now && this.#used.size < MOST_USED_NONCES) break;
      this.#used.delete(used);
    }
    const expiresAt = Number.parseInt(nonce, 36) + NONCE_LASTS_MS;
    if (expiresAt <= now || this.#used.has(nonce)) return false;
    this.#used.set(nonce, expiresAt);
    return true;
  }
}

function isSame(one: string, other: string): boolean {
  const [bytes, others] = [Buffer.from(one), Buffer.from(other)];
  return bytes.length === others.length && timingSafeEqual(bytes, others);
}
