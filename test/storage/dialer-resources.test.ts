import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { createApiKey, findApiKey, listApiKeys, revokeApiKey, touchApiKey } from '../../storage/queries/api-keys.ts';
import { admitCall } from '../../storage/queries/calls.ts';
import {
  claimDelivery,
  type DeliveryRow,
  dueDeliveries,
  getDelivery,
  insertDelivery,
  listAttempts,
  recordAttempt,
} from '../../storage/queries/deliveries.ts';
import { availableNumbers, listNumbers, poolCounts, releaseNumber, rentNumber } from '../../storage/queries/numbers.ts';
import {
  createRecording,
  getRecording,
  unfinishedRecordings,
  updateRecording,
} from '../../storage/queries/recordings.ts';
import {
  deleteTrunk,
  getTrunk,
  getTrunkById,
  hasTrunk,
  listActiveTrunks,
  listTrunks,
  setDefaultCallerId,
  shareTrunk,
  updateTrunk,
} from '../../storage/queries/trunks.ts';
import {
  addMember,
  bootstrapWorkspace,
  findUserByEmail,
  getWorkspace,
  listWorkspacesOfUser,
  roleOf,
} from '../../storage/queries/workspaces.ts';
import { onEveryServer } from './every-server.ts';
import { lockWaits } from './lock-waits.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace } from './seed.ts';

const FIRST_PAGE = { page: 1, limit: 20 };

onEveryServer('workspaces and keys', (database) => {
  it('bootstraps one workspace for concurrently starting nodes', async () => {
    const { sql } = database();
    const input = {
      name: 'Main',
      plan: 'enterprise' as const,
      owner: { email: 'Owner@Example.com', passwordHash: null },
      now: NOW,
    };
    const results = await Promise.all(Array.from({ length: 5 }, () => bootstrapWorkspace(sql, input)));
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect(new Set(results.map((result) => result.workspace.id)).size).toBe(1);
    const withPassword = { ...input, owner: { ...input.owner, passwordHash: 'hash' } };
    expect((await bootstrapWorkspace(sql, withPassword)).user).toMatchObject({ passwordHash: 'hash' });
    const other = { ...input, owner: { ...input.owner, passwordHash: 'other' } };
    expect((await bootstrapWorkspace(sql, other)).user).toMatchObject({ passwordHash: 'hash' });
    expect(await findUserByEmail(sql, 'OWNER@example.com')).toMatchObject({ email: 'owner@example.com' });
  });

  it('returns roles by membership, and nothing for invalid ids', async () => {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql);
    const other = await seedWorkspace(sql);
    const of = (userId: number) => roleOf(sql, { workspaceId: workspace.id, userId });
    expect(await of(user.id)).toBe('owner');
    expect(await of(other.user.id)).toBeNull();
    await addMember(sql, { workspaceId: workspace.id, userId: other.user.id, role: 'viewer', now: NOW });
    await addMember(sql, { workspaceId: workspace.id, userId: other.user.id, role: 'admin', now: NOW });
    expect(await of(other.user.id)).toBe('admin');
    expect((await listWorkspacesOfUser(sql, other.user.id)).map((row) => row.role).sort()).toEqual(['admin', 'owner']);
    expect(await roleOf(sql, { workspaceId: 'not a uuid', userId: user.id })).toBeNull();
    expect(await getWorkspace(sql, "' or 1=1")).toBeNull();
  });

  it('finds a key by its hash until it is revoked or expired', async () => {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql, { name: 'Keys' });
    const keyHash = createHash('sha256').update('sk_secret').digest();
    const input = {
      workspaceId: workspace.id,
      createdByUserId: user.id,
      name: 'ci',
      prefix: 'sk_se',
      last4: 'cret',
      keyHash,
      expiresAt: later(1_000),
      now: NOW,
    };
    const key = await createApiKey(sql, input);
    expect((await createApiKey(sql, input)).id).toBe(key.id);
    expect(key).not.toHaveProperty('keyHash');
    expect(await findApiKey(sql, { keyHash, now: NOW })).toMatchObject({
      id: key.id,
      workspaceId: workspace.id,
      workspaceName: 'Keys',
      plan: 'enterprise',
      role: 'owner',
    });
    await touchApiKey(sql, { ...key, now: later(10) });
    await touchApiKey(sql, { ...key, now: later(20) });
    const { rows, total } = await listApiKeys(sql, { workspaceId: workspace.id }, FIRST_PAGE);
    expect({ total, used: rows[0]?.lastUsedAt }).toEqual({ total: 1, used: later(10) });
    expect(await findApiKey(sql, { keyHash, now: later(1_000) })).toBeNull();
    const stranger = (await seedWorkspace(sql)).workspace.id;
    expect(await revokeApiKey(sql, { workspaceId: stranger, id: key.id, now: NOW })).toBe(false);
    expect(await revokeApiKey(sql, { workspaceId: workspace.id, id: key.id, now: NOW })).toBe(true);
    expect(await revokeApiKey(sql, { workspaceId: workspace.id, id: key.id, now: NOW })).toBe(false);
    expect(await findApiKey(sql, { keyHash, now: NOW })).toBeNull();
    expect((await listApiKeys(sql, { workspaceId: workspace.id }, FIRST_PAGE)).total).toBe(0);
  });
});

