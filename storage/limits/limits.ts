import { networkOf } from '../../runtime/network-address.ts';
import type { Plan } from '../queries/workspaces.ts';
import type { LimitStore } from './limit-store.ts';
import { createLoginThrottle, type LoginThrottle, type ThrottleSettings } from './login-throttle.ts';
import { createMemoryLimitStore } from './memory-limit-store.ts';
import { CONCURRENCY, createSlots, type Slot, type SlotKind } from './slots.ts';

export type { Slot, SlotKind } from './slots.ts';

/** How much may be asked of the platform: requests in a time, and work under way at a time. */
export interface Limits {
  /** Counts one request of the workspace, shared by all its keys and sessions. */
  consumeWorkspace(workspaceId: string, plan: Plan): Promise<RateLimitState>;
  /** Counts one request of nobody we know. */
  consumeAddress(address: string): Promise<RateLimitState>;
  /** Where the address stands, without counting. */
  peekAddress(address: string): Promise<RateLimitState>;
  /**
   * Over REST and WebSocket together. Held until released, or until this process dies.
   * @throws TandemError `STT_`, `TTS_` or `CHAT_CONCURRENCY_LIMIT`, with `details.limit`.
   */
  acquireSlot(request: { userId: number; kind: SlotKind }): Promise<Slot>;
  readonly logins: LoginThrottle;
  /** Gives back the slots that are held here, and closes the store. */
  close(): Promise<void>;
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

interface PlanLimits {
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
const ANONYMOUS_PER_MINUTE = 300;
const MINUTE_S = 60;
const DAY_S = 86_400;

export interface LimitSettings {
  plans?: Partial<Record<Plan, PlanLimits>>;
  anonymousPerMinute?: number;
  concurrency?: Partial<Record<SlotKind, number>>;
  logins?: ThrottleSettings;
  /** How long the slots of a process that was killed stay taken. Default 30 000. */
  leaseMs?: number;
}

/** Fixed windows, a minute and, for workspaces, a day, both from the first request on; and slots. */
export function createLimits(store: LimitStore, settings: LimitSettings = {}): Limits {
  const plans = { ...PLAN_LIMITS, ...settings.plans };
  const anonymousPerMinute = settings.anonymousPerMinute ?? ANONYMOUS_PER_MINUTE;
  const { leaseMs } = settings;
  const concurrency = { ...CONCURRENCY, ...settings.concurrency };
  const slots = createSlots(store, { concurrency, ...(leaseMs !== undefined && { leaseMs }) });

  return {
    async consumeWorkspace(workspaceId, plan) {
      const key = `workspace:${workspaceId}`;
      const { perMinute, perDay } = plans[plan];
      const minute = stateOf(perMinute, await store.count(key, MINUTE_S));
      // A request refused by the minute does not count against the day.
      if (minute.exceeded) return minute;
      const day = stateOf(perDay, await store.count(key, DAY_S));
      return day.exceeded || day.remaining < minute.remaining ? day : minute;
    },

    async consumeAddress(address) {
      return stateOf(anonymousPerMinute, await store.count(addressKey(address), MINUTE_S));
    },

    async peekAddress(address) {
      const window = await store.read(addressKey(address), MINUTE_S);
      return { ...stateOf(anonymousPerMinute, window ?? { used: 0, msLeft: MINUTE_S * 1000 }), exceeded: false };
    },

    acquireSlot: (request) => slots.acquire(request),

    logins: createLoginThrottle(store, settings.logins),

    async close() {
      await slots.close();
      await store.close();
    },
  };
}

/** Limits of this process alone. */
export function createLimitsInProcess(settings: LimitSettings = {}): Limits {
  return createLimits(createMemoryLimitStore(), settings);
}

function addressKey(address: string): string {
  return `address:${networkOf(address)}`;
}

function stateOf(limit: number, { used, msLeft }: { used: number; msLeft: number }): RateLimitState {
  return {
    limit,
    remaining: Math.max(0, limit - used),
    resetAtS: Math.ceil((Date.now() + msLeft) / 1000),
    exceeded: used > limit,
    retryAfterS: Math.max(1, Math.ceil(msLeft / 1000)),
  };
}
