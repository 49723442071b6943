import { isIPv6 } from 'node:net';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

export type Plan = 'free' | 'starter' | 'pro' | 'enterprise';

export interface PlanLimits {
  perMinute: number;
  perDay: number;
}

/** Platform specification, Limits; enterprise is "custom", and this is what it is unless configured. */
export const PLAN_LIMITS: Readonly<Record<Plan, PlanLimits>> = {
  free: { perMinute: 10, perDay: 1_000 },
  starter: { perMinute: 60, perDay: 10_000 },
  pro: { perMinute: 300, perDay: 100_000 },
  enterprise: { perMinute: 6_000, perDay: 1_000_000 },
};

/** Of one address without valid credentials: failed logins, signed media, unknown paths. */
export const ANONYMOUS_PER_MINUTE = 300;

export interface RateLimitSettings {
  plans?: Partial<Record<Plan, PlanLimits>>;
  anonymousPerMinute?: number;
}

/** What the X-RateLimit headers say: the window that will run out first. */
export interface RateLimitState {
  limit: number;
  remaining: number;
  /** Unix seconds at which the window starts over. */
  resetAtS: number;
  exceeded: boolean;
  /** Seconds until then, at least 1. */
  retryAfterS: number;
}

export interface RateLimits {
  /** Counts one request of the workspace, shared by all its keys. */
  consumeWorkspace(workspaceId: string, plan: Plan): Promise<RateLimitState>;
  consumeAddress(address: string): Promise<RateLimitState>;
  /** Where the address stands, without counting. */
  peekAddress(address: string): Promise<RateLimitState>;
}

/** Fixed windows in this process: a minute and, for workspaces, a day, both from the first request on. */
export function createRateLimits(settings: RateLimitSettings = {}): RateLimits {
  const anonymous = new Window(settings.anonymousPerMinute ?? ANONYMOUS_PER_MINUTE, MINUTE_S);
  const windowsOf = (plan: Plan) => {
    const { perMinute, perDay } = settings.plans?.[plan] ?? PLAN_LIMITS[plan];
    return { minute: new Window(perMinute, MINUTE_S), day: new Window(perDay, DAY_S) };
  };
  const plans = {
    free: windowsOf('free'),
    starter: windowsOf('starter'),
    pro: windowsOf('pro'),
    enterprise: windowsOf('enterprise'),
  };

  return {
    async consumeWorkspace(workspaceId, plan) {
      const { minute, day } = plans[plan];
      const minuteState = await minute.consume(workspaceId);
      // A request refused by the minute does not count against the day.
      if (minuteState.exceeded) return minuteState;
      const dayState = await day.consume(workspaceId);
      return dayState.exceeded || dayState.remaining < minuteState.remaining ? dayState : minuteState;
    },
    consumeAddress: (address) => anonymous.consume(networkOf(address)),
    peekAddress: (address) => anonymous.peek(networkOf(address)),
  };
}

export function rateLimitHeaders(state: RateLimitState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(state.resetAtS),
  };
}

const MINUTE_S = 60;
const DAY_S = 86_400;

class Window {
  readonly #limit: number;
  readonly #durationS: number;
  readonly #limiter: RateLimiterMemory;

  constructor(limit: number, durationS: number) {
    this.#limit = limit;
    this.#durationS = durationS;
    this.#limiter = new RateLimiterMemory({ points: limit, duration: durationS });
  }

  async consume(key: string): Promise<RateLimitState> {
    try {
      return this.#stateOf(await this.#limiter.consume(key), false);
    } catch (refusal) {
      // The library rejects with the state when nothing is left, and with an Error when something broke.
      if (refusal instanceof RateLimiterRes) return this.#stateOf(refusal, true);
      throw refusal;
    }
  }

  async peek(key: string): Promise<RateLimitState> {
    const result = await this.#limiter.get(key);
    return this.#stateOf(result ?? new RateLimiterRes(this.#limit, this.#durationS * 1000, 0, true), false);
  }

  #stateOf({ remainingPoints, msBeforeNext }: RateLimiterRes, exceeded: boolean): RateLimitState {
    return {
      limit: this.#limit,
      remaining: Math.max(0, remainingPoints),
      resetAtS: Math.ceil((Date.now() + msBeforeNext) / 1000),
      exceeded,
      retryAfterS: Math.max(1, Math.ceil(msBeforeNext / 1000)),
    };
  }
}

/** One subscriber usually has a whole IPv6 /64. */
function networkOf(address: string): string {
  return isIPv6(address) && !address.includes('.') ? expandIpv6(address).slice(0, 4).join(':') : address;
}

function expandIpv6(address: string): string[] {
  const [head = '', tail] = address.split('%', 1)[0]!.split('::');
  const first = head === '' ? [] : head.split(':');
  if (tail === undefined) return first;
  const last = tail === '' ? [] : tail.split(':');
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last];
}