onEveryServer('trunks and numbers', (database) => {
  it('creates, changes and lists trunks with their numbers', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const trunk = await seedTrunk(sql, { workspaceId, passwordEncrypted: Buffer.from('sealed') });
    expect(trunk).toMatchObject({ codecs: ['PCMU', 'PCMA'], status: 'active', ownerWorkspaceId: workspaceId });
    const patch = {
      name: 'New',
      channels: 3,
      numbers: ['+911140000001', '+911140000009'],
      status: 'disabled' as const,
    };
    const updated = await updateTrunk(sql, { id: trunk.id, workspaceId, patch, now: later(5) });
    expect(updated).toMatchObject({ ...patch, updatedAt: later(5), sipUri: trunk.sipUri });
    expect(updated.passwordEncrypted?.toString()).toBe('sealed');
    expect(await hasTrunk(sql, workspaceId)).toBe(false);
    expect(await listActiveTrunks(sql)).toEqual([]);
    expect(await listTrunks(sql, { workspaceId }, FIRST_PAGE)).toMatchObject({ total: 1, rows: [{ name: 'New' }] });
  });

  it('hides a trunk from other workspaces until it is shared, and its settings even then', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const guest = (await seedWorkspace(sql)).workspace.id;
    const { id } = await seedTrunk(sql, { workspaceId });
    expect(await getTrunk(sql, { id, workspaceId: guest })).toBeNull();
    await expect(updateTrunk(sql, { id, workspaceId: guest, patch: {}, now: NOW })).rejects.toMatchObject({
      code: 'TRUNK_NOT_FOUND',
    });
    await shareTrunk(sql, { trunkId: id, workspaceId: guest, now: NOW });
    await shareTrunk(sql, { trunkId: id, workspaceId: guest, now: NOW });
    expect(await getTrunk(sql, { id, workspaceId: guest })).not.toBeNull();
    await expect(deleteTrunk(sql, { id, workspaceId: guest, now: NOW })).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  it('deletes a trunk without live calls only, and keeps it readable for its calls', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const { id } = await seedTrunk(sql, { workspaceId });
    await admitCall(sql, admission({ workspaceId }));
    await expect(deleteTrunk(sql, { id, workspaceId, now: NOW })).rejects.toMatchObject({ code: 'TRUNK_IN_USE' });
    await sql`update calls set state = 'failed'`;
    await deleteTrunk(sql, { id, workspaceId, now: NOW });
    expect(await getTrunk(sql, { id, workspaceId })).toBeNull();
    expect(await getTrunkById(sql, id)).toMatchObject({ deletedAt: NOW });
    expect(await sql`select e164 from numbers where trunk_id = ${id}`).toEqual([]);
  });

  it('assigns no numbers to a trunk that is deleted concurrently', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    const { id } = await seedTrunk(sql, { workspaceId: workspace.id });
    const patch = { numbers: ['+911150000001'] };
    const deleted = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const deletion = sql.begin(async (tx) => {
      await deleteTrunk(tx, { id, workspaceId: workspace.id, now: NOW });
      deleted.resolve();
      await mayCommit.promise;
    });
    await deleted.promise;
    const update = updateTrunk(sql, { id, workspaceId: workspace.id, patch, now: NOW });
    const refused = expect(update).rejects.toMatchObject({ code: 'TRUNK_NOT_FOUND' });
    while ((await lockWaits(sql)) === 0);
    mayCommit.resolve();
    await deletion;
    await refused;
    expect(await sql`select 1 from numbers`).toHaveLength(0);
  });

  it('rejects a number of another trunk, and the removal of a rented one', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const { id } = await seedTrunk(sql, { workspaceId });
    await expect(seedTrunk(sql, { workspaceId })).rejects.toMatchObject({ code: 'NUMBER_NOT_AVAILABLE' });
    await expect(updateTrunk(sql, { id, workspaceId, patch: { numbers: [] }, now: NOW })).rejects.toMatchObject({
      code: 'NUMBER_IN_USE',
    });
    expect((await getTrunk(sql, { id, workspaceId }))?.numbers).toHaveLength(3);
  });

  it('rents a number to one of many concurrent requests and releases it when no call uses it', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const guest = (await seedWorkspace(sql)).workspace.id;
    const { id } = await seedTrunk(sql, { workspaceId });
    await shareTrunk(sql, { trunkId: id, workspaceId: guest, now: NOW });
    const e164 = '+911140000002';
    const attempts = await Promise.allSettled(
      [workspaceId, guest, workspaceId, guest].map((tenant) =>
        rentNumber(sql, { workspaceId: tenant, e164, now: NOW }),
      ),
    );
    const winners = attempts.filter((attempt) => attempt.status === 'fulfilled');
    expect(winners).toHaveLength(1);
    const tenant = winners[0]!.value.workspaceId!;
    expect(await poolCounts(sql, { workspaceId: tenant })).toMatchObject({ available: 1 });
    await setDefaultCallerId(sql, { workspaceId: tenant, e164 });
    const { call } = await admitCall(sql, admission({ workspaceId: tenant }));
    expect(call.did).toBe(e164);
    await expect(releaseNumber(sql, { workspaceId: tenant, e164, now: NOW })).rejects.toMatchObject({
      code: 'NUMBER_IN_USE',
    });
    await sql`update calls set state = 'failed'`;
    expect(await releaseNumber(sql, { workspaceId: tenant, e164, now: later(9) })).toMatchObject({
      status: 'available',
      releasedAt: later(9),
    });
    await expect(releaseNumber(sql, { workspaceId: tenant, e164, now: NOW })).rejects.toMatchObject({
      code: 'NUMBER_NOT_FOUND',
    });
    await expect(setDefaultCallerId(sql, { workspaceId: tenant, e164 })).rejects.toMatchObject({
      code: 'CALLER_ID_NOT_OWNED',
    });
    const owned = await listNumbers(sql, { workspaceId }, FIRST_PAGE);
    expect(owned.rows.map((row) => row.e164)).toContain('+911140000001');
  });

  it('lists available numbers by pattern and escapes SQL wildcards', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const stranger = (await seedWorkspace(sql)).workspace.id;
    await seedTrunk(sql, { workspaceId });
    const found = async (pattern?: string) =>
      (await availableNumbers(sql, { workspaceId, pattern, limit: 10 })).map((row) => row.e164);
    expect(await found()).toEqual(['+911140000002', '+911140000003']);
    expect(await found('0003')).toEqual(['+911140000003']);
    expect(await found('+91*3')).toEqual(['+911140000003']);
    expect(await found('%3')).toEqual([]);
    expect(await availableNumbers(sql, { workspaceId: stranger, limit: 10 })).toEqual([]);
    await expect(rentNumber(sql, { workspaceId: stranger, e164: '+911140000002', now: NOW })).rejects.toMatchObject({
      code: 'DIALER_NOT_PROVISIONED',
    });
    await expect(rentNumber(sql, { workspaceId, e164: '+19995550100', now: NOW })).rejects.toMatchObject({
      code: 'NUMBER_NOT_FOUND',
    });
  });
});

