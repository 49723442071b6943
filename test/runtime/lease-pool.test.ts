import { setImmediate as settled } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  type Lease,
  type LeasePolicy,
  LeasePool,
  type LeaseRequest,
  type ResourceKind,
} from '../../runtime/lease-pool.ts';
import * as fc from '../properties.ts';

const never = new AbortController().signal;

describe('LeasePool', () => {
  it('opens a resource on demand and leases it again after its return', async () => {
    const shop = new Shop();
    const pool = poolOf({ mostLocal: 1 });
    const kind = shop.kind('a');
    const first = await pool.lease({ kind, signal: never });
    const second = pool.lease({ kind, signal: never });
    first.release({ broken: null });
    expect((await second).resource).toBe(first.resource);
    expect(shop.opened).toBe(1);
    await pool.close();
    expect(shop.open).toBe(0);
  });

  it('replaces a broken resource', async () => {
    const shop = new Shop();
    const broken: string[] = [];
    const pool = poolOf({ mostLocal: 1, policy: { onBroken: ({ key }, detail) => broken.push(`${key}: ${detail}`) } });
    const kind = shop.kind('a');
    const first = await pool.lease({ kind, signal: never });
    const second = pool.lease({ kind, signal: never });
    first.release({ broken: 'it hung' });
    expect((await second).resource).not.toBe(first.resource);
    expect([shop.open, shop.opened, broken]).toEqual([1, 2, ['a: it hung']]);
    await pool.close();
  });

  it('closes an idle resource to make room for another kind', async () => {
    const shop = new Shop();
    const pool = poolOf({ mostLocal: 1 });
    (await pool.lease({ kind: shop.kind('a'), signal: never })).release({ broken: null });
    const { resource } = await pool.lease({ kind: shop.kind('b'), signal: never });
    expect([resource.key, shop.open]).toEqual(['b', 1]);
    await pool.close();
  });

  it('rejects all requests for a damaged kind, and only the first if a retry may succeed', async () => {
    for (const isLasting of [true, false]) {
      const shop = new Shop();
      const pool = poolOf({ mostLocal: 1, policy: { isLasting: () => isLasting } });
      let tries = 0;
      const kind: Kind = {
        ...shop.kind('a'),
        open: async () => {
          tries += 1;
          if (tries === 1) throw new Error('no model');
          return shop.make('a');
        },
      };
      const asked = [1, 2].map(() =>
        pool.lease({ kind, signal: never }).then(
          () => 'leased',
          (error) => error.message,
        ),
      );
      expect(await Promise.all(asked)).toEqual(['no model', isLasting ? 'no model' : 'leased']);
      await pool.close();
    }
  });

  it('recalls the lease that the policy selects, and gives its resource to the urgent request', async () => {
    const shop = new Shop();
    const pool = poolOf({ mostLocal: 1, policy: { recall: (_, leases) => leases[0] ?? null } });
    const kind = shop.kind('a');
    const recalled = Promise.withResolvers<void>();
    const first = await pool.lease({ kind, signal: never, onRecall: recalled.resolve });
    expect(first.isRecalled).toBe(false);
    const urgent = pool.lease({ kind, signal: never });
    await recalled.promise;
    expect(first.isRecalled).toBe(true);
    first.release({ broken: null });
    expect((await urgent).resource).toBe(first.resource);
    await pool.close();
  });

  it('shares a resource among leases if none is idle, while another one opens', async () => {
    const shop = new Shop();
    const pool = poolOf({ mostLocal: 2 });
    const kind = { ...shop.kind('a'), leasesAtOnce: 2 };
    const leases = [await pool.lease({ kind, signal: never }), await pool.lease({ kind, signal: never })];
    expect(leases[1]!.resource).toBe(leases[0]!.resource);
    await settled();
    for (const _ of [3, 4]) leases.push(await pool.lease({ kind, signal: never }));
    expect([shop.opened, new Set(leases.map(({ resource }) => resource)).size]).toEqual([2, 2]);
    const fifth = pool.lease({ kind, signal: never });
    leases[2]!.release({ broken: null });
    expect((await fifth).resource).toBe(leases[2]!.resource);
    await pool.close();
  });

  it('shares no resource before an earlier request for another kind or for exclusive use', async () => {
    for (const wanted of [{ key: 'b' }, { key: 'a', isAlone: true }]) {
      const shop = new Shop();
      const pool = poolOf({ mostLocal: 1 });
      const kindOf = (key: string) => ({ ...shop.kind(key), leasesAtOnce: 4 });
      const first = await pool.lease({ kind: kindOf('a'), signal: never });
      const other = pool.lease({ kind: kindOf(wanted.key), signal: never, ...wanted });
      const last = pool.lease({ kind: kindOf('a'), signal: never });
      first.release({ broken: null });
      const { resource, release } = await other;
      expect([resource.key, pool.resources.length]).toEqual([wanted.key, 1]);
      release({ broken: null });
      expect((await last).resource.key).toBe('a');
      await pool.close();
    }
  });

  it('closes and reports a broken shared resource once', async () => {
    const shop = new Shop();
    const broken: string[] = [];
    const pool = poolOf({ mostLocal: 1, policy: { onBroken: (_, detail) => broken.push(detail) } });
    const kind = { ...shop.kind('a'), leasesAtOnce: 2 };
    const leases = [await pool.lease({ kind, signal: never }), await pool.lease({ kind, signal: never })];
    for (const { release } of leases) release({ broken: 'it hung' });
    expect((await pool.lease({ kind, signal: never })).resource).not.toBe(leases[0]!.resource);
    expect([shop.opened, broken]).toEqual([2, ['it hung']]);
    await pool.close();
  });

  it('closes resources that are still opening, and rejects their waiters', async () => {
    const shop = new Shop();
    const pool = poolOf({ mostLocal: 1 });
    const opening = Promise.withResolvers<void>();
    const kind: Kind = { ...shop.kind('a'), open: () => opening.promise.then(() => shop.make('a')) };
    const waiting = pool.lease({ kind, signal: never });
    const closing = pool.close();
    await expect(waiting).rejects.toThrow('closed');
    opening.resolve();
    await closing;
    expect([shop.open, pool.resources]).toEqual([0, []]);
    await expect(pool.lease({ kind, signal: never })).rejects.toThrow('closed');
  });

  it('respects its limits and loses neither a place nor a waiter', async () => {
    const which = fc.nat({ max: 30 });
    const step = fc.oneof(
      fc.record({
        type: fc.constant('ask' as const),
        key: fc.constantFrom('a', 'b', 'remote'),
        isAlone: fc.boolean(),
      }),
      fc.record({ type: fc.constantFrom('give back' as const, 'break' as const, 'leave' as const), which }),
    );
    const bursts = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 30 });
    const limits = fc.record({
      mostLocal: fc.integer({ min: 1, max: 3 }),
      maxInstances: fc.integer({ min: 1, max: 3 }),
      leasesAtOnce: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(limits, bursts, async ({ mostLocal, maxInstances, leasesAtOnce }, run) => {
        const shop = new Shop(maxInstances);
        const pool = poolOf({ mostLocal });
        const asked: Customer[] = [];
        const those = (state: Customer['state']) => asked.filter((one) => one.state === state);
        for (const burst of run) {
          for (const each of burst) {
            if (each.type === 'ask') {
              const kind = { ...shop.kind(each.key), leasesAtOnce };
              asked.push(new Customer(pool, { kind, isAlone: each.isAlone }));
            } else {
              // By then the others have been served.
              if (each.type === 'break') await settled();
              const among = those(each.type === 'leave' ? 'waiting' : 'served');
              const one = among[each.which % among.length];
              const shared = those('served').filter((other) => other.lease!.resource === one?.lease?.resource);
              // A broken resource affects all its leases.
              for (const customer of each.type === 'break' ? shared : one ? [one] : []) customer.end(each.type);
            }
            expect(shop.openOf('a') + shop.openOf('b')).toBeLessThanOrEqual(Math.min(mostLocal, maxInstances));
            expect(shop.openOf('remote')).toBeLessThanOrEqual(maxInstances);
          }
          await settled();
          const leased = Map.groupBy(those('served'), ({ lease }) => lease!.resource);
          for (const [resource, customers] of leased) {
            const isAlone = customers.some((one) => one.isAlone);
            expect(customers.length).toBeLessThanOrEqual(isAlone ? 1 : leasesAtOnce);
            expect(resource.isClosed).toBe(false);
          }
          for (const key of ['a', 'b', 'remote']) {
            // First come, first served, except that exclusive requests may wait longer.
            const alike = asked.filter((one) => one.key === key && (leasesAtOnce === 1 || !one.isAlone));
            const latestServed = alike.findLastIndex((one) => one.wasServed);
            const firstWaiting = alike.findIndex((one) => one.state === 'waiting');
            if (firstWaiting >= 0) expect(latestServed).toBeLessThan(firstWaiting);
          }
        }
        for (; those('served').length > 0; await settled()) those('served')[0]!.end('give back');
        expect(those('waiting')).toEqual([]);
        expect(pool.resources.every(({ state }) => state === 'idle')).toBe(true);
        await pool.close();
        expect(shop.open).toBe(0);
      }),
      { numRuns: 200 },
    );
  });
});

