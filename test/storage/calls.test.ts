import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import {
  admitCall,
  type CallMove,
  findRecordingTarget,
  getCall,
  getCallById,
  listCallEvents,
  listCalls,
  markOrphansUnknown,
  type SettleCallInput,
  settleCall,
} from '../../storage/queries/calls.ts';
import { deliveriesOfCall } from '../../storage/queries/deliveries.ts';
import { joinNodes, takeOverLostNodes } from '../../storage/queries/nodes.ts';
import { rentNumber } from '../../storage/queries/numbers.ts';
import { setDefaultCallerId, shareTrunk, updateTrunk } from '../../storage/queries/trunks.ts';
import { onEveryServer } from './every-server.ts';
import { recordMoves } from './record-moves.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, settlement, USD } from './seed.ts';

const move = (overrides: Partial<CallMove>): CallMove => ({
  event: 'call.initiated',
  state: 'initiated',
  leg: null,
  sipStatus: null,
  hangupCause: null,
  at: NOW,
  detail: null,
  ...overrides,
});

const completion = (callId: string, overrides: Partial<SettleCallInput> = {}): SettleCallInput =>
  settlement(callId, {
    ...{ answerTime: later(30_000), endTime: later(60_000), talkSeconds: 30, totalSeconds: 60 },
    ...overrides,
  });

