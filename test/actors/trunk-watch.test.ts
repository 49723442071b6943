import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TrunkTargets } from '../../actors/trunk-targets.ts';
import { type TrunkWatch, watchTrunks } from '../../actors/trunk-watch.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Sql } from '../../storage/database.ts';
import { recentProbesOf } from '../../storage/queries/trunk-probes.ts';
import { deleteTrunk, getTrunkById, updateTrunk } from '../../storage/queries/trunks.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { fakeSql } from '../storage/fake-sql.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import {
  anyTrunkTarget,
  createFakeDeliverer,
  createTestClock,
  createTestLogger,
  FakeSip,
  quiet,
  sqlWithFaults,
} from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const secrets = createSecretBox(Buffer.alloc(32, 7));
const HOP = { address: '192.0.2.1', port: null, transport: 'udp' } as const;

let database: TestDatabase;
let caller: Caller;
const open: TrunkWatch[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  caller = await seedCaller(database.sql, { sipUri: 'sip:one.example' });
});
afterEach(async () => {
  for (const watch of open.splice(0)) watch.close();
  await database.drop();
});

describe('trunk watch', () => {
  it('considers an unchecked trunk up', async () => {
    const { watch } = startWatch({ sip: new FakeSip('disconnected') });
    expect(watch.isDown(await trunk())).toBe(false);
    expect(watch.isDown({ ...(await trunk()), id: 'no such trunk' })).toBe(false);
  });

  it('marks a trunk down after two successive missed probes, and logs that once', async () => {
    const { watch, sip, logger } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(false);
    await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(true);
    await watch.probeAll();
    expect(logger.messages('warn')).toEqual(['trunk unreachable']);
  });

  it('marks it up again at the first response', async () => {
    const { watch, sip, logger } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    sip.onProbe = () => true;
    await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(false);
    expect(logger.messages('info')).toEqual(['trunk reachable again']);
  });

  it('reports a gateway that responds again, until its listener leaves', async () => {
    const { watch, sip } = await startedWatch();
    const leave = new AbortController();
    let times = 0;
    watch.onGatewayBack(caller.trunkId, () => times++, leave.signal);
    const restart = async () => {
      for (const isUp of [false, true, false, false, true, true]) {
        sip.onProbe = () => isUp;
        await watch.probeAll();
      }
    };
    await restart();
    expect(times).toBe(1);
    leave.abort();
    await restart();
    expect(times).toBe(1);
  });

  it('probes only the checked address, and never a forbidden one', async () => {
    const sip = new FakeSip();
    let address: string | null = '192.0.2.7';
    const locate = async () => {
      if (address === null) throw new TandemError('TRUNK_HOST_NOT_ALLOWED', 'sip_uri leads to a private network.');
      return [{ address, port: null, transport: 'udp' as const }];
    };
    const { watch, clock, logger } = startWatch({ sip, trunkTargets: { locate } });
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
    expect(sip.probed).toMatchObject([{ trunk: { sipUri: 'sip:one.example', nextHop: { address: '192.0.2.7' } } }]);
    address = null;
    await watch.probeAll();
    await watch.probeAll();
    expect(sip.probed).toHaveLength(1);
    expect(watch.isDown(await trunk())).toBe(true);
    expect(logger.messages('warn')).toEqual(['trunk unreachable']);
  });

  it('resets a single miss with the next response', async () => {
    const { watch, sip } = await startedWatch();
    for (const reachable of [false, true, false]) {
      sip.onProbe = () => reachable;
      await watch.probeAll();
    }
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('evaluates each trunk separately', async () => {
    const other = await seedCaller(database.sql, { sipUri: 'sip:two.example' });
    const { watch, sip } = await startedWatch();
    sip.onProbe = ({ sipUri }) => sipUri === 'sip:two.example';
    await watch.probeAll();
    await watch.probeAll();
    expect([watch.isDown(await trunk()), watch.isDown(await trunk(other.trunkId))]).toEqual([true, false]);
  });

  it('probes at once and then periodically', async () => {
    const { sip, clock } = await startedWatch();
    expect(sip.probed).toHaveLength(1);
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
    clock.advance(29_999);
    expect(clock.waiting()).toEqual([1]);
    clock.advance(1);
    await eventually(() => expect(sip.probed).toHaveLength(2));
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
  });

  it('pauses while the SIP server is away, without counting misses', async () => {
    const sip = new FakeSip('disconnected');
    sip.onProbe = () => false;
    const { watch } = startWatch({ sip });
    await watch.probeAll();
    await watch.probeAll();
    expect(sip.probed).toEqual([]);
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('ignores misses when the SIP server disappears during a probe', async () => {
    const { watch, sip } = await startedWatch();
    for (let round = 0; round < 2; round += 1) {
      sip.become('connected');
      sip.onProbe = () => {
        sip.become('disconnected');
        return false;
      };
      await watch.probeAll();
    }
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('continues when the trunks cannot be read', async () => {
    const away = fakeSql(() => Promise.reject(new Error('storage is away')));
    const { clock, logger } = startWatch({ sql: away });
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
    expect(logger.messages('warn')).toEqual(['probing trunks failed']);
  });

  it('probes other trunks when the password of one cannot be decrypted, and logs that', async () => {
    const other = await seedCaller(database.sql, { sipUri: 'sip:two.example' });
    const sealed = secrets.seal('s3cret', trunkPasswordContext('another trunk'));
    await database.sql`update trunks set password_encrypted = ${sealed} where id = ${caller.trunkId}`;
    const { sip, watch, logger } = await startedWatch();
    expect(sip.probed.map(({ trunk }) => trunk.sipUri)).toEqual(['sip:two.example']);
    expect(watch.isDown(await trunk(other.trunkId))).toBe(false);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { trunkId: caller.trunkId } }]);
  });

  it('removes a deleted trunk', async () => {
    const { watch, sip } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    await deleteTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId, now: NOW });
    await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('finishes a round only after the probe that another round began', async () => {
    const gate = Promise.withResolvers<boolean>();
    const { watch, sip } = startWatch();
    sip.onProbe = () => gate.promise;
    await eventually(() => expect(sip.probed).toHaveLength(1));
    let isDone = false;
    const round = watch.probeAll().then(() => {
      isDone = true;
    });
    // Enough for the round to read the trunks.
    for (let reads = 0; reads < 10; reads += 1) await trunk();
    expect(isDone).toBe(false);
    gate.resolve(true);
    await round;
    expect(sip.probed).toHaveLength(1);
    expect(await trunk()).toMatchObject({ reachability: 'up' });
  });

  it('keeps a carrier up that ignores OPTIONS and answers calls', async () => {
    const { watch, sip } = startWatch();
    sip.onProbe = () => false;
    for (let round = 0; round < 3; round += 1) await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(false);
    expect(await trunk()).toMatchObject({ reachability: 'unknown', reachabilityReason: 'options_not_answered' });
    watch.dialing(await trunk())[0]!.onSign({ type: 'answered' });
    await eventually(async () =>
      expect(await trunk()).toMatchObject({ reachability: 'up', reachabilityReason: 'call_answered' }),
    );
    for (let round = 0; round < 3; round += 1) await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(false);
    expect(await trunk()).toMatchObject({ reachability: 'up', gatewayHealth: [{ answersOptions: false }] });
  });

  it('marks a carrier down that ignores OPTIONS and a call', async () => {
    const { watch, sip } = startWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    watch.dialing(await trunk())[0]!.onSign({ type: 'unanswered', reason: 'no_response' });
    expect(watch.isDown(await trunk())).toBe(true);
  });

  it('allows one trial call a minute over a carrier that is down', async () => {
    const { watch, sip, clock } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    sip.become('disconnected');
    clock.advance(59_999);
    expect(watch.isDown(await trunk())).toBe(true);
    clock.advance(1);
    expect(watch.isDown(await trunk())).toBe(false);
    const [choice] = watch.dialing(await trunk());
    expect(watch.isDown(await trunk())).toBe(true);
    choice!.onSign({ type: 'answered' });
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('accepts calls to a trunk that is down as soon as it has another address or no health checks', async () => {
    const { watch, sip } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    expect(watch.isDown(await trunk())).toBe(true);
    const gateway = { sipUri: 'sip:one.example', transport: null, priority: 0, weight: 1 };
    for (const patch of [{ sipUri: 'sip:two.example' }, { gateways: [gateway] }, { healthMode: 'none' }] as const) {
      expect(watch.isDown({ ...(await trunk()), ...patch })).toBe(false);
    }
  });

  it('probes at once when a carrier that answers OPTIONS ignores a call', async () => {
    const { watch, sip } = await startedWatch();
    sip.onProbe = () => false;
    const row = await trunk();
    watch.dialing(row)[0]!.onSign({ type: 'unanswered', reason: 'transport_error' });
    expect(watch.isDown(row)).toBe(false);
    await eventually(async () => expect(watch.isDown(await trunk())).toBe(true));
    expect(sip.probed).toHaveLength(2);
  });

  it('ignores unanswered calls while OPTIONS are answered', async () => {
    const { watch, sip } = await startedWatch();
    for (let call = 0; call < 3; call += 1) {
      watch.dialing(await trunk())[0]!.onSign({ type: 'unanswered', reason: 'no_response' });
    }
    await eventually(() => expect(sip.probed.length).toBeGreaterThan(1));
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('neither probes nor blocks with the mode none, and still shows the results of calls', async () => {
    await database.sql`update trunks set health_mode = 'none'`;
    const { watch, sip } = startWatch();
    await watch.probeAll();
    expect(sip.probed).toEqual([]);
    for (let call = 0; call < 2; call += 1) {
      watch.dialing(await trunk())[0]!.onSign({ type: 'unanswered', reason: 'transport_error' });
    }
    await eventually(async () =>
      expect(await trunk()).toMatchObject({ reachability: 'down', reachabilityReason: 'transport_error' }),
    );
    expect(watch.isDown(await trunk())).toBe(false);
  });

  it('probes each trunk at its own interval', async () => {
    await database.sql`update trunks set health_interval_s = 10`;
    const { sip, clock } = startWatch();
    await eventually(() => expect(clock.waiting()).toEqual([10_000]));
    clock.advance(10_000);
    await eventually(() => expect(sip.probed).toHaveLength(2));
  });

  it('stores each change with one webhook event, even if two servers detect it', async () => {
    await subscribe();
    const first = await startedWatch();
    const second = await startedWatch();
    for (const { sip } of [first, second]) sip.onProbe = () => false;
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([first.watch.probeAll(), second.watch.probeAll()]);
    }
    const down = { trunk_id: caller.trunkId, name: 'Carrier', reason: 'no_response', since: NOW.toISOString() };
    expect(await webhookEvents()).toMatchObject([{ event: 'trunk.down', data: down }]);
    expect(await trunk()).toMatchObject({ reachability: 'down', reachabilitySince: NOW });
    for (const { sip } of [first, second]) sip.onProbe = () => true;
    await Promise.all([first.watch.probeAll(), second.watch.probeAll()]);
    const up = { ...down, reason: 'options_answered' };
    const events = (await webhookEvents()) as { event: string }[];
    expect(events).toHaveLength(2);
    expect(events).toContainEqual(expect.objectContaining({ event: 'trunk.up', data: up }));
    expect([...first.deliverer.enqueued, ...second.deliverer.enqueued]).toHaveLength(2);
  });

  it("emits no event for a carrier's first response", async () => {
    await subscribe();
    await startedWatch();
    await eventually(async () => expect(await trunk()).toMatchObject({ reachability: 'up' }));
    expect(await webhookEvents()).toEqual([]);
  });

  it("continues from the last server's state", async () => {
    await subscribe();
    const first = await startedWatch();
    first.sip.onProbe = () => false;
    await first.watch.probeAll();
    await first.watch.probeAll();
    first.watch.close();
    await startedWatch();
    await eventually(async () => expect(await trunk()).toMatchObject({ reachability: 'up' }));
    expect(await webhookEvents()).toHaveLength(2);
  });

  it('resets the state of a moved or disabled trunk', async () => {
    const { watch } = await startedWatch();
    expect(await trunk()).toMatchObject({ reachability: 'up', gatewayHealth: [{ answersOptions: true }] });
    const id = { id: caller.trunkId, workspaceId: caller.workspaceId, now: NOW };
    const unknown = { reachability: 'unknown', reachabilitySince: null, gatewayHealth: [] };
    await updateTrunk(database.sql, { ...id, patch: { sipUri: 'sip:two.example' } });
    expect(await trunk()).toMatchObject({ ...unknown, reachabilityReason: 'not_checked' });
    await watch.probeAll();
    expect(await trunk()).toMatchObject({ reachability: 'up' });
    await updateTrunk(database.sql, { ...id, patch: { status: 'disabled' } });
    expect(await trunk()).toMatchObject(unknown);
  });

  it('stores a change later when storage fails', async () => {
    let isAway = false;
    const sql = sqlWithFaults(database.sql, (run) =>
      isAway ? Promise.reject(new Error('storage is away')) : (run() as Promise<unknown>),
    );
    const { watch, sip, logger } = startWatch({ sql });
    sip.onProbe = () => true;
    isAway = true;
    await watch.probeAll();
    expect(logger.messages('warn')).toContain('reachability of a trunk could not be stored');
    isAway = false;
    await watch.probeAll();
    expect(await trunk()).toMatchObject({ reachability: 'up' });
  });

  describe('over several gateways', () => {
    const GATEWAYS = [
      { sipUri: 'sip:one.example', transport: null, priority: 0, weight: 1 },
      { sipUri: 'sip:two.example', transport: 'tcp' as const, priority: 1, weight: 1 },
      { sipUri: 'sip:three.example', transport: null, priority: 1, weight: 3 },
    ];
    beforeEach(async () => {
      const { trunkId: id, workspaceId } = caller;
      await updateTrunk(database.sql, { id, workspaceId, patch: { gateways: GATEWAYS }, now: NOW });
    });

    async function order(watch: TrunkWatch): Promise<string[]> {
      return watch.dialing(await trunk()).map(({ gateway }) => gateway.sipUri.replace(/^sip:|\.example$/g, ''));
    }

    it('reports up while one responds, and down when none does', async () => {
      await subscribe();
      const { watch, sip } = await startedWatch();
      expect(sip.probed.map(({ trunk: { sipUri, transport } }) => `${sipUri} ${transport}`)).toEqual([
        'sip:one.example udp',
        'sip:two.example tcp',
        'sip:three.example udp',
      ]);
      sip.onProbe = ({ sipUri }) => sipUri === 'sip:two.example';
      for (let round = 0; round < 2; round += 1) await watch.probeAll();
      expect(await trunk()).toMatchObject({
        reachability: 'up',
        gatewayHealth: [{ state: 'down', reason: 'no_response' }, { state: 'up' }, { state: 'down' }],
      });
      expect(await webhookEvents()).toEqual([]);
      sip.onProbe = () => false;
      for (let round = 0; round < 2; round += 1) await watch.probeAll();
      expect(watch.isDown(await trunk())).toBe(true);
      expect(await webhookEvents()).toMatchObject([{ event: 'trunk.down' }]);
    });

    it('orders them by priority, then by weight', async () => {
      const { watch } = startWatch({ random: () => 0 });
      expect(await order(watch)).toEqual(['one', 'two', 'three']);
      const { watch: other } = startWatch({ random: () => 0.25 });
      expect(await order(other)).toEqual(['one', 'three', 'two']);
    });

    it('probes a gateway that is silent on a call, and trusts misses only of responsive ones', async () => {
      const { watch, sip } = await startedWatch({ random: () => 0 });
      const [one, two] = watch.dialing(await trunk());
      sip.onProbe = ({ sipUri }) => sipUri !== 'sip:one.example';
      expect([await one!.isGone(HOP), await two!.isGone(HOP)]).toEqual([true, false]);
      const { watch: fresh, sip: silent } = startWatch({ sip: new FakeSip('disconnected'), random: () => 0 });
      silent.onProbe = () => false;
      expect(await fresh.dialing({ ...(await trunk()), gatewayHealth: [] })[0]!.isGone(HOP)).toBe(false);
    });

    it('puts unreachable ones last', async () => {
      const { watch, sip } = await startedWatch({ random: () => 0 });
      sip.onProbe = ({ sipUri }) => sipUri !== 'sip:one.example';
      for (let round = 0; round < 2; round += 1) await watch.probeAll();
      expect(await order(watch)).toEqual(['two', 'three', 'one']);
    });

    it('omits those that requested a pause until it ends', async () => {
      const { watch, clock } = startWatch({ random: () => 0 });
      const pause = async (index: number, retryAfterS: number) =>
        watch
          .dialing(await trunk())
          .find(({ gateway }) => gateway.sipUri === GATEWAYS[index]!.sipUri)!
          .onSign({ type: 'busy', retryAfterS });
      await pause(0, 60);
      expect(await order(watch)).toEqual(['two', 'three']);
      await pause(1, 30);
      await pause(2, 20);
      expect(await order(watch)).toEqual(['three']);
      clock.advance(60_000);
      expect(await order(watch)).toEqual(['one', 'two', 'three']);
    });

    it('resets the state when the gateways change', async () => {
      const { watch, sip } = await startedWatch();
      const patch = { gateways: GATEWAYS.slice(0, 2) };
      await updateTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId, patch, now: NOW });
      expect(await trunk()).toMatchObject({ reachability: 'unknown', gatewayHealth: [] });
      sip.probed.length = 0;
      await watch.probeAll();
      expect(sip.probed).toHaveLength(2);
    });
  });

  describe('trunk probe on request', () => {
    it('returns the outcome for each gateway, counts, and is stored', async () => {
      const { watch, sip } = await startedWatch();
      await eventually(async () => expect(await recentProbesOf(database.sql, caller.trunkId)).toHaveLength(1));
      sip.onProbe = () => false;
      const silent = { sipStatus: null, roundTripMs: null, silence: 'no_response' };
      expect(await watch.probe(caller.trunkId)).toEqual([
        { sipUri: 'sip:one.example', transport: 'udp', at: expect.any(Date), ...silent },
      ]);
      await watch.probe(caller.trunkId);
      expect(watch.isDown(await trunk())).toBe(true);
      sip.onProbe = () => true;
      expect(await watch.probe(caller.trunkId)).toMatchObject([{ sipStatus: 200, roundTripMs: 1, silence: null }]);
      expect(await recentProbesOf(database.sql, caller.trunkId)).toMatchObject([
        { node: 'node-1', sipStatus: 200, roundTripMs: 1, silence: null },
        silent,
        silent,
        { sipStatus: 200 },
      ]);
    });

    it('joins a running probe, and keeps the last 20', async () => {
      const { watch, sip } = await startedWatch();
      const gate = Promise.withResolvers<boolean>();
      sip.onProbe = () => gate.promise;
      const both = [watch.probe(caller.trunkId), watch.probe(caller.trunkId)];
      await eventually(() => expect(sip.probed).toHaveLength(2));
      gate.resolve(true);
      const [one, two] = await Promise.all(both);
      expect(one).toEqual(two);
      for (let i = 0; i < 25; i++) await watch.probe(caller.trunkId);
      expect(await recentProbesOf(database.sql, caller.trunkId)).toHaveLength(20);
      expect(await database.sql`select 1 from trunk_probes`).toHaveLength(20);
    });

    it('changes nothing for a trunk without probes, and fails for an unknown one or without a SIP server', async () => {
      const patch = { healthMode: 'none' as const };
      await updateTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId, patch, now: NOW });
      const { watch, sip } = startWatch();
      sip.onProbe = () => false;
      for (let i = 0; i < 3; i++) await watch.probe(caller.trunkId);
      expect(await trunk()).toMatchObject({ reachability: 'unknown' });
      await expect(watch.probe(randomUUID())).rejects.toMatchObject({ code: 'TRUNK_NOT_FOUND' });
      sip.become('disconnected');
      await expect(watch.probe(caller.trunkId)).rejects.toMatchObject({ code: 'CARRIER_LINE_DOWN' });
    });
  });

  it('cancels its probes and its timer when closed', async () => {
    const { watch, sip, clock } = await startedWatch();
    const gate = Promise.withResolvers<boolean>();
    sip.onProbe = () => gate.promise;
    const probing = watch.probeAll();
    await eventually(() => expect(sip.probed).toHaveLength(2));
    watch.close();
    expect(sip.probed[1]?.signal.aborted).toBe(true);
    gate.resolve(false);
    await probing;
    expect(clock.waiting()).toEqual([]);
  });

  it('starts no timer when closed during its first round', async () => {
    const sip = new FakeSip();
    const gate = Promise.withResolvers<boolean>();
    sip.onProbe = () => gate.promise;
    const { watch, clock } = startWatch({ sip });
    await eventually(() => expect(sip.probed).toHaveLength(1));
    watch.close();
    gate.resolve(true);
    await quiet();
    expect(clock.waiting()).toEqual([]);
  });
});

function trunk(id = caller.trunkId) {
  return getTrunkById(database.sql, id).then((row) => row!);
}

async function webhookEvents(): Promise<unknown[]> {
  const rows = await database.sql<{ body: string }[]>`select body from deliveries order by created_at, id`;
  return rows.map(({ body }) => JSON.parse(body));
}

function subscribe() {
  return createWebhook(database.sql, {
    id: randomUUID(),
    workspaceId: caller.workspaceId,
    url: 'https://hooks.example.com/',
    events: ['trunk.down', 'trunk.up'],
    secretEncrypted: Buffer.alloc(8),
    now: NOW,
  });
}

function startWatch({
  sip = new FakeSip(),
  sql = database.sql,
  trunkTargets = anyTrunkTarget,
  random = Math.random,
}: {
  sip?: FakeSip;
  sql?: Sql;
  trunkTargets?: TrunkTargets;
  random?: () => number;
} = {}) {
  const clock = createTestClock();
  const logger = createTestLogger();
  const deliverer = createFakeDeliverer();
  const watch = watchTrunks({ sip, sql, secrets, trunkTargets, deliverer, clock, logger, random, node: 'node-1' });
  open.push(watch);
  return { watch, sip, clock, logger, deliverer };
}

async function startedWatch(options: Parameters<typeof startWatch>[0] = {}) {
  const started = startWatch(options);
  await eventually(() => expect(started.clock.waiting()).toEqual([30_000]));
  return started;
}
