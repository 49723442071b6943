import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { openNodeDirectory } from '../../storage/nodes/node-directory.ts';
import { type LostNode, markNodeSettled, type NodeReport, nodeStates } from '../../storage/queries/nodes.ts';
import { createTestLogger } from '../actors/fakes.ts';
import { eventually } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';

const LEASE_MS = 400;
const RENEWAL_MS = 40;
const IDLE: NodeReport = { isDraining: false, liveCalls: 0, mediaLoad: 0, canPlaceCalls: true };

onEveryServer('node directory', (database) => {
  /** `pause` stops renewals, as SIGSTOP would. */
  async function openNode(name: string, { node = `${name}-${randomUUID()}` } = {}) {
    const frozen = { isFrozen: false };
    const settled: LostNode[] = [];
    const expelled: string[] = [];
    const directory = await openNodeDirectory({
      sql: freezable(database().sql, frozen),
      ...{
        node,
        boot: randomUUID(),
        recordingsDir: `/recordings/${name}`,
        version: '1.2.3',
        logger: createTestLogger(),
      },
      ...{ leaseMs: LEASE_MS, renewalMs: RENEWAL_MS },
      onExpelled: (reason) => void expelled.push(reason),
    });
    onTestFinished(() => directory.close());
    directory.onLost(async (lost) => void settled.push(lost));
    return { directory, frozen, settled, expelled };
  }

  it('shows other nodes and their reports to each node', async () => {
    const one = await openNode('one');
    const two = await openNode('two');
    two.directory.reportBy(() => ({ ...IDLE, liveCalls: 7, mediaLoad: 0.5 }));
    await Promise.all([one.directory.start(), two.directory.start()]);
    await eventually(() =>
      expect(one.directory.peers()).toMatchObject([{ node: two.directory.node, liveCalls: 7, mediaLoad: 0.5 }]),
    );
  });

  it('reports node states by the database clock, and forgets settled nodes after a day', async () => {
    const { sql } = database();
    const { directory } = await openNode('stated');
    directory.reportBy(() => ({ ...IDLE, liveCalls: 3 }));
    await directory.start();
    const { node, boot } = directory;
    const stateOf = async () => (await nodeStates(sql)).find((state) => state.node === node);
    const state = await stateOf();
    expect(state).toMatchObject({ boot, version: '1.2.3', liveCalls: 3, isSettled: false, takenOverBy: null });
    expect(state!.leaseLeftMs).toBeLessThanOrEqual(LEASE_MS);
    expect(state!.silentForMs).not.toBeNull();
    await directory.close();
    expect((await stateOf())!.leaseLeftMs).toBeLessThanOrEqual(0);
    await sql`update nodes set settled_at = now() where node = ${node}`;
    expect(await stateOf()).toMatchObject({ isSettled: true });
    await sql`update nodes set settled_at = now() - interval '25 hours' where node = ${node}`;
    expect(await stateOf()).toBeUndefined();
  });

  it('looks for lost nodes only while there is one', async () => {
    await database().sql`update nodes set settled_at = now()`;
    const statements: string[] = [];
    const sql = new Proxy(database().sql, {
      apply(target, self, args: [readonly string[]]) {
        statements.push(args[0].join(''));
        return Reflect.apply(target, self, args);
      },
    });
    const directory = await openNodeDirectory({
      ...{ sql, node: `alone-${randomUUID()}`, boot: randomUUID(), recordingsDir: '/recordings' },
      ...{ leaseMs: LEASE_MS, renewalMs: RENEWAL_MS, logger: createTestLogger(), onExpelled: () => {} },
    });
    onTestFinished(() => directory.close());
    let renewals = 0;
    directory.onRenewed(() => {
      renewals += 1;
    });
    await directory.start();
    // It may take over from then on.
    await eventually(() => expect(renewals).toBeGreaterThan(2 * (LEASE_MS / RENEWAL_MS)));
    const takeovers = () => statements.filter((text) => text.includes('set taken_over_by'));
    expect(takeovers()).toEqual([]);
    const lost = await openNode('lost');
    await lost.directory.close();
    await eventually(() => expect(takeovers()).not.toEqual([]));
  });

  it('lets one other node take over an expired one, once', async () => {
    const lost = await openNode('lost');
    await lost.directory.start();
    const heirs = [await openNode('heir'), await openNode('heir')];
    await Promise.all(heirs.map(({ directory }) => directory.start()));
    lost.frozen.isFrozen = true;
    const taken = () => heirs.flatMap(({ settled }) => settled);
    await eventually(() => expect(taken()).toHaveLength(1));
    expect(taken()[0]).toMatchObject({ node: lost.directory.node, boot: lost.directory.boot });
    expect(taken()[0]!.recordingsDir).toBe('/recordings/lost');
    expect(taken()[0]!.seenAt).toBeInstanceOf(Date);
    await eventually(async () => {
      const [row] = await database().sql`select settled_at from nodes where node = ${lost.directory.node}`;
      expect(row?.settledAt).toBeInstanceOf(Date);
    });
    lost.frozen.isFrozen = false;
    await eventually(() => expect(lost.expelled).toHaveLength(1));
    expect(taken()).toHaveLength(1);
  });

  it('repeats a failed settlement', async () => {
    const lost = await openNode('lost');
    const heir = await openNode('heir');
    let failures = 0;
    heir.directory.onLost(async () => {
      failures += 1;
      if (failures < 3) throw new Error('the database is away');
    });
    await Promise.all([lost.directory.start(), heir.directory.start()]);
    await lost.directory.close();
    await eventually(() => expect(failures).toBe(3));
  });

  it('repeats a failed settlement even if the lost node restarted', async () => {
    const lost = await openNode('lost');
    const heir = await openNode('heir');
    const settled: string[] = [];
    let failures = 0;
    heir.directory.onLost(async ({ boot }) => {
      failures += 1;
      if (failures === 1) {
        await openNode('lost', { node: lost.directory.node });
        throw new Error('the database is away');
      }
      settled.push(boot);
    });
    await Promise.all([lost.directory.start(), heir.directory.start()]);
    await lost.directory.close();
    await eventually(() => expect(settled).toEqual([lost.directory.boot]));
  });

  it('renews its own lease while it settles a lost node', async () => {
    const lost = await openNode('lost');
    const [heir, watcher] = [await openNode('heir'), await openNode('watcher')];
    const isSettling = Promise.withResolvers<void>();
    const settled = Promise.withResolvers<void>();
    onTestFinished(() => settled.resolve());
    const settle = async () => {
      isSettling.resolve();
      await settled.promise;
    };
    heir.directory.onLost(settle);
    await Promise.all([lost.directory.start(), heir.directory.start()]);
    await lost.directory.close();
    await isSettling.promise;
    await watcher.directory.start();
    const leaseOf = async () => {
      const [row] = await database().sql`select lease_until from nodes where node = ${heir.directory.node}`;
      return (row!.leaseUntil as Date).getTime();
    };
    const before = await leaseOf();
    await eventually(async () => expect(await leaseOf()).toBeGreaterThan(before + LEASE_MS));
    expect([heir, watcher].flatMap(({ expelled }) => expelled)).toEqual([]);
    expect(watcher.settled).toEqual([]);
  });

  it('does not mark a settlement that another node took over', async () => {
    const { sql } = database();
    const lost = await openNode('lost');
    await lost.directory.close();
    const settledAt = async () => {
      const [row] = await sql`select settled_at from nodes where node = ${lost.directory.node}`;
      return row!.settledAt;
    };
    await sql`update nodes set taken_over_by = 'second' where node = ${lost.directory.node}`;
    const { node, boot } = lost.directory;
    await markNodeSettled(sql, { node, boot, takenOverBy: 'first', now: new Date() });
    expect(await settledAt()).toBeNull();
    await markNodeSettled(sql, { node, boot, takenOverBy: 'second', now: new Date() });
    expect(await settledAt()).toBeInstanceOf(Date);
  });

  it('passes on the unsettled takeovers of a lost node', async () => {
    const { sql } = database();
    const [first, taker] = [await openNode('first'), await openNode('taker')];
    await Promise.all([first.directory.start(), taker.directory.start()]);
    await Promise.all([first.directory.close(), taker.directory.close()]);
    await sql`update nodes set taken_over_by = ${taker.directory.node} where node = ${first.directory.node}`;
    const last = await openNode('last');
    await last.directory.start();
    const names = [first, taker].map(({ directory }) => directory.node).sort();
    await eventually(() => expect(last.settled.map(({ node }) => node).sort()).toEqual(names));
  });

  it('keeps the last sign of life of a boot until the next one starts', async () => {
    const before = await openNode('node');
    await before.directory.start();
    await before.directory.close();
    const { node } = before.directory;
    const after = await openNode('node', { node });
    expect(after.directory.previousSeenAt).toBeInstanceOf(Date);
    await after.directory.renew();
    const again = await openNode('node', { node });
    expect(again.directory.previousSeenAt).toEqual(after.directory.previousSeenAt);
  });

  it('gives every node time to renew after a database failure', async () => {
    const [one, two] = [await openNode('one'), await openNode('two')];
    await Promise.all([one.directory.start(), two.directory.start()]);
    await eventually(() => expect(one.directory.peers()).toHaveLength(1));
    one.frozen.isFrozen = true;
    two.frozen.isFrozen = true;
    await eventually(async () => {
      const [live] = await database().sql<{ count: number }[]>`
        select count(*)::int from nodes where lease_until > clock_timestamp()`;
      expect(live!.count).toBe(0);
    });
    one.frozen.isFrozen = false;
    two.frozen.isFrozen = false;
    await eventually(() => expect(one.directory.peers()).toHaveLength(1));
    await eventually(() => expect(two.directory.peers()).toHaveLength(1));
    expect([one, two].flatMap(({ settled, expelled }) => [...settled, ...expelled])).toEqual([]);
  });

  it('keeps its peers after a database failure until they had time to renew', async () => {
    const [one, two] = [await openNode('one'), await openNode('two')];
    const counts: number[] = [];
    one.directory.onRenewed((peers) => counts.push(peers.length));
    await Promise.all([one.directory.start(), two.directory.start()]);
    await eventually(() => expect(one.directory.peers()).toHaveLength(1));
    one.frozen.isFrozen = true;
    two.frozen.isFrozen = true;
    await eventually(async () => {
      const [live] = await database().sql<{ count: number }[]>`
        select count(*)::int from nodes where lease_until > clock_timestamp()`;
      expect(live!.count).toBe(0);
    });
    counts.length = 0;
    one.frozen.isFrozen = false;
    await one.directory.renew();
    expect(counts[0]).toBe(1);
    await eventually(() => expect(one.directory.peers()).toHaveLength(0));
    await eventually(() => expect(one.settled).toMatchObject([{ node: two.directory.node }]));
  });
});

function freezable(sql: Sql, frozen: { isFrozen: boolean }): Sql {
  return new Proxy(sql, {
    apply(target, self, args) {
      if (frozen.isFrozen && Array.isArray(args[0]) && 'raw' in args[0]) throw new Error('no connection');
      return Reflect.apply(target, self, args);
    },
  });
}
