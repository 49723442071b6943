import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LimitStore } from '../../storage/limits/limit-store.ts';
import { createLimits, type LimitSettings, type Slot } from '../../storage/limits/limits.ts';
import { createMemoryLimitStore } from '../../storage/limits/memory-limit-store.ts';
import { openRedisLimitStore } from '../../storage/limits/redis-limit-store.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from './test-redis.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LEASE_MS = 30_000;

interface OpenStore {
  store: LimitStore;
  /** The same store as seen by another process. */
  another: LimitStore;
  passTime(ms: number): Promise<void>;
  close(): Promise<void>;
}

describe('in-process limits', () => {
  limitSuite(async () => {
    vi.useFakeTimers();
    const store = createMemoryLimitStore();
    const passTime = async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms));
    return { store, another: store, passTime, close: () => store.close() };
  });

  it('never leave more than a window to wait, although the system clock is set back', async () => {
    const store = createMemoryLimitStore();
    await store.count('a', 60);
    vi.setSystemTime(Date.now() - 3_600_000);
    expect(await store.count('a', 60)).toEqual({ used: 2, msLeft: MINUTE_MS });
    expect(await store.read('a', 60)).toEqual({ used: 2, msLeft: MINUTE_MS });
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(await store.read('a', 60)).toBeNull();
  });
});

describe.skipIf(!(await redisIsReachable()))('Redis limits at TANDEM_TEST_REDIS_URL', () => {
  limitSuite(async () => {
    // Client timers keep running; lease renewal timers are fake.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const namespace = openTestNamespace();
    const onError = (error: Error) => expect.fail(error.message);
    const open = () => openRedisLimitStore({ url: REDIS_URL, namespace: namespace.name, onError });
    const [store, another] = [open(), open()];
    await Promise.all([store.settled, another.settled]);
    return {
      store,
      another,
      async passTime(ms) {
        await namespace.passTime(ms);
        vi.advanceTimersByTime(ms);
        // One ordered connection: once this returns, earlier commands of timers have finished.
        await store.read('nothing', 1);
      },
      async close() {
        await Promise.all([store.close(), another.close()]);
        await namespace[Symbol.asyncDispose]();
      },
    };
  });
});

