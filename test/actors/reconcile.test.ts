import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reconcile } from '../../actors/reconcile.ts';
import { inTransaction } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import {
  type AdmitCallInput,
  type CallRow,
  getCallById,
  listCallEvents,
  settleCall,
  storeLegHandle,
} from '../../storage/queries/calls.ts';
import { deliveriesOfCall } from '../../storage/queries/deliveries.ts';
import { createRecording, getRecording, updateRecording } from '../../storage/queries/recordings.ts';
import { addSegment, getTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { later, NOW, settlement, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createFakeDeliverer, createFakeDesk, createTestLogger, FakeSip } from './fakes.ts';
import { type Caller, moveTo, seedCaller } from './seeds.ts';

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

describe('reconciliation after an earlier boot', () => {
  for (const state of ['pending', 'initiated'] as const) {
    it(`fails a ${state} call temporarily and free of charge`, async () => {
      const node = await openNode();
      const call = await node.orphan(state, { admit: CALLBACK });
      await node.reconcile({ seenAt: later(8_000), now: later(60_000) });
      expect(await getCallById(database.sql, call.callId)).toMatchObject({
        state: 'failed',
        terminalEvent: 'call.temporaryfailed',
        hangupCause: 'NORMAL_TEMPORARY_FAILURE',
        error: 'server_lost',
        answerTime: null,
        endTime: later(8_000),
        talkSeconds: 0,
        totalSeconds: 8,
        costNano: null,
        billingStatus: null,
      });
      expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({ availableNano: 10n * USD, heldNano: 0n });
      const [delivery] = await deliveriesOfCall(database.sql, call.callId);
      expect(delivery).toMatchObject({ event: 'call.temporaryfailed', status: 'pending' });
      expect(node.deliverer.enqueued).toEqual([delivery?.id]);
      expect(node.callbacks).toEqual(['pending']);
    });
  }

  it('ends the legs of its calls once', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { boot: 'boot-before' });
    const other = await node.orphan('initiated', { boot: 'boot-before' });
    const handle = (transactionId: string) => ({ kind: 'invite', transactionId, dialogId: 'd' }) as const;
    const store = (callId: string, leg: string, id: string, boot = 'boot-before') =>
      storeLegHandle(database.sql, { callId, boot, leg, handle: handle(id) });
    await store(call.callId, 'agent', 'rung');
    await store(call.callId, 'agent', 'a');
    await store(call.callId, 'customer', 'c');
    await store(other.callId, 'agent', 'b');
    await store(other.callId, 'customer', 'of another boot', 'boot-other');
    await node.reconcile();
    expect(node.sip.ended.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))).toEqual(
      ['a', 'b', 'c'].map(handle),
    );
    await node.reconcile();
    expect(node.sip.ended).toHaveLength(3);
  });

  it('ends the legs again when it died before settling the calls', async () => {
    const node = await openNode();
    const { callId } = await node.orphan('bridged', { boot: 'boot-before' });
    const handle = { kind: 'invite', transactionId: 'a', dialogId: 'd' } as const;
    await storeLegHandle(database.sql, { callId, boot: 'boot-before', leg: 'agent', handle });
    node.sip.endLegs = () => {
      throw new Error('killed');
    };
    await expect(node.reconcile()).rejects.toThrow('killed');
    const ended: unknown[] = [];
    node.sip.endLegs = (handles) => void ended.push(...handles);
    await node.reconcile({ boot: 'the next boot' });
    expect(ended).toEqual([handle]);
  });

  it('ends the legs of calls that were settled while the SIP server was away, until it can', async () => {
    const node = await openNode();
    const { callId, ownerBoot: boot } = await node.orphan('initiated');
    const handle = { kind: 'invite', transactionId: 'a', dialogId: 'd' } as const;
    await storeLegHandle(database.sql, { callId, boot, leg: 'agent', handle });
    const cause = { hangupCause: 'NORMAL_TEMPORARY_FAILURE', leg: null } as const;
    const at = later(50_000);
    await settleCall(
      database.sql,
      settlement(callId, {
        ...{ ...cause, ownerBoot: boot, keepsLegHandles: true, error: 'sip_connection_lost' },
        move: { ...cause, event: 'call.temporaryfailed', state: 'failed', sipStatus: null, at, detail: null },
        ...{ terminalEvent: 'call.temporaryfailed', answerTime: null, endTime: at, totalSeconds: 50 },
      }),
    );
    node.sip.become('disconnected');
    await node.reconcile();
    expect(node.sip.ended).toEqual([handle]);
    node.sip.become('connected');
    await node.reconcile();
    expect(node.sip.ended).toEqual([handle, handle]);
    await node.reconcile();
    expect(node.sip.ended).toHaveLength(2);
  });

  it('settles a call whose first attempt failed after the takeover', async () => {
    const node = await openNode();
    const { callId } = await node.orphan('bridged');
    const { endLegs } = node.sip;
    node.sip.endLegs = () => {
      throw new Error('the database is away');
    };
    await expect(node.reconcile()).rejects.toThrow('the database is away');
    node.sip.endLegs = endLegs;
    await node.reconcile();
    expect(await getCallById(database.sql, callId)).toMatchObject({ state: 'completed' });
  });

  it('settles the next call while the callback queue is unavailable', async () => {
    const node = await openNode();
    const calls = [
      await node.orphan('bridged', { admit: CALLBACK }),
      await node.orphan('pending', { admit: CALLBACK }),
    ];
    node.deliverer.enqueue = () => new Promise(() => {});
    expect(await node.reconcile()).toMatchObject({ calls: 2 });
    const states = await Promise.all(calls.map(async ({ callId }) => (await getCallById(database.sql, callId))?.state));
    expect(states).toEqual(['completed', 'failed']);
  });

  it('charges a bridged call until its server was last seen', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000), admit: CALLBACK });
    await node.reconcile({ seenAt: later(40_400), now: later(600_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      state: 'completed',
      terminalEvent: 'call.completed',
      hangupCause: 'NORMAL_TEMPORARY_FAILURE',
      answerTime: later(10_000),
      endTime: later(40_400),
      talkSeconds: 31,
      totalSeconds: 41,
      costNano: 31_000_000n,
      billingStatus: 'billed',
    });
    expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({
      availableNano: 10n * USD - 31_000_000n,
      heldNano: 0n,
    });
    const [delivery] = await deliveriesOfCall(database.sql, call.callId);
    expect(JSON.parse(delivery?.body ?? '')).toMatchObject({
      event: 'call.completed',
      data: { call: { talk_seconds: 31, cost_usd: 0.031, call_done: true } },
    });
    expect(node.deliverer.enqueued).toEqual([delivery?.id]);
  });

  for (const [what, seenAt, talked] of [
    ['nothing when the end of its server is unknown', null, 0],
    ['nothing when its server was last seen before the answer', later(5_000), 0],
    ['no time in the future', later(900_000), 50],
  ] as const) {
    it(`charges ${what}`, async () => {
      const node = await openNode();
      const call = await node.orphan('bridged', { answeredAt: later(10_000) });
      await node.reconcile({ seenAt, now: later(60_000) });
      expect(await getCallById(database.sql, call.callId)).toMatchObject({
        state: 'completed',
        talkSeconds: talked,
        endTime: later(10_000 + talked * 1000),
        costNano: talked === 0 ? null : BigInt(talked) * 1_000_000n,
      });
      expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({ heldNano: 0n });
    });
  }

  it('charges joined legs until the same moment, and ends them with the call', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged');
    const leg = { legId: 'leg_1', role: 'party', number: '+919833333333', mode: null, muted: false, leftAt: null };
    const legs = [{ ...leg, state: 'answered', joinedAt: later(6_000).toISOString(), hangupCause: null }];
    await database.sql`update calls set legs = ${database.sql.json(legs)} where call_id = ${call.callId}`;
    await node.reconcile({ seenAt: later(10_000), now: later(60_000) });
    const settled = (await getCallById(database.sql, call.callId))!;
    expect(settled).toMatchObject({
      legSeconds: 4,
      legs: [{ state: 'ended', hangupCause: 'NORMAL_TEMPORARY_FAILURE' }],
    });
    expect(settled.legsCostNano).toBe((settled.costNano! / BigInt(settled.talkSeconds!)) * 4n);
  });

  it('charges at most the maximum duration', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: NOW, admit: { maxDurationS: 30 } });
    await node.reconcile({ seenAt: later(45_000), now: later(60_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ talkSeconds: 30, costNano: 30_000_000n });
  });

  it('charges at most the hold when the wall clock stepped forward by an hour', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await node.reconcile({ seenAt: later(3_640_000), now: later(3_700_000) });
    // The hold covers 30 s and 45 s of ringing and 60 s of talk.
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      talkSeconds: 135,
      costNano: 135_000_000n,
      endTime: later(145_000),
    });
    expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({ heldNano: 0n });
  });

  it('charges nothing when the wall clock stepped back by an hour', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await node.reconcile({ seenAt: later(-3_560_000), now: later(-3_500_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      talkSeconds: 0,
      totalSeconds: 10,
      costNano: null,
    });
  });

  it('charges nothing when the wall clock was an hour ahead at the answer', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(3_610_000) });
    await node.reconcile({ seenAt: later(3_620_000), now: later(60_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      state: 'completed',
      talkSeconds: 0,
      costNano: null,
      endTime: later(3_610_000),
    });
    expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({ heldNano: 0n });
  });

  it('marks an interrupted transcript as failed, and keeps its segments', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: NOW, admit: { transcribe: true } });
    const { callId } = call;
    await openTranscript(database.sql, { callId, now: NOW });
    const times = { startMs: 0, endMs: 500 };
    const said = {
      leg: 'agent',
      utteranceId: 1,
      text: 'hello',
      language: 'en',
      confidence: null,
      words: [],
      ...times,
    } as const;
    await inTransaction(database.sql, async (tx) => {
      await addSegment(tx, call, { segment: { ...said, words: [] }, eventSequence: null, now: NOW });
    });
    await node.reconcile({ seenAt: later(20_000) });
    expect(await getTranscript(database.sql, callId)).toMatchObject({
      transcript: { status: 'failed', error: 'INTERRUPTED' },
      segments: [{ text: 'hello' }],
    });
  });

  it('logs the loss of the call and its outcome as events', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await node.reconcile({ seenAt: later(20_000), now: later(60_000) });
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.map(({ event, state, sequence }) => `${sequence} ${event} ${state}`)).toEqual([
      '1 call.pending pending',
      '2 call.bridged bridged',
      '3 call.unknown unknown',
      '4 call.completed completed',
    ]);
  });

  it('settles a call that an interrupted reconciliation left unknown', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await database.sql`update calls set state = 'unknown' where call_id = ${call.callId}`;
    await node.reconcile({ seenAt: later(20_000), now: later(60_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ state: 'completed', talkSeconds: 10 });
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.filter(({ event }) => event === 'call.unknown')).toEqual([]);
  });

  it('uploads the recording of a lost call', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000), recorded: true });
    await node.reconcile({ seenAt: later(20_000), now: later(60_000) });
    const row = await getCallById(database.sql, call.callId);
    expect(row).toMatchObject({ recordingStatus: 'processing' });
    expect(await getRecording(database.sql, row?.recordingId ?? '')).toMatchObject({ status: 'processing' });
    expect(node.recordings.asked).toEqual([
      { folder: null, recordingId: row?.recordingId, callId: call.callId, workspaceId: call.workspaceId },
    ]);
  });

  it('continues an unfinished recording of a settled call, but not a stored or failed one', async () => {
    const node = await openNode();
    const ids: string[] = [];
    for (const status of ['processing', 'uploaded', 'failed'] as const) {
      const call = await node.orphan('bridged', { answeredAt: NOW, recorded: true });
      const { recordingId } = (await getCallById(database.sql, call.callId)) as { recordingId: string };
      await database.sql`update calls set state = 'completed' where call_id = ${call.callId}`;
      await updateRecording(database.sql, { id: recordingId, now: NOW, patch: { status } });
      ids.push(recordingId);
    }
    expect(await node.reconcile()).toEqual({ calls: 0, recordings: 1 });
    expect(node.recordings.asked.map(({ recordingId }) => recordingId)).toEqual([ids[0]]);
  });

  it('ignores calls and recordings of other nodes', async () => {
    const node = await openNode();
    const other = await openNode();
    const theirs = await other.orphan('bridged', { answeredAt: NOW, recorded: true, boot: other.boot });
    const lost = await other.orphan('bridged', { answeredAt: NOW, recorded: true });
    expect(await node.reconcile({ seenAt: later(20_000) })).toEqual({ calls: 0, recordings: 0 });
    for (const { callId } of [theirs, lost]) {
      const row = await getCallById(database.sql, callId);
      expect(row).toMatchObject({ state: 'bridged', recordingStatus: 'recording' });
      expect(await getRecording(database.sql, row?.recordingId ?? '')).toMatchObject({ status: 'recording' });
    }
    expect(node.recordings.asked).toEqual([]);
    expect(node.logger.lines).toEqual([]);
  });

  it('ignores live calls and growing recordings of this boot', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: NOW, recorded: true, boot: node.boot });
    expect(await node.reconcile()).toEqual({ calls: 0, recordings: 0 });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ state: 'bridged' });
    expect(node.recordings.asked).toEqual([]);
  });

  it('changes nothing when it runs twice', async () => {
    const node = await openNode();
    const calls = [
      await node.orphan('pending', { admit: CALLBACK }),
      await node.orphan('bridged', { answeredAt: later(10_000), admit: CALLBACK, recorded: true }),
    ];
    expect(await node.reconcile({ seenAt: later(20_000) })).toEqual({ calls: 2, recordings: 1 });
    const once = await Promise.all(calls.map(stored));
    expect(await node.reconcile({ seenAt: later(90_000), now: later(120_000) })).toMatchObject({ calls: 0 });
    expect(await node.reconcile({ boot: randomUUID(), now: later(120_000) })).toMatchObject({ calls: 0 });
    expect(await Promise.all(calls.map(stored))).toEqual(once);
    expect(node.deliverer.enqueued).toHaveLength(2);
  });

  it('does and logs nothing on a first start', async () => {
    const node = await openNode();
    expect(await node.reconcile({ seenAt: null })).toEqual({ calls: 0, recordings: 0 });
    expect(node.logger.lines).toEqual([]);
  });
});