onEveryServer('recordings and deliveries', (database) => {
  it('keeps the status of a recording and its call consistent', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    await seedTrunk(sql, { workspaceId });
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const id = randomUUID();
    await createRecording(sql, { id, callId: call.callId, workspaceId, node: call.ownerNode, now: NOW });
    await sql`update calls set recording_id = ${id}, recording_status = 'recording'`;
    const unfinished = async (node: string) => (await unfinishedRecordings(sql, { node })).map((row) => row.id);
    expect(await unfinished('node-1')).toEqual([]);
    await sql`update calls set state = 'completed'`;
    expect(await unfinished('node-1')).toEqual([id]);
    expect(await unfinished('node-2')).toEqual([]);
    const patch = { status: 'uploaded', objectKey: 'a/b.wav', sizeBytes: 5_000_000_000, durationMs: 1_234 } as const;
    expect(await updateRecording(sql, { id, now: later(1), patch })).toMatchObject({ ...patch, updatedAt: later(1) });
    expect(await sql`select recording_status from calls`).toMatchObject([{ recordingStatus: 'uploaded' }]);
    expect(await unfinished('node-1')).toEqual([]);
    expect(await getRecording(sql, id)).toMatchObject(patch);
    expect(await getRecording(sql, 'x')).toBeNull();
    expect(await updateRecording(sql, { id: randomUUID(), now: NOW, patch: {} })).toBeNull();
  });

  it('alternates between receivers, so that a backlog of one hides no other', async () => {
    const { sql } = database();
    const workspaceId = (await seedWorkspace(sql)).workspace.id;
    const subject = { workspaceId, callId: null, eventSequence: null, event: 'call.completed', eventId: 'e' };
    const delivery = (url: string, dueAt: Date) => ({
      id: randomUUID(),
      url,
      body: '{}',
      secretEncrypted: Buffer.of(1),
      nextAttemptAt: dueAt,
      createdAt: NOW,
    });
    for (let ms = 0; ms < 10; ms += 1) {
      await insertDelivery(sql, subject, delivery(`https://slow.example/${ms}?a=//b`, later(ms)));
    }
    await insertDelivery(sql, subject, delivery('https://slow.example:444', later(20)));
    await insertDelivery(sql, subject, delivery('http://slow.example', later(30)));
    const elsewhere = { ...subject, workspaceId: (await seedWorkspace(sql)).workspace.id };
    await insertDelivery(sql, elsewhere, delivery('https://slow.example/elsewhere', later(40)));
    const due = await dueDeliveries(sql, { now: later(1_000), limit: 5 });
    expect(due.map(({ url }) => url)).toEqual([
      'https://slow.example/0?a=//b',
      'https://slow.example:444',
      'http://slow.example',
      'https://slow.example/elsewhere',
      'https://slow.example/1?a=//b',
    ]);
  });

  it('assigns a due delivery to one attempt at a time and stores its outcome', async () => {
    const { sql } = database();
    const { id } = await storeDelivery(sql, later(1_000));
    const claim = (now: Date) => claimDelivery(sql, { id, now, leaseMs: 30_000 });
    expect(await dueDeliveries(sql, { now: later(999), limit: 5 })).toEqual([]);
    expect(await dueDeliveries(sql, { now: later(1_000), limit: 5 })).toHaveLength(1);
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim(later(1_000))));
    expect(claims.filter((row) => row !== null)).toMatchObject([{ id, body: '{"a": 1}' }]);
    expect(await dueDeliveries(sql, { now: later(2_000), limit: 5 })).toEqual([]);
    expect(await claim(later(31_000))).not.toBeNull();
    const attempt = { deliveryId: id, httpStatus: 500, error: null, startedAt: later(31_000), durationMs: 20 };
    const retried = await recordAttempt(sql, { ...attempt, outcome: { kind: 'retry', nextAttemptAt: later(40_000) } });
    expect(retried).toMatchObject({
      status: 'pending',
      attempts: 1,
      lastHttpStatus: 500,
      nextAttemptAt: later(40_000),
    });
    expect(await claim(later(39_999))).toBeNull();
    expect(await claim(later(40_000))).not.toBeNull();
    const done = { ...attempt, httpStatus: 204, startedAt: later(40_000), outcome: { kind: 'delivered' } as const };
    expect(await recordAttempt(sql, done)).toMatchObject({
      status: 'delivered',
      attempts: 2,
      nextAttemptAt: null,
      deliveredAt: later(40_020),
    });
    expect(await recordAttempt(sql, { ...attempt, outcome: { kind: 'failed' } })).toBeNull();
    expect(await claim(later(99_000))).toBeNull();
    expect((await listAttempts(sql, [id])).map((row) => [row.attempt, row.httpStatus])).toEqual([
      [1, 500],
      [2, 204],
    ]);
    expect(await getDelivery(sql, 'nonsense')).toBeNull();
  });

  it('neither waits for the time by which a clock is ahead nor becomes due early', async () => {
    const { sql } = database();
    const ahead = new Date(Date.now() + 3_600_000);
    const { id, nextAttemptAt } = await storeDelivery(sql, ahead);
    // The hour is left out, and a minute is enough for this test.
    const soon = () => Date.now() + 60_000;
    expect(nextAttemptAt!.getTime()).toBeLessThan(soon());
    const claimed = await claimDelivery(sql, { id, now: ahead, leaseMs: 30_000 });
    expect(claimed!.leasedUntil!.getTime()).toBeLessThan(soon());
    expect(claimed!.claimedAt.getTime()).toBeLessThan(soon());
    expect(await claimDelivery(sql, { id, now: ahead, leaseMs: 30_000 })).toBeNull();
    const retried = await recordAttempt(sql, {
      ...{ deliveryId: id, httpStatus: 500, error: null, startedAt: ahead, durationMs: 20 },
      outcome: { kind: 'retry', nextAttemptAt: new Date(ahead.getTime() + 5_000) },
    });
    expect(retried!.nextAttemptAt!.getTime()).toBeLessThan(soon());
    expect(await dueDeliveries(sql, { now: ahead, limit: 5 })).toEqual([]);
    expect(await claimDelivery(sql, { id, now: ahead, leaseMs: 30_000 })).toBeNull();
  });

  it('makes a first attempt after the clock was set back', async () => {
    const { sql } = database();
    const { id } = await storeDelivery(sql, NOW);
    expect(await claimDelivery(sql, { id, now: later(-3_600_000), leaseMs: 30_000 })).toMatchObject({ id });
  });
});

async function storeDelivery(sql: Sql, at: Date): Promise<DeliveryRow> {
  const workspaceId = (await seedWorkspace(sql)).workspace.id;
  return await insertDelivery(
    sql,
    { workspaceId, callId: null, eventSequence: null, event: 'call.completed', eventId: 'e' },
    {
      ...{ id: randomUUID(), url: 'https://example.com', body: '{"a": 1}', secretEncrypted: Buffer.of(1) },
      ...{ nextAttemptAt: at, createdAt: at },
    },
  );
}