/** Conformance suite of limit stores. `open` returns an unshared store. */
function limitSuite(open: () => Promise<OpenStore>): void {
  let opened: OpenStore;
  beforeEach(async () => {
    opened = await open();
  });
  afterEach(async () => {
    await opened.close();
    vi.useRealTimers();
  });
  const limitsWith = (settings: LimitSettings = {}, store = opened.store) =>
    createLimits(store, { leaseMs: LEASE_MS, ...settings });

  describe('window', () => {
    it('starts with its first request and restarts after its end', async () => {
      const { store, another, passTime } = opened;
      expect(await store.read('k', 60)).toBeNull();
      expect(await store.count('k', 60)).toEqual({ used: 1, msLeft: expect.closeTo(MINUTE_MS, -3) });
      await passTime(40_000);
      expect(await another.count('k', 60)).toEqual({ used: 2, msLeft: expect.closeTo(20_000, -3) });
      expect(await store.read('k', 60)).toEqual({ used: 2, msLeft: expect.closeTo(20_000, -3) });
      await passTime(20_001);
      expect(await store.read('k', 60)).toBeNull();
      expect(await store.count('k', 60)).toMatchObject({ used: 1 });
    });

    it('separates keys and lengths', async () => {
      const { store } = opened;
      await store.count('k', 60);
      expect(await store.count('k', 86_400)).toMatchObject({ used: 1 });
      expect(await store.count('other', 60)).toMatchObject({ used: 1 });
    });

    it('counts all concurrent requests', async () => {
      const { store, another } = opened;
      const counts = await Promise.all(
        Array.from({ length: 200 }, (_, index) => (index % 2 ? store : another).count('k', 60)),
      );
      expect(new Set(counts.map(({ used }) => used)).size).toBe(200);
    });
  });

  describe('window with reversals', () => {
    it('decrements, and disappears when forgotten', async () => {
      const { store, another } = opened;
      for (let count = 0; count < 3; count += 1) await store.count('k', 60);
      await another.uncount('k', 60);
      expect(await store.read('k', 60)).toMatchObject({ used: 2 });
      await another.forget('k', 60);
      expect(await store.read('k', 60)).toBeNull();
      expect(await store.count('k', 60)).toMatchObject({ used: 1 });
    });

    it('stays absent if it was', async () => {
      const { store } = opened;
      await store.uncount('k', 60);
      await store.forget('k', 60);
      expect(await store.read('k', 60)).toBeNull();
    });
  });

  describe('logins', () => {
    const email = 'ada@example.com';
    const here = { email, address: '192.0.2.1' };
    const elsewhere = { email, address: '198.51.100.7' };
    const throttled = { code: 'LOGIN_THROTTLED' };

    it('fail after too many failures with one e-mail address from one network, until the window ends', async () => {
      const { another, passTime } = opened;
      const [{ logins }, other] = [limitsWith(), limitsWith({}, another)];
      for (let failure = 0; failure < 10; failure += 1) await (failure % 2 ? logins : other.logins).attempt(here);
      await expect(logins.attempt(here)).rejects.toMatchObject(throttled);
      await expect(other.logins.attempt({ ...here, email: 'ADA@example.com' })).rejects.toMatchObject(throttled);
      await logins.attempt({ ...here, email: 'bob@example.com' });
      await logins.attempt(elsewhere);
      await passTime(15 * MINUTE_MS + 1);
      await logins.attempt(here);
    });

    it('fail for a network with failures for many e-mail addresses', async () => {
      const { logins } = limitsWith();
      for (let failure = 0; failure < 50; failure += 1)
        await logins.attempt({ ...here, email: `${failure}@example.com` });
      await expect(logins.attempt(here)).rejects.toMatchObject(throttled);
      await logins.attempt(elsewhere);
    });

    it('reset earlier failures when they succeed, at no cost', async () => {
      const { logins } = limitsWith();
      for (let login = 0; login < 60; login += 1) {
        await logins.attempt(here);
        await logins.forgive(here);
      }
      for (let failure = 0; failure < 9; failure += 1) await logins.attempt(here);
      await logins.attempt(here);
      await logins.forgive(here);
      for (let failure = 0; failure < 10; failure += 1) await logins.attempt(here);
      await expect(logins.attempt(here)).rejects.toMatchObject(throttled);
    });
  });

  describe('lease', () => {
    const lease = (leaseId: string = randomUUID()) => ({ key: 'k', leaseId });
    const options = { limit: 3, leaseMs: LEASE_MS };

    it('respects the limit for concurrent requests', async () => {
      const { store, another } = opened;
      const taken = await Promise.all(
        Array.from({ length: 50 }, (_, index) => (index % 2 ? store : another).takeLease(lease(), options)),
      );
      expect(taken.filter(Boolean)).toHaveLength(3);
      expect(await store.takeLease({ key: 'other', leaseId: 'a' }, options)).toBe(true);
    });

    it('frees its slot at once and only once when released', async () => {
      const { store, another } = opened;
      for (const id of ['a', 'b', 'c']) await store.takeLease(lease(id), options);
      await another.releaseLease(lease('a'));
      await store.releaseLease(lease('a'));
      await store.releaseLease(lease('never taken'));
      expect(await store.takeLease(lease(), options)).toBe(true);
      expect(await store.takeLease(lease(), options)).toBe(false);
    });

    it('expires unless renewed', async () => {
      const { store, another, passTime } = opened;
      for (const id of ['kept', 'a', 'b']) await store.takeLease(lease(id), options);
      await passTime(LEASE_MS - 1_000);
      await store.renewLeases([lease('kept')], LEASE_MS);
      expect(await another.takeLease(lease(), options)).toBe(false);
      await passTime(1_001);
      const taken = await Promise.all([1, 2, 3].map(() => another.takeLease(lease(), options)));
      expect(taken).toEqual([true, true, false]);
    });

    it('reappears with its next renewal after it was forgotten', async () => {
      const { store, another } = opened;
      await store.renewLeases([lease('a'), lease('b')], LEASE_MS);
      expect(await another.takeLease(lease(), options)).toBe(true);
      expect(await another.takeLease(lease(), options)).toBe(false);
    });
  });

  describe('workspace requests', () => {
    const plans = { free: { perMinute: 3, perDay: 4 }, pro: { perMinute: 5, perDay: 100 } };

    it('fail beyond the limit per minute, not counted per day, and beyond that per day', async () => {
      const limits = limitsWith({ plans });
      const ask = () => limits.consumeWorkspace('w', 'free');
      expect(await ask()).toMatchObject({ limit: 3, remaining: 2, exceeded: false });
      await ask();
      expect(await ask()).toMatchObject({ limit: 3, remaining: 0, exceeded: false });
      const refused = await ask();
      expect(refused).toMatchObject({ limit: 3, remaining: 0, exceeded: true });
      expect(refused.retryAfterS).toBeGreaterThan(50);
      expect(refused.retryAfterS).toBeLessThanOrEqual(60);
      expect(refused.resetAtS).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) + refused.retryAfterS - 1);
      await opened.passTime(MINUTE_MS);
      expect(await ask()).toMatchObject({ limit: 4, remaining: 0, exceeded: false });
      const overTheDay = await ask();
      expect(overTheDay).toMatchObject({ limit: 4, remaining: 0, exceeded: true });
      expect(overTheDay.retryAfterS).toBeGreaterThan(86_000);
      await opened.passTime(DAY_MS);
      expect(await ask()).toMatchObject({ limit: 3, remaining: 2, exceeded: false });
    });

    it('count across processes, but separately by workspace', async () => {
      const here = limitsWith({ plans });
      const there = limitsWith({ plans }, opened.another);
      for (const limits of [here, there, here]) await limits.consumeWorkspace('w', 'free');
      expect(await there.consumeWorkspace('w', 'free')).toMatchObject({ exceeded: true });
      expect(await there.consumeWorkspace('v', 'free')).toMatchObject({ exceeded: false, remaining: 2 });
    });

    it('keep their count when the plan changes', async () => {
      const limits = limitsWith({ plans });
      for (let used = 0; used < 3; used += 1) await limits.consumeWorkspace('w', 'free');
      expect(await limits.consumeWorkspace('w', 'pro')).toMatchObject({ limit: 5, remaining: 1 });
    });

    it.each([
      ['free', 10],
      ['starter', 60],
      ['pro', 300],
    ] as const)('allow %s %i per minute', async (plan, perMinute) => {
      expect(await limitsWith().consumeWorkspace('w', plan)).toMatchObject({ limit: perMinute });
    });
  });

  describe('address requests', () => {
    it('count by IPv4 address and IPv6 /64, and a peek does not count', async () => {
      const limits = limitsWith({ anonymousPerMinute: 2 });
      expect(await limits.peekAddress('2001:db8::1')).toMatchObject({ limit: 2, remaining: 2, exceeded: false });
      await limits.consumeAddress('2001:db8::1');
      await limits.consumeAddress('2001:db8:0:0:ffff::2%eth0');
      expect(await limits.consumeAddress('2001:db8::3')).toMatchObject({ exceeded: true });
      expect(await limits.peekAddress('2001:db8::4')).toMatchObject({ remaining: 0, exceeded: false });
      expect(await limits.consumeAddress('2001:db8:0:1::1')).toMatchObject({ exceeded: false });
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) await limits.consumeAddress(address);
      expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ exceeded: true });
      expect(await limits.consumeAddress('192.0.2.2')).toMatchObject({ exceeded: false });
    });
  });

  describe('user slots', () => {
    it.each([
      ['stt', 8, 'STT_CONCURRENCY_LIMIT'],
      ['tts', 5, 'TTS_CONCURRENCY_LIMIT'],
      ['llm', 8, 'CHAT_CONCURRENCY_LIMIT'],
    ] as const)(
      'allow %s requests up to %i over all processes, and become free on release',
      async (kind, limit, code) => {
        const [here, there] = [limitsWith(), limitsWith({}, opened.another)];
        const slots: Slot[] = [];
        for (let index = 0; index < limit; index += 1) {
          slots.push(await (index % 2 ? here : there).acquireSlot({ userId: 1, kind }));
        }
        for (const limits of [here, there]) {
          await expect(limits.acquireSlot({ userId: 1, kind })).rejects.toMatchObject({
            code,
            status: 429,
            details: { limit },
          });
        }
        await here.acquireSlot({ userId: 2, kind });
        await here.acquireSlot({ userId: 1, kind: kind === 'stt' ? 'tts' : 'stt' });
        await slots[0]?.release();
        await slots[0]?.release();
        await here.acquireSlot({ userId: 1, kind });
        await expect(there.acquireSlot({ userId: 1, kind })).rejects.toMatchObject({ code });
        await Promise.all([here.close(), there.close()]);
      },
    );

    it('last as long as their process, and are released on an orderly end', async () => {
      const here = limitsWith({ concurrency: { stt: 1 } });
      const there = limitsWith({ concurrency: { stt: 1 } }, opened.another);
      await here.acquireSlot({ userId: 1, kind: 'stt' });
      for (let elapsedMs = 0; elapsedMs < 3 * LEASE_MS; elapsedMs += LEASE_MS / 3) {
        await opened.passTime(LEASE_MS / 3);
        await expect(there.acquireSlot({ userId: 1, kind: 'stt' })).rejects.toThrow('under way');
      }
      await here.close();
      await there.acquireSlot({ userId: 1, kind: 'stt' });
    });

    it('expire after a process that never released them', async () => {
      const there = limitsWith({ concurrency: { tts: 1 } }, opened.another);
      // Like a killed process: taken and never renewed.
      await opened.store.takeLease({ key: 'tts:1', leaseId: 'of the dead' }, { limit: 1, leaseMs: LEASE_MS });
      await opened.passTime(LEASE_MS - 1_000);
      await expect(there.acquireSlot({ userId: 1, kind: 'tts' })).rejects.toThrow('under way');
      await opened.passTime(1_001);
      await there.acquireSlot({ userId: 1, kind: 'tts' });
    });

    it('never exceed the limit under churn', async () => {
      const all = [limitsWith({ concurrency: { stt: 3 } }), limitsWith({ concurrency: { stt: 3 } }, opened.another)];
      let working = 0;
      let most = 0;
      let refused = 0;
      async function client(index: number): Promise<void> {
        for (let turn = 0; turn < 20; turn += 1) {
          const slot = await all[(index + turn) % 2]?.acquireSlot({ userId: 1, kind: 'stt' }).catch(() => null);
          if (!slot) {
            refused += 1;
            continue;
          }
          working += 1;
          most = Math.max(most, working);
          await opened.store.read('nothing', 1);
          working -= 1;
          await slot.release();
        }
      }
      await Promise.all(Array.from({ length: 12 }, (_, index) => client(index)));
      expect(most).toBe(3);
      expect(refused).toBeGreaterThan(0);
      for (let index = 0; index < 3; index += 1) await all[0]?.acquireSlot({ userId: 1, kind: 'stt' });
    });
  });
}