async function stored({ callId }: CallRow) {
  const { sql } = database;
  return {
    call: await getCallById(sql, callId),
    events: await listCallEvents(sql, { callId }),
    entries: await sql`select kind, result_nano from entries where call_id = ${callId} order by position`,
    deliveries: await deliveriesOfCall(sql, callId),
  };
}

/** A starting node, which can leave calls behind as its earlier boot would. */
async function openNode() {
  const { sql } = database;
  const node = `node-${randomUUID()}`;
  const boot = `boot-${randomUUID()}`;
  const deliverer = createFakeDeliverer();
  const recordings = createFakeDesk();
  const logger = createTestLogger();
  const sip = new FakeSip();
  const published: string[] = [];
  const callbacks: (string | null)[] = [];
  return {
    published,
    /** Status of the callback with each published terminal event. */
    callbacks,
    boot,
    sip,
    deliverer,
    recordings,
    logger,
    async orphan(
      state: 'pending' | 'initiated' | 'bridged',
      left: { answeredAt?: Date; recorded?: boolean; boot?: string; admit?: Partial<AdmitCallInput> } = {},
    ) {
      const caller: Caller = await seedCaller(sql);
      const call = await caller.admit({ ownerNode: node, ownerBoot: left.boot ?? 'an earlier boot', ...left.admit });
      if (state === 'pending') return call;
      const recordingId = randomUUID();
      if (left.recorded) {
        await createRecording(sql, {
          id: recordingId,
          callId: call.callId,
          workspaceId: call.workspaceId,
          node,
          now: NOW,
        });
      }
      await moveTo(sql, call, state, { at: left.answeredAt ?? NOW, ...(left.recorded && { recordingId }) });
      return call;
    },
    reconcile: ({ boot: by = boot, ...given }: { seenAt?: Date | null; now?: Date; boot?: string } = {}) =>
      reconcile({
        sip,
        sql,
        lost: { node, exceptBoot: by },
        owner: { node, boot: by },
        seenAt: later(30_000),
        recordingsDir: null,
        now: later(60_000),
        deliverer,
        recordings,
        publish(_, event) {
          published.push(event.event);
          if ('delivery' in event) callbacks.push(event.delivery?.status ?? null);
        },
        logger,
        ...given,
      }),
  };
}