onEveryServer('calls', (database) => {
  async function ready(options: { balanceNano?: bigint; trunk?: Parameters<typeof seedTrunk>[1] } = {}) {
    const { sql } = database();
    const { workspace, user } = await seedWorkspace(sql, options);
    const trunk = await seedTrunk(sql, { ...options.trunk, workspaceId: workspace.id });
    return { sql, workspaceId: workspace.id, user, trunk };
  }

  it('admits a pending call with its first event, its hold and unchanged metadata', async () => {
    const { sql, workspaceId, trunk } = await ready();
    const metadata = { z: 1, a: { b: [null, 'x'] }, someKey: true, lone: '\ud800' };
    const { outcome, call } = await admitCall(sql, admission({ workspaceId, metadata, record: true }));
    expect(outcome).toBe('admitted');
    expect(call).toMatchObject({
      state: 'pending',
      seq: 1,
      trunkId: trunk.id,
      did: '+911140000001',
      recordRequested: true,
      pricePerMinuteNano: 60_000_000n,
      createdAt: NOW,
      startTime: NOW,
      costNano: null,
      billingStatus: null,
    });
    expect(JSON.stringify(call.metadata)).toBe(JSON.stringify(metadata));
    // 30 s + 45 s of ringing and 60 s of talk at 0.001 USD per second.
    expect(await walletOf(sql, workspaceId)).toEqual({
      balanceNano: 10n * USD,
      heldNano: 135_000_000n,
      availableNano: 10n * USD - 135_000_000n,
    });
    expect(await listCallEvents(sql, { callId: call.callId })).toMatchObject([
      { sequence: 1, event: 'call.pending', state: 'pending', at: NOW, delivery: null },
    ]);
  });

  it('admits one of 100 concurrent calls with one reference and replays it to the others', async () => {
    const { sql, workspaceId } = await ready();
    const results = await Promise.all(
      Array.from({ length: 100 }, () => admitCall(sql, admission({ workspaceId, referenceId: 'same' }))),
    );
    expect(results.filter((result) => result.outcome === 'admitted')).toHaveLength(1);
    expect(new Set(results.map((result) => result.call.callId)).size).toBe(1);
    expect((await walletOf(sql, workspaceId)).heldNano).toBe(135_000_000n);
    expect(await liveCalls(sql, workspaceId)).toBe(1);
  });

  it('rejects the 21st call of a minute with the exact wait', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    for (let placed = 0; placed < 20; placed += 1) {
      await admitCall(sql, admission({ workspaceId, now: later(placed * 1_000) }));
    }
    await expect(admitCall(sql, admission({ workspaceId, now: later(20_500) }))).rejects.toMatchObject({
      code: 'C2C_RATE_LIMITED',
      retryAfterS: 40,
    });
    const { outcome } = await admitCall(sql, admission({ workspaceId, now: later(60_000) }));
    expect(outcome).toBe('admitted');
  });

  it('admits exactly 20 of 40 concurrent calls per minute', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, ms) => admitCall(sql, admission({ workspaceId, now: later(ms) }))),
    );
    const refusals = results.filter((result) => result.status === 'rejected');
    expect(refusals.map(({ reason }) => reason.code)).toEqual(Array(20).fill('C2C_RATE_LIMITED'));
    expect(await liveCalls(sql, workspaceId)).toBe(20);
  });

  it('limits calls per minute by plan', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    const placementsPerMinute = { free: 1, starter: 2, pro: 3, enterprise: 25 };
    const place = () => admitCall(sql, admission({ workspaceId, placementsPerMinute }));
    for (let placed = 0; placed < 25; placed += 1) expect((await place()).outcome).toBe('admitted');
    await expect(place()).rejects.toMatchObject({ code: 'C2C_RATE_LIMITED', message: expect.stringContaining('25') });
    await sql`update workspaces set plan = 'pro' where id = ${workspaceId}`;
    await expect(place()).rejects.toMatchObject({ message: 'The limit of 3 calls per minute is reached.' });
  });

  it('counts calls of the last minute that another version of the server stored', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    const { call } = await admitCall(sql, admission({ workspaceId, now: later(0) }));
    for (const n of [2, 3]) {
      await sql`
        insert into calls select (jsonb_populate_record(c, jsonb_build_object('call_id', ${`call-${n}`}::text,
          'reference_id', ${`ref-${n}`}::text))).* from calls c where call_id = ${call.callId}`;
    }
    const placementsPerMinute = { free: 3, starter: 3, pro: 3, enterprise: 3 };
    const place = (ms: number) => admitCall(sql, admission({ workspaceId, placementsPerMinute, now: later(ms) }));
    await expect(place(59_999)).rejects.toMatchObject({ code: 'C2C_RATE_LIMITED', retryAfterS: 1 });
    expect((await place(60_000)).outcome).toBe('admitted');
  });

  it('keeps the counts of placements for ten minutes', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    for (const ms of [0, 0, 300_000, 602_000]) await admitCall(sql, admission({ workspaceId, now: later(ms) }));
    const counts = await sql<{ placements: number }[]>`
      select placements from placement_counts where workspace_id = ${workspaceId} order by second`;
    expect(counts.map(({ placements }) => placements)).toEqual([1, 1]);
  });

  it('excludes rejected calls from the placements of the last minute', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    const rejection = move({ event: 'call.rejected', state: 'rejected' });
    for (let placed = 0; placed < 20; placed += 1) {
      const { call } = await admitCall(sql, admission({ workspaceId }));
      await settleCall(sql, completion(call.callId, { move: rejection, answerTime: null, talkSeconds: 0 }));
    }
    expect((await admitCall(sql, admission({ workspaceId }))).outcome).toBe('admitted');
  });

  it('admits calls after the clock was set back', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 100 } });
    for (let placed = 0; placed < 20; placed += 1) await admitCall(sql, admission({ workspaceId }));
    const { outcome } = await admitCall(sql, admission({ workspaceId, now: later(-3_600_000) }));
    expect(outcome).toBe('admitted');
  });

  it('never exceeds the channels of a trunk, even concurrently', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', channels: 3 } });
    const results = await Promise.allSettled(
      Array.from({ length: 15 }, () => admitCall(sql, admission({ workspaceId }))),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(12);
    expect(refused[0]?.reason).toMatchObject({ code: 'no_free_channel', retryAfterS: expect.any(Number) });
    expect(await liveCalls(sql, workspaceId)).toBe(3);
  });

  it('leaves nothing behind when it rejects a call, so that the reference stays free', async () => {
    const { sql, workspaceId, trunk } = await ready({ balanceNano: 0n });
    const input = admission({ workspaceId, referenceId: 'again' });
    await expect(admitCall(sql, input)).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
    expect(await getCall(sql, { workspaceId, idOrReference: 'again' })).toBeNull();
    expect(await sql`select 1 from holds`).toHaveLength(0);
    expect(await sql`select 1 from call_events`).toHaveLength(0);
    await updateTrunk(sql, { id: trunk.id, workspaceId, patch: { pricePerMinuteNano: 0n }, now: NOW });
    await expect(admitCall(sql, input)).rejects.toMatchObject({ code: 'RECHARGE_REQUIRED' });
  });

  it('consumes a reference once its call is final, unless it was rejected', async () => {
    const { sql, workspaceId } = await ready();
    const first = await admitCall(sql, admission({ workspaceId, referenceId: 'r' }));
    const rejection = move({ event: 'call.rejected', state: 'rejected' });
    await settleCall(
      sql,
      completion(first.call.callId, { move: rejection, terminalEvent: 'call.failed', talkSeconds: 0 }),
    );
    const second = await admitCall(sql, admission({ workspaceId, referenceId: 'r' }));
    expect(second.outcome).toBe('admitted');
    expect((await getCall(sql, { workspaceId, idOrReference: 'r' }))?.callId).toBe(second.call.callId);
    await settleCall(sql, completion(second.call.callId));
    await expect(admitCall(sql, admission({ workspaceId, referenceId: 'r' }))).rejects.toMatchObject({
      code: 'REFERENCE_ALREADY_USED',
    });
  });

  it('hides a reference of another workspace on the same trunk', async () => {
    const { sql, workspaceId, trunk } = await ready();
    const stranger = await seedWorkspace(sql);
    await shareTrunk(sql, { trunkId: trunk.id, workspaceId: stranger.workspace.id, now: NOW });
    await admitCall(sql, admission({ workspaceId, referenceId: 'mine' }));
    await expect(
      admitCall(sql, admission({ workspaceId: stranger.workspace.id, referenceId: 'mine' })),
    ).rejects.toMatchObject({ code: 'REFERENCE_NOT_OWNED' });
    expect(await getCall(sql, { workspaceId: stranger.workspace.id, idOrReference: 'mine' })).toBeNull();
  });

  it('requires an active trunk with a number', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    const place = (overrides = {}) => admitCall(sql, admission({ workspaceId: workspace.id, ...overrides }));
    await expect(place()).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
    await expect(place({ trunkId: randomUUID() })).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
    await expect(place({ trunkId: "'; drop table calls" })).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
    const trunk = await seedTrunk(sql, { workspaceId: workspace.id, numbers: [] });
    await expect(place({ trunkId: trunk.id })).rejects.toMatchObject({ code: 'DIALER_NOT_PROVISIONED' });
    await expect(place({ did: '+911140000001' })).rejects.toMatchObject({ code: 'CALLER_ID_NOT_OWNED' });
  });

  it('presents the requested, saved or first number of the workspace on the trunk, in this order', async () => {
    const { sql, workspaceId } = await ready();
    await rentNumber(sql, { workspaceId, e164: '+911140000003', now: later(1) });
    const didOf = async (did: string | null) => (await admitCall(sql, admission({ workspaceId, did }))).call.did;
    expect(await didOf(null)).toBe('+911140000001');
    await setDefaultCallerId(sql, { workspaceId, e164: '+911140000003' });
    expect(await didOf(null)).toBe('+911140000003');
    expect(await didOf('+911140000001')).toBe('+911140000001');
    await expect(didOf('+911140000002')).rejects.toMatchObject({ code: 'CALLER_ID_NOT_OWNED' });
  });

  it('rejects destinations outside the allowed prefixes for either party', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', allowedPrefixes: ['+9198'] } });
    for (const outside of [{ agentNumber: '+919710000001' }, { customerNumber: '+919710000001' }]) {
      await expect(admitCall(sql, admission({ workspaceId, ...outside }))).rejects.toMatchObject({
        code: 'destination_not_allowed',
      });
    }
    expect((await admitCall(sql, admission({ workspaceId }))).outcome).toBe('admitted');
  });

  it('stores moves in sequence with their state, and none after the final one', async () => {
    const { sql, workspaceId } = await ready();
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const stored = await recordMoves(sql, call.callId, [
      move({ leg: 'agent' }),
      move({ event: 'leg.ringing', leg: 'agent', sipStatus: 180 }),
    ]);
    expect(stored).toMatchObject({ events: [{ sequence: 2 }, { sequence: 3 }] });
    const patched = await recordMoves(sql, call.callId, [move({ event: 'call.bridged', state: 'bridged' })], {
      answerTime: later(5),
    });
    expect(patched).toMatchObject({ call: { state: 'bridged', seq: 4, answerTime: later(5) } });
    await settleCall(sql, completion(call.callId));
    expect(await recordMoves(sql, call.callId, [move({})])).toBe(false);
    expect((await getCallById(sql, call.callId))?.state).toBe('completed');
    expect(await recordMoves(sql, 'no such call', [move({})])).toBe(false);
  });

  it('assigns concurrent moves consecutive sequence numbers', async () => {
    const { sql, workspaceId } = await ready();
    const { call } = await admitCall(sql, admission({ workspaceId }));
    await Promise.all(Array.from({ length: 20 }, () => recordMoves(sql, call.callId, [move({}), move({})])));
    const events = await listCallEvents(sql, { callId: call.callId });
    expect(events.map((event) => event.sequence)).toEqual(Array.from({ length: 41 }, (_, index) => index + 1));
    expect(await listCallEvents(sql, { callId: call.callId, afterSequence: 39 })).toHaveLength(2);
  });

  it('settles once: final row, charge per second, released hold and callback in one transaction', async () => {
    const { sql, workspaceId } = await ready();
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const delivery: SettleCallInput['delivery'] = (final, event) => ({
      id: randomUUID(),
      url: 'https://example.com/hook',
      body: JSON.stringify({ state: final.state, cost: String(final.costNano), sequence: event.sequence }),
      secretEncrypted: Buffer.from('sealed'),
      nextAttemptAt: event.at,
    });
    const results = await Promise.all(
      Array.from({ length: 8 }, () => settleCall(sql, completion(call.callId, { delivery }))),
    );
    const settled = results.filter((result) => result !== null);
    expect(settled).toHaveLength(1);
    expect(settled[0]?.call).toMatchObject({
      state: 'completed',
      terminalEvent: 'call.completed',
      talkSeconds: 30,
      costNano: 30_000_000n,
      billingStatus: 'billed',
      endTime: later(60_000),
    });
    expect(await walletOf(sql, workspaceId)).toMatchObject({ balanceNano: 10n * USD - 30_000_000n, heldNano: 0n });
    const deliveries = await deliveriesOfCall(sql, call.callId);
    expect(deliveries).toMatchObject([
      { event: 'call.completed', eventSequence: 2, status: 'pending', attempts: 0, eventId: settled[0]?.event.eventId },
    ]);
    expect(deliveries[0]?.body).toBe('{"state":"completed","cost":"30000000","sequence":2}');
    expect((await listCallEvents(sql, { callId: call.callId })).at(-1)).toMatchObject({
      event: 'call.completed',
      delivery: { status: 'pending', attempts: 0, lastHttpStatus: null, nextAttemptAt: later(60_000) },
    });
  });

  it('charges nothing for a call that was never bridged', async () => {
    const { sql, workspaceId } = await ready();
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const unanswered = move({ event: 'call.not_answered', state: 'failed', leg: 'agent', sipStatus: 486 });
    const settled = await settleCall(
      sql,
      completion(call.callId, { move: unanswered, terminalEvent: 'call.not_answered', talkSeconds: 0, leg: 'agent' }),
    );
    expect(settled?.call).toMatchObject({ state: 'failed', leg: 'agent', costNano: null, billingStatus: null });
    expect(await walletOf(sql, workspaceId)).toMatchObject({ balanceNano: 10n * USD, heldNano: 0n });
  });

  it('rounds a charge up to the whole nano-dollar', async () => {
    const { sql, workspaceId } = await ready({ trunk: { workspaceId: '', pricePerMinuteNano: 100n } });
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const settled = await settleCall(sql, completion(call.callId, { talkSeconds: 1 }));
    expect(settled?.call.costNano).toBe(2n);
  });

  it('charges the rest of the funds and reports a failed billing', async () => {
    const { sql, workspaceId } = await ready({ balanceNano: 20_000_000n });
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const settled = await settleCall(sql, completion(call.callId));
    expect(settled?.call).toMatchObject({ costNano: 20_000_000n, billingStatus: 'failed' });
    expect((await walletOf(sql, workspaceId)).balanceNano).toBe(0n);
  });

  it('rolls back if the callback cannot be created, and can settle later', async () => {
    const { sql, workspaceId } = await ready();
    const { call } = await admitCall(sql, admission({ workspaceId }));
    const broken = () => {
      throw new Error('cannot seal');
    };
    await expect(settleCall(sql, completion(call.callId, { delivery: broken }))).rejects.toThrow('cannot seal');
    expect(await getCallById(sql, call.callId)).toMatchObject({ state: 'pending', seq: 1 });
    expect((await walletOf(sql, workspaceId)).heldNano).toBe(135_000_000n);
    expect(await settleCall(sql, completion(call.callId))).not.toBeNull();
  });

  it('marks calls of an earlier boot of this node as unknown once', async () => {
    const { sql, workspaceId } = await ready();
    const lost = await admitCall(sql, admission({ workspaceId, ownerBoot: 'old' }));
    const finished = await admitCall(sql, admission({ workspaceId, ownerBoot: 'old' }));
    await settleCall(sql, completion(finished.call.callId, { ownerBoot: 'old' }));
    await admitCall(sql, admission({ workspaceId, ownerNode: 'node-2', ownerBoot: 'old' }));
    await admitCall(sql, admission({ workspaceId, ownerBoot: 'new' }));
    await recordMoves(sql, lost.call.callId, [move({ event: 'call.bridged', state: 'bridged' })]);
    const takeOrphans = (boot: string, now: Date) =>
      markOrphansUnknown(sql, {
        lost: { node: 'node-1', exceptBoot: boot },
        owner: { node: 'node-1', boot },
        seenAt: now,
        now,
      });
    const { orphans, events } = await takeOrphans('new', later(9));
    expect(orphans).toMatchObject([{ callId: lost.call.callId, state: 'unknown', seq: 3, ownerBoot: 'new' }]);
    expect(events).toMatchObject([{ callId: lost.call.callId, event: 'call.unknown', sequence: 3 }]);
    // The same boot receives it until it is resolved.
    expect(await takeOrphans('new', later(9))).toMatchObject({
      orphans: [{ callId: lost.call.callId, seq: 3 }],
      events: [],
    });
    expect((await listCallEvents(sql, { callId: lost.call.callId })).at(-1)).toMatchObject({
      event: 'call.unknown',
      detail: expect.stringContaining('bridged'),
    });
    // Lost again before it was resolved: reported again, but marked only once.
    const again = await takeOrphans('newest', later(10));
    expect(again.orphans.map((call) => [call.callId, call.seq, call.ownerSeenAt])).toContainEqual([
      ...[lost.call.callId, 3, later(9)],
    ]);
    expect(again.events.map(({ callId }) => callId)).not.toContain(lost.call.callId);
    expect(await settleCall(sql, completion(lost.call.callId, { ownerBoot: 'new' }))).toBeNull();
    expect(await settleCall(sql, completion(lost.call.callId, { ownerBoot: 'newest' }))).not.toBeNull();
  });

  it('assigns no calls to a boot that lost its lease', async () => {
    const { sql, workspaceId } = await ready();
    const join = (node: string, boot: string) =>
      joinNodes(sql, { node, boot, recordingsDir: '/', leaseMs: 60_000, now: NOW });
    await join('frozen', 'before');
    const owner = { ownerNode: 'frozen', ownerBoot: 'before' };
    const { call } = await admitCall(sql, admission({ workspaceId, ...owner }));
    await sql`update nodes set taken_over_by = 'another' where node = 'frozen'`;
    await expect(admitCall(sql, admission({ workspaceId, ...owner }))).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    await join('frozen', 'after');
    await expect(admitCall(sql, admission({ workspaceId, ...owner }))).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    const lost = { node: call.ownerNode, boot: call.ownerBoot };
    const taken = await markOrphansUnknown(sql, {
      ...{ lost, owner: { node: 'frozen', boot: 'before' }, seenAt: NOW, now: NOW },
    });
    expect(taken).toEqual({ orphans: [], events: [] });
    expect((await admitCall(sql, admission({ workspaceId, ...owner, ownerBoot: 'after' }))).outcome).toBe('admitted');
  });

  it('prevents a takeover until an admitted call is stored', async () => {
    const { sql, workspaceId } = await ready();
    const leaseMs = -60_000;
    await joinNodes(sql, { node: 'busy', boot: 'boot', recordingsDir: '/', leaseMs, now: NOW });
    const ownerNode = 'busy';
    await inTransaction(sql, async (tx) => {
      await admitCall(tx, admission({ workspaceId, ownerNode, ownerBoot: 'boot' }));
      expect(await takeOverLostNodes(sql, { node: 'heir' })).toEqual([]);
    });
    expect(await takeOverLostNodes(sql, { node: 'heir' })).toMatchObject([{ node: 'busy' }]);
  });

  it('finds a recording by call, reference or recording id in the workspace only', async () => {
    const { sql, workspaceId } = await ready();
    const recordingId = randomUUID();
    const { call } = await admitCall(sql, admission({ workspaceId, referenceId: 'ref' }));
    await recordMoves(sql, call.callId, [], { recordingId, recordingStatus: 'recording' });
    for (const id of [call.callId, 'ref', recordingId]) {
      expect((await findRecordingTarget(sql, workspaceId, id))?.callId).toBe(call.callId);
    }
    const stranger = (await seedWorkspace(sql)).workspace.id;
    expect(await findRecordingTarget(sql, stranger, recordingId)).toBeNull();
    expect(await findRecordingTarget(sql, workspaceId, '%')).toBeNull();
  });

  it('lists calls newest first by page and filter', async () => {
    const { sql, workspaceId } = await ready();
    for (const [index, referenceId] of ['a', 'b', 'c'].entries()) {
      await admitCall(sql, admission({ workspaceId, referenceId, now: later(index * 1_000) }));
    }
    const page = { page: 1, limit: 2 };
    const references = async (filters: object, of = page) => {
      const { rows, total } = await listCalls(sql, { workspaceId, ...filters }, of);
      return { total, ids: rows.map((row) => row.referenceId) };
    };
    expect(await references({})).toEqual({ total: 3, ids: ['c', 'b'] });
    expect(await references({}, { page: 2, limit: 2 })).toEqual({ total: 3, ids: ['a'] });
    expect(await references({ from: later(1_000), to: later(2_000) })).toEqual({ total: 1, ids: ['b'] });
    expect(await references({ referenceId: 'a', states: ['pending'] })).toEqual({ total: 1, ids: ['a'] });
    expect(await references({ agentNumber: '+910000000000' })).toEqual({ total: 0, ids: [] });
    expect(await references({ customerNumber: '+919810000002', states: ['failed'] })).toEqual({ total: 0, ids: [] });
  });
});

async function liveCalls(sql: Sql, workspaceId: string): Promise<number> {
  const live = ['pending', 'initiated', 'bridged', 'unknown'];
  return (await sql`select 1 from calls where workspace_id = ${workspaceId} and state = any(${live})`).length;
}
