import { createHash } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { networkOf } from '../../runtime/network-address.ts';
import type { LimitStore } from './limit-store.ts';

/**
 * Limits password guessing by e-mail address and network together, so that guesses from elsewhere lock no user out, and
 * by network alone.
 */
export interface LoginThrottle {
  /**
   * Counts an attempt before its password is checked, so that concurrent attempts cannot exceed the limit.
   * @throws TandemError LOGIN_THROTTLED
   */
  attempt(attempt: LoginAttempt): Promise<void>;
  /** After a correct password: clears the failures of this e-mail address and network, and takes back this attempt. */
  forgive(attempt: LoginAttempt): Promise<void>;
  /** Counts an account registered from an address. @throws TandemError LOGIN_THROTTLED */
  register(address: string): Promise<void>;
}

export interface LoginAttempt {
  email: string;
  address: string;
}

export interface ThrottleSettings {
  /** Per network. Default 10. */
  failuresPerEmail?: number;
  /** Default 50. */
  failuresPerNetwork?: number;
  /** Default 50. */
  accountsPerNetwork?: number;
}

const WINDOW_S = 15 * 60;

export function createLoginThrottle(store: LimitStore, settings: ThrottleSettings = {}): LoginThrottle {
  const { failuresPerEmail = 10, failuresPerNetwork = 50, accountsPerNetwork = 50 } = settings;

  async function take(key: string, limit: number): Promise<void> {
    const { used, msLeft } = await store.count(key, WINDOW_S);
    if (used <= limit) return;
    const retryAfterS = Math.max(1, Math.ceil(msLeft / 1000));
    throw new TandemError('LOGIN_THROTTLED', `Too many attempts. Try again in ${retryAfterS} s.`, { retryAfterS });
  }

  return {
    async attempt(attempt) {
      await take(networkKey(attempt), failuresPerNetwork);
      await take(emailKey(attempt), failuresPerEmail);
    },
    async forgive(attempt) {
      await store.forget(emailKey(attempt), WINDOW_S);
      await store.uncount(networkKey(attempt), WINDOW_S);
    },
    async register(address) {
      await take(`register:${networkOf(address)}`, accountsPerNetwork);
    },
  };
}

function networkKey({ address }: LoginAttempt): string {
  return `login:${networkOf(address)}`;
}

/** Hashed, so that a shared Redis contains no e-mail addresses. */
function emailKey({ email, address }: LoginAttempt): string {
  const hash = createHash('sha256')
    .update(`${email.toLowerCase()}\n${networkOf(address)}`)
    .digest('base64url');
  return `login-email:${hash}`;
}