interface Resource {
  key: string;
  isClosed: boolean;
  close(): Promise<void>;
}

type Kind = ResourceKind<Resource>;
type Request = LeaseRequest<Resource>;

function poolOf({ mostLocal, policy }: { mostLocal: number; policy?: Partial<LeasePolicy<Resource, Request>> }) {
  return new LeasePool<Resource, Request>(
    {
      inOrder: (waiting) => waiting,
      choose: (_, idle) => idle[0]!,
      mayReplace: () => true,
      onGrant: () => {},
      onOpenFailed: () => {},
      onBroken: () => {},
      isLasting: () => false,
      closedError: () => new Error('closed'),
      ...policy,
    },
    { mostLocal },
  );
}

/** Creates resources; `a` and `b` are local with a common maker. */
class Shop {
  readonly #all: Resource[] = [];
  readonly #local: Kind['maker'];
  readonly #remote: Kind['maker'];

  constructor(maxInstances = 8) {
    this.#local = { name: 'local', maxInstances };
    this.#remote = { name: 'remote', maxInstances };
  }

  get opened(): number {
    return this.#all.length;
  }

  get open(): number {
    return this.#all.filter(({ isClosed }) => !isClosed).length;
  }

  openOf(wanted: string): number {
    return this.#all.filter(({ key, isClosed }) => key === wanted && !isClosed).length;
  }

