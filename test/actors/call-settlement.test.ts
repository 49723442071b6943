import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { billedSeconds, settlementPort } from '../../actors/call-settlement.ts';
import type { CallOutcome, SettleInput } from '../../machines/call-events.ts';
import { completed, rejected } from '../../machines/call-outcome.ts';
import { momentOf } from '../../runtime/clock.ts';
import { connect, inTransaction } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import {
  type AdmitCallInput,
  type CallRow,
  getCallById,
  legHandlesOf,
  listCallEvents,
  type SettleCallResult,
  storeLegHandle,
} from '../../storage/queries/calls.ts';
import { deliveriesOfCall } from '../../storage/queries/deliveries.ts';
import { createRecording, getRecording } from '../../storage/queries/recordings.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { eventually } from '../eventually.ts';
import { lockWaits } from '../storage/lock-waits.ts';
import { later, NOW, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, FakeSip, liveCall, sqlWithFaults } from './fakes.ts';
import { moveTo, seedCaller } from './seeds.ts';

const FAILED: CallOutcome = {
  state: 'failed',
  terminalEvent: 'call.not_answered',
  hangupCause: 'USER_BUSY',
  leg: 'customer',
  sipStatus: 486,
  error: 'customer_busy',
  errorDetail: 'busy here',
};
const CALLBACK = {
  callbackUrl: 'https://example.com/hook',
  callbackSecretEncrypted: Buffer.from('sealed'),
  callbackSecretLast4: '9876',
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('billedSeconds', () => {
  for (const [talkedMs, seconds] of [
    [0, 0],
    [1, 1],
    [999, 1],
    [1_000, 1],
    [1_001, 2],
    [59_999, 60],
    [60_000, 60],
  ] as const) {
    it(`returns ${seconds} for ${talkedMs} ms of talk`, () => {
      expect(billedSeconds({ talkedMs, maxDurationS: 3_600 })).toBe(seconds);
    });
  }

  it('never exceeds the maximum duration', () => {
    expect(billedSeconds({ talkedMs: 30_400, maxDurationS: 30 })).toBe(30);
  });
});

describe('settlement of a call', () => {
  it('stores outcome, last event, charge, recording and callback of a bridged call', async () => {
    const call = await openCall({ bridged: true, recorded: true, admit: CALLBACK });
    call.clock.advance(61_500);
    await call.settle({ outcome: completed('NORMAL_CLEARING', 'agent') });
    expect(await call.stored()).toMatchObject({
      call: {
        state: 'completed',
        terminalEvent: 'call.completed',
        hangupCause: 'NORMAL_CLEARING',
        leg: 'agent',
        answerTime: NOW,
        endTime: later(61_500),
        talkSeconds: 62,
        totalSeconds: 62,
        costNano: 62_000_000n,
        billingStatus: 'billed',
        recordingStatus: 'processing',
      },
      lastEvent: { event: 'call.completed', state: 'completed', at: later(61_500) },
      entries: ['hold', 'settle'],
      deliveries: [{ event: 'call.completed', url: 'https://example.com/hook', status: 'pending' }],
    });
    expect(await getRecording(database.sql, call.recordingId)).toMatchObject({ status: 'processing' });
    expect(await walletOf(database.sql, call.row.workspaceId)).toMatchObject({
      availableNano: 10n * USD - 62_000_000n,
      heldNano: 0n,
    });
    expect(call.settled.map(({ call: row }) => row.callId)).toEqual([call.row.callId]);
  });

  it('puts the final call into its callback', async () => {
    const call = await openCall({ bridged: true, admit: { ...CALLBACK, metadata: { order: 7 } } });
    call.clock.advance(2_000);
    await call.settle({ outcome: completed('NORMAL_CLEARING', 'agent') });
    const { deliveries, lastEvent } = await call.stored();
    expect(JSON.parse(deliveries[0]?.body ?? '')).toMatchObject({
      event: 'call.completed',
      event_id: lastEvent?.eventId,
      sequence: lastEvent?.sequence,
      metadata: { order: 7 },
      data: { call: { state: 'completed', call_done: true, talk_seconds: 2, cost_usd: 0.002 } },
    });
  });

  it('charges nothing for an unbridged call, and releases its hold', async () => {
    const call = await openCall();
    call.clock.advance(12_000);
    await call.settle({ outcome: FAILED });
    const { call: row, entries, deliveries } = await call.stored();
    expect(row).toMatchObject({
      state: 'failed',
      error: 'customer_busy',
      errorDetail: 'busy here',
      talkSeconds: 0,
      totalSeconds: 12,
      costNano: null,
      billingStatus: null,
      answerTime: null,
    });
    expect(entries).toEqual(['hold', 'void']);
    expect(deliveries).toEqual([]);
    expect(await walletOf(database.sql, call.row.workspaceId)).toMatchObject({ availableNano: 10n * USD });
  });

  it.each([
    ['deletes the handles of its legs', 'connected', 0],
    ['keeps the handles of its legs while the SIP server is away', 'disconnected', 1],
  ] as const)('%s', async (_what, state, kept) => {
    const call = await openCall({ sip: new FakeSip(state) });
    const { callId, ownerBoot: boot } = call.row;
    const handle = { kind: 'invite', transactionId: 'a', dialogId: 'd' };
    await storeLegHandle(database.sql, { callId, boot, leg: 'agent', handle });
    await call.settle({ outcome: FAILED });
    expect(await legHandlesOf(database.sql, callId)).toHaveLength(kept);
  });

  it('ends the talk when clearing starts, however long clearing and settling take', async () => {
    const call = await openCall({ bridged: true });
    call.clock.advance(10_000);
    call.live.clearedAt = momentOf(call.clock);
    call.clock.advance(9_000);
    await call.settle({ outcome: completed('NORMAL_CLEARING') });
    expect((await call.stored()).call).toMatchObject({ talkSeconds: 10, endTime: later(10_000) });
  });

  it('keeps the end time of the first attempt when repeated', async () => {
    let failuresLeft = 1;
    const call = await openCall({
      bridged: true,
      begin: async (run) => {
        failuresLeft -= 1;
        if (failuresLeft >= 0) throw new Error('storage is away');
        return await run();
      },
    });
    call.clock.advance(10_000);
    await expect(call.settle({ outcome: completed('NORMAL_CLEARING') })).rejects.toThrow('storage is away');
    call.clock.advance(600_000);
    await call.settle({ outcome: completed('NORMAL_CLEARING') });
    expect((await call.stored()).call).toMatchObject({ talkSeconds: 10, endTime: later(10_000) });
  });

  it('waits until every earlier move is stored', async () => {
    const drained = Promise.withResolvers<void>();
    const call = await openCall({ drained: () => drained.promise });
    const settling = call.settle({ outcome: FAILED });
    expect((await call.stored()).call?.state).toBe('pending');
    drained.resolve();
    await settling;
    expect((await call.stored()).call?.state).toBe('failed');
  });

  it('rolls back completely when the callback cannot be stored', async () => {
    const call = await openCall({ bridged: true, recorded: true, admit: CALLBACK });
    call.clock.advance(5_000);
    const before = await call.stored();
    await withoutDeliveries(async () => {
      await expect(call.settle({ outcome: completed('NORMAL_CLEARING') })).rejects.toThrow('no room for deliveries');
      expect(await call.stored()).toEqual(before);
      expect(before).toMatchObject({
        call: { state: 'bridged', terminalEvent: null, costNano: null },
        entries: ['hold'],
        deliveries: [],
      });
      expect(await getRecording(database.sql, call.recordingId)).toMatchObject({ status: 'recording' });
      expect(call.settled).toEqual([]);
    });
    await call.settle({ outcome: completed('NORMAL_CLEARING') });
    const after = await call.stored();
    expect(after).toMatchObject({ call: { state: 'completed', costNano: 5_000_000n }, entries: ['hold', 'settle'] });
    expect(after.deliveries).toHaveLength(1);
    expect(after.lastEvent).toMatchObject({ event: 'call.completed', sequence: (before.lastEvent?.sequence ?? 0) + 1 });
    expect(call.settled).toHaveLength(1);
  });

  it('changes nothing when repeated', async () => {
    const call = await openCall({ bridged: true, admit: CALLBACK });
    call.clock.advance(5_000);
    await call.settle({ outcome: completed('NORMAL_CLEARING') });
    const once = await call.stored();
    await call.settle({ outcome: completed('MAX_DURATION') });
    expect(await call.stored()).toEqual(once);
  });

  it('reports the settlement even if the response to its commit was lost', async () => {
    let transactions = 0;
    const call = await openCall({
      bridged: true,
      recorded: true,
      admit: CALLBACK,
      begin: async (run) => {
        const result = await run();
        transactions += 1;
        if (transactions === 1) throw new Error('the connection was lost after the commit');
        return result;
      },
    });
    call.clock.advance(5_000);
    await expect(call.settle({ outcome: completed('NORMAL_CLEARING') })).rejects.toThrow('connection was lost');
    await call.settle({ outcome: completed('NORMAL_CLEARING') });
    const { lastEvent, deliveries } = await call.stored();
    expect(call.settled).toMatchObject([
      {
        call: { state: 'completed', recordingId: call.recordingId },
        event: { sequence: lastEvent?.sequence, event: 'call.completed' },
        delivery: { id: deliveries[0]?.id },
      },
    ]);
  });

  it('sends no callback for a rejected call, and frees its reference', async () => {
    const call = await openCall({ admit: CALLBACK });
    await call.settle({ outcome: rejected('no media port is free') });
    const { call: row, lastEvent, deliveries, entries } = await call.stored();
    expect(row).toMatchObject({ state: 'rejected', error: 'not_admitted', costNano: null });
    expect(lastEvent).toMatchObject({ event: 'call.rejected', state: 'rejected' });
    expect(deliveries).toEqual([]);
    expect(entries).toEqual(['hold', 'void']);
    const again = await call.caller.admit({ referenceId: call.row.referenceId });
    expect(again.callId).not.toBe(call.row.callId);
  });

  for (const [direction, stepMs] of [
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ] as const) {
    it(`charges the monotonic talk time when the wall clock steps ${direction} by an hour`, async () => {
      const call = await openCall({ bridged: true });
      call.clock.advance(20_000);
      call.clock.jumpTo(later(stepMs));
      call.clock.advance(10_000);
      await call.settle({ outcome: completed('NORMAL_CLEARING') });
      expect((await call.stored()).call).toMatchObject({
        state: 'completed',
        talkSeconds: 30,
        totalSeconds: 30,
        costNano: 30_000_000n,
        endTime: later(stepMs + 10_000),
      });
    });
  }

  it('keeps a recording that started while the call was ending', async () => {
    const call = await openCall({ bridged: true });
    const recording = { recordingId: randomUUID(), filePath: '/recordings/late.wav', bytes: 44, durationMs: 0 };
    await call.settle({ outcome: completed('NORMAL_CLEARING'), report: { quality: null, recording } });
    expect((await call.stored()).call).toMatchObject({
      recordingId: recording.recordingId,
      recordingStatus: 'processing',
    });
    expect(await getRecording(database.sql, recording.recordingId)).toMatchObject({
      callId: call.row.callId,
      status: 'processing',
    });
  });

  it('stores the measured quality', async () => {
    const call = await openCall({ bridged: true });
    const leg = {
      codec: 'PCMU',
      packets_received: 9,
      packets_lost: 0,
      jitter_ms: 1,
      mos: 4.4,
      snr_db: null,
      encryption: null,
    } as const;
    const report = { quality: { agent: leg, customer: null }, recording: null };
    await call.settle({ outcome: completed('NORMAL_CLEARING'), report });
    expect((await call.stored()).call?.quality).toEqual({ agent: leg, customer: null });
  });

  it('rejects a call of another process', async () => {
    const call = await openCall();
    call.registry.remove(call.row.callId);
    await expect(call.settle({ outcome: FAILED })).rejects.toThrow('only a live call is settled');
  });
});

/** Makes storing deliveries fail while `work` runs. */
async function withoutDeliveries(work: () => Promise<void>): Promise<void> {
  const { sql } = database;
  await sql.unsafe(`
    create function refuse_deliveries() returns trigger language plpgsql as $$
    begin raise exception 'no room for deliveries'; end $$;
    create trigger refuse_deliveries before insert on deliveries for each row execute function refuse_deliveries()`);
  try {
    await work();
  } finally {
    await sql.unsafe('drop trigger refuse_deliveries on deliveries; drop function refuse_deliveries()');
  }
}

it('leaves connections for other requests while many calls wait for the wallet of their workspace', async () => {
  const caller = await seedCaller(database.sql);
  const registry = createCallRegistry();
  const calls = await Promise.all(Array.from({ length: 6 }, () => caller.admit()));
  for (const row of calls) registry.add(liveCall(row));
  const sql = connect({ url: database.url, max: 4 });
  const port = settlementPort({ sql, sip: new FakeSip(), registry, clock: createTestClock(), onSettled: () => {} });
  const settle = async ({ callId }: CallRow) => {
    await toPromise(createActor(port, { input: { callId, outcome: FAILED, report: null } }).start());
  };
  const [settled] = await inTransaction(database.sql, async (tx) => {
    await tx`select 1 from accounts where workspace_id = ${caller.workspaceId} and kind = 'wallet' for update`;
    const settling = Promise.all(calls.map(settle));
    const [name] = await sql<
      { applicationName: string }[]
    >`select current_setting('application_name') as application_name`;
    await eventually(async () => {
      const [waiting] = await database.sql`
        select count(*)::int as count from pg_stat_activity
        where application_name = ${name!.applicationName} and wait_event_type = 'Lock'`;
      expect(waiting).toEqual({ count: 3 });
    });
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
    return [settling];
  });
  await settled;
  await sql.end();
  const { heldNano } = await walletOf(database.sql, caller.workspaceId);
  expect(heldNano).toBe(0n);
});

it('does not lock the wallet while it waits for a webhook that is being changed', async () => {
  const { sql } = database;
  const caller = await seedCaller(sql);
  const { workspaceId } = caller;
  const row = await caller.admit();
  const registry = createCallRegistry();
  registry.add(liveCall(row));
  const webhook = await createWebhook(sql, {
    ...{ id: randomUUID(), workspaceId, url: 'https://example.com/hook', events: ['call.not_answered'] },
    ...{ secretEncrypted: Buffer.from('sealed'), now: NOW },
  });
  const port = settlementPort({ sql, sip: new FakeSip(), registry, clock: createTestClock(), onSettled: () => {} });
  const [settled] = await inTransaction(sql, async (tx) => {
    await tx`select 1 from webhook_subscriptions where id = ${webhook.id} for update`;
    const settling = toPromise(
      createActor(port, { input: { callId: row.callId, outcome: FAILED, report: null } }).start(),
    );
    await eventually(async () => expect(await lockWaits(sql)).toBe(1));
    await tx`select 1 from accounts where workspace_id = ${workspaceId} and kind = 'wallet' for update nowait`;
    return [settling];
  });
  await settled;
  expect((await getCallById(sql, row.callId))?.state).toBe('failed');
});

async function openCall({
  bridged = false,
  recorded = false,
  admit = {},
  drained = async () => {},
  begin,
  sip = new FakeSip(),
}: {
  bridged?: boolean;
  recorded?: boolean;
  admit?: Partial<AdmitCallInput>;
  drained?: () => Promise<void>;
  begin?: (run: () => Promise<unknown>) => Promise<unknown>;
  sip?: FakeSip;
} = {}) {
  const { sql } = database;
  const caller = await seedCaller(sql);
  const row = await caller.admit(admit);
  const recordingId = randomUUID();
  if (recorded) {
    await createRecording(sql, {
      id: recordingId,
      callId: row.callId,
      workspaceId: row.workspaceId,
      node: row.ownerNode,
      now: NOW,
    });
  }
  if (bridged) await moveTo(sql, row, 'bridged', { at: NOW, ...(recorded && { recordingId }) });
  const clock = createTestClock();
  const bridgedAt = momentOf(clock);
  const registry = createCallRegistry();
  const live = liveCall(row, {
    drained,
    bridgedAt: () => (bridged ? bridgedAt : null),
    recordingId: () => (recorded ? recordingId : null),
  });
  registry.add(live);
  const settled: SettleCallResult[] = [];
  const port = settlementPort({
    sql: begin ? sqlWithFaults(sql, begin) : sql,
    sip,
    registry,
    clock,
    onSettled: (result) => settled.push(result),
  });
  return {
    caller,
    row,
    live,
    clock,
    registry,
    recordingId,
    settled,
    settle({ outcome, report = null }: Pick<SettleInput, 'outcome'> & Partial<SettleInput>) {
      const actor = createActor(port, { input: { callId: row.callId, outcome, report } });
      // The promise below rejects with the error.
      actor.subscribe({ error: () => {} });
      const done = toPromise(actor);
      actor.start();
      return done;
    },
    async stored() {
      const entries = await sql<{ kind: string }[]>`
        select kind from entries where call_id = ${row.callId} order by position`;
      return {
        call: await getCallById(sql, row.callId),
        lastEvent: (await listCallEvents(sql, { callId: row.callId })).at(-1),
        entries: entries.map(({ kind }) => kind),
        deliveries: await deliveriesOfCall(sql, row.callId),
      };
    },
  };
}
