import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TrunkWatch, watchTrunks } from '../../actors/trunk-watch.ts';
import type { Sql } from '../../storage/database.ts';
import { deleteTrunk } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger, FakeSip, quiet } from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const secrets = createSecretBox(Buffer.alloc(32, 7));

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

describe('the watch over the trunks', () => {
  it('counts a trunk that was never asked as up', () => {
    const { watch } = startWatch({ sip: new FakeSip('disconnected') });
    expect(watch.isDown(caller.trunkId)).toBe(false);
    expect(watch.isDown('no such trunk')).toBe(false);
  });

  it('takes a trunk for down after two missed probes in a row, and says so once', async () => {
    const { watch, sip, logger } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    expect(watch.isDown(caller.trunkId)).toBe(false);
    await watch.probeAll();
    expect(watch.isDown(caller.trunkId)).toBe(true);
    await watch.probeAll();
    expect(logger.messages('warn')).toEqual(['trunk unreachable']);
  });

  it('takes it for up again with the first answer', async () => {
    const { watch, sip, logger } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    sip.onProbe = () => true;
    await watch.probeAll();
    expect(watch.isDown(caller.trunkId)).toBe(false);
    expect(logger.messages('info')).toEqual(['trunk reachable again']);
  });

  it('forgets a single miss with the next answer', async () => {
    const { watch, sip } = await startedWatch();
    for (const reachable of [false, true, false]) {
      sip.onProbe = () => reachable;
      await watch.probeAll();
    }
    expect(watch.isDown(caller.trunkId)).toBe(false);
  });

  it('judges each trunk by its own answers', async () => {
    const other = await seedCaller(database.sql, { sipUri: 'sip:two.example' });
    const { watch, sip } = await startedWatch();
    sip.onProbe = ({ sipUri }) => sipUri === 'sip:two.example';
    await watch.probeAll();
    await watch.probeAll();
    expect([watch.isDown(caller.trunkId), watch.isDown(other.trunkId)]).toEqual([true, false]);
  });

  it('asks at once and then at intervals', async () => {
    const { sip, clock } = await startedWatch();
    expect(sip.probed).toHaveLength(1);
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
    clock.advance(29_999);
    expect(clock.waiting()).toEqual([1]);
    clock.advance(1);
    await eventually(() => expect(sip.probed).toHaveLength(2));
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
  });

  it('asks nobody while the SIP server is away, and blames no carrier for it', async () => {
    const sip = new FakeSip('disconnected');
    sip.onProbe = () => false;
    const { watch } = startWatch({ sip });
    await watch.probeAll();
    await watch.probeAll();
    expect(sip.probed).toEqual([]);
    expect(watch.isDown(caller.trunkId)).toBe(false);
  });

  it('blames no carrier for a SIP server that is lost while it asks', async () => {
    const { watch, sip } = await startedWatch();
    for (let round = 0; round < 2; round += 1) {
      sip.become('connected');
      sip.onProbe = () => {
        sip.become('disconnected');
        return false;
      };
      await watch.probeAll();
    }
    expect(watch.isDown(caller.trunkId)).toBe(false);
  });

  it('goes on when the trunks cannot be read', async () => {
    const away = (() => Promise.reject(new Error('storage is away'))) as unknown as Sql;
    const { clock, logger } = startWatch({ sql: away });
    await eventually(() => expect(clock.waiting()).toEqual([30_000]));
    expect(logger.messages('warn')).toEqual(['probing trunks failed']);
  });

  it('asks the other trunks although the password of one cannot be opened, and says so', async () => {
    const other = await seedCaller(database.sql, { sipUri: 'sip:two.example' });
    const sealed = secrets.seal('s3cret', trunkPasswordContext('another trunk'));
    await database.sql`update trunks set password_encrypted = ${sealed} where id = ${caller.trunkId}`;
    const { sip, watch, logger } = await startedWatch();
    expect(sip.probed.map(({ trunk }) => trunk.sipUri)).toEqual(['sip:two.example']);
    expect(watch.isDown(other.trunkId)).toBe(false);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { trunkId: caller.trunkId } }]);
  });

  it('forgets a trunk that is gone', async () => {
    const { watch, sip } = await startedWatch();
    sip.onProbe = () => false;
    await watch.probeAll();
    await watch.probeAll();
    await deleteTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId, now: NOW });
    await watch.probeAll();
    expect(watch.isDown(caller.trunkId)).toBe(false);
  });

  it('ends its probes and its timer when it is closed', async () => {
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

  it('starts no timer when it is closed during its first round', async () => {
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

function startWatch({ sip = new FakeSip(), sql = database.sql }: { sip?: FakeSip; sql?: Sql } = {}) {
  const clock = createTestClock();
  const logger = createTestLogger();
  const watch = watchTrunks({ sip, sql, secrets, clock, logger });
  open.push(watch);
  return { watch, sip, clock, logger };
}

/** After its first round. */
async function startedWatch() {
  const started = startWatch();
  await eventually(() => expect(started.clock.waiting()).toEqual([30_000]));
  return started;
}
