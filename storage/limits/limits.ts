import { networkOf } from '../../runtime/network-address.ts';
import type { Plan } from '../queries/workspaces.ts';
import type { LimitStore } from './limit-store.ts';
import { createLoginThrottle, type LoginThrottle, type ThrottleSettings } from './login-throttle.ts';
import { createMemoryLimitStore } from './memory-limit-store.ts';
import { CONCURRENCY, createSlots, type Slot, type SlotKind } from './slots.ts';

export type { Slot, SlotKind } from './slots.ts';

export interface Limits {
  /** Counts one request of the workspace, across its keys and sessions. */
  consumeWorkspace(workspaceId: string, plan: Plan): Promise<RateLimitState>;
  /** Counts one unauthenticated request. */
  consumeAddress(address: string): Promise<RateLimitState>;
  /** Returns the state of the address without counting. */
  peekAddress(address: string): Promise<RateLimitState>;
  consumeTrunkProbe(trunkId: string): Promise<RateLimitState>;
  /**
   * Takes a slot, shared by REST and WebSocket, until it is released or this process dies.
   * @throws TandemError `STT_`, `TTS_` or `CHAT_CONCURRENCY_LIMIT`, with `details.limit`
   */
  acquireSlot(request: { userId: number; kind: SlotKind }): Promise<Slot>;
  readonly logins: LoginThrottle;
  /** Also releases this process's slots. */
  close(): Promise<void>;
}

/** Values for the X-RateLimit headers: of the window closest to its limit. */
export interface RateLimitState {
  limit: number;
  remaining: number;
  /** Unix seconds at which the window resets. */
  resetAtS: number;
  exceeded: boolean;
  /** Seconds until then, at least 1. */
  retryAfterS: number;
}

interface PlanLimits {
  perMinute: number;
  perDay: number;
}

/** Platform specification, Limits. Enterprise is "custom" there; this is its default. */
export const PLAN_LIMITS: Readonly<Record<Plan, PlanLimits>> = {
  free: { perMinute: 10, perDay: 1_000 },
  starter: { perMinute: 60, perDay: 10_000 },
  pro: { perMinute: 300, perDay: 100_000 },
  enterprise: { perMinute: 6_000, perDay: 1_000_000 },
};

/** Per address without valid credentials: failed logins, signed media, unknown paths. */
const ANONYMOUS_PER_MINUTE = 300;
/** Requested checks must not flood a carrier. */
const TRUNK_PROBES_PER_MINUTE = 6;
const MINUTE_S = 60;
const DAY_S = 86_400;

export interface LimitSettings {
  plans?: Partial<Record<Plan, PlanLimits>>;
  anonymousPerMinute?: number;
  concurrency?: Partial<Record<SlotKind, number>>;
  logins?: ThrottleSettings;
  /** Time until the slots of a killed process are released. Default 30 000. */
  leaseMs?: number;
}

/** Implements fixed windows of a minute and, for workspaces, a day, each from its first request, and slots. */
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
      // Requests rejected by the minute limit do not count against the day.
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

    async consumeTrunkProbe(trunkId) {
      return stateOf(TRUNK_PROBES_PER_MINUTE, await store.count(`trunk-probe:${trunkId}`, MINUTE_S));
    },

    acquireSlot: (request) => slots.acquire(request),

    logins: createLoginThrottle(store, settings.logins),

    async close() {
      await slots.close();
      await store.close();
    },
  };
}

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
