import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { TandemError } from '../machines/errors.ts';
import { networkOf } from '../storage/limits/address-network.ts';

/** Slows down password guessing, per e-mail address and per network address. */
export interface LoginThrottle {
  /**
   * Counts an attempt before its password is checked, so that simultaneous attempts cannot exceed the limit.
   * @throws TandemError LOGIN_THROTTLED
   */
  attempt(attempt: LoginAttempt): Promise<void>;
  /** After a correct password: clears the failures of the e-mail address, and takes back this attempt of the address. */
  forgive(attempt: LoginAttempt): Promise<void>;
  /** Counts an account that is registered from an address. @throws TandemError LOGIN_THROTTLED */
  register(address: string): Promise<void>;
}

export interface LoginAttempt {
  email: string;
  address: string;
}

export interface ThrottleSettings {
  /** Failed logins of one e-mail address. Default 10. */
  failuresPerEmail?: number;
  /** Failed logins from one address. Default 50. */
  failuresPerAddress?: number;
  /** Accounts registered from one address. Default 50. */
  accountsPerAddress?: number;
}

const WINDOW_S = 15 * 60;

/** Pass `limiterOf` for a limiter on Redis. */
export function createLoginThrottle(settings: ThrottleSettings = {}, limiterOf: LimiterOf = inMemory): LoginThrottle {
  const { failuresPerEmail = 10, failuresPerAddress = 50, accountsPerAddress = 50 } = settings;
  const byEmail = limiterOf({ keyPrefix: 'login-email', points: failuresPerEmail, duration: WINDOW_S });
  const byAddress = limiterOf({ keyPrefix: 'login-address', points: failuresPerAddress, duration: WINDOW_S });
  const accounts = limiterOf({ keyPrefix: 'register-address', points: accountsPerAddress, duration: WINDOW_S });

  return {
    async attempt({ email, address }) {
      await take(byAddress, networkOf(address));
      await take(byEmail, email.toLowerCase());
    },
    async forgive({ email, address }) {
      await byEmail.delete(email.toLowerCase());
      await byAddress.reward(networkOf(address));
    },
    async register(address) {
      await take(accounts, networkOf(address));
    },
  };
}

type LimiterOf = (options: { keyPrefix: string; points: number; duration: number }) => RateLimiterAbstract;

function inMemory(options: Parameters<LimiterOf>[0]): RateLimiterAbstract {
  return new RateLimiterMemory(options);
}

async function take(limiter: RateLimiterAbstract, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (refusal) {
    // The library rejects with its state when the limit is reached, and with an Error when something failed.
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    const retryAfterS = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
    throw new TandemError('LOGIN_THROTTLED', `Too many attempts. Try again in ${retryAfterS} s.`, { retryAfterS });
  }
}