  kind(key: string): Kind {
    const isLocal = key !== 'remote';
    return { key, isLocal, maker: isLocal ? this.#local : this.#remote, open: async () => this.make(key) };
  }

  make(key: string): Resource {
    const resource: Resource = {
      key,
      isClosed: false,
      async close() {
        resource.isClosed = true;
      },
    };
    this.#all.push(resource);
    return resource;
  }
}

class Customer {
  readonly key: string;
  readonly isAlone: boolean;
  state: 'waiting' | 'served' | 'gone' = 'waiting';
  wasServed = false;
  lease: Lease<Resource> | null = null;
  readonly #leaving = new AbortController();

  constructor(pool: LeasePool<Resource, Request>, { kind, isAlone }: { kind: Kind; isAlone: boolean }) {
    this.key = kind.key;
    this.isAlone = isAlone;
    pool.lease({ kind, isAlone, signal: this.#leaving.signal }).then(
      (lease) => {
        Object.assign(this, { state: 'served', wasServed: true, lease });
      },
      () => {
        this.state = 'gone';
      },
    );
  }

  end(how: 'give back' | 'break' | 'leave'): void {
    if (how === 'leave') this.#leaving.abort(new Error('left'));
    else {
      this.state = 'gone';
      this.lease?.release({ broken: how === 'break' ? 'broken' : null });
    }
  }
}
