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
  storeLegHandle,
} from '../../storage/queries/calls.ts';
import { deliveriesOfCall } from '../../storage/queries/deliveries.ts';
import { createRecording, getRecording, updateRecording } from '../../storage/queries/recordings.ts';
import { addSegment, getTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { later, NOW, USD } from '../storage/seed.ts';
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

describe('what an earlier boot left behind', () => {
  for (const state of ['pending', 'initiated'] as const) {
    it(`makes a call that was ${state} a temporary failure that costs nothing`, async () => {
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
    });
  }

  it('has the legs of its calls ended, once', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { boot: 'boot-before' });
    const other = await node.orphan('initiated', { boot: 'boot-before' });
    const handle = (transactionId: string) => ({ kind: 'invite', transactionId }) as const;
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

  it('has the legs of its calls ended again when it died before the calls were settled', async () => {
    const node = await openNode();
    const { callId } = await node.orphan('bridged', { boot: 'boot-before' });
    const handle = { kind: 'invite', transactionId: 'a' } as const;
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

  it('settles a call also when the attempt before failed after it had been taken over', async () => {
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

  it('settles the next call while the queue of callbacks is away', async () => {
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

  it('bills a call that was bridged until its server was last known to live', async () => {
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
    ['nothing, when nobody knows how long its server lived', null, 0],
    ['nothing, when its server was last seen before the answer', later(5_000), 0],
    ['no time that has not come yet', later(900_000), 50],
  ] as const) {
    it(`bills ${what}`, async () => {
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

  it('bills the legs that had joined until the same moment, and ends them with the call', async () => {
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

  it('bills no more than the longest talk the call may have', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: NOW, admit: { maxDurationS: 30 } });
    await node.reconcile({ seenAt: later(45_000), now: later(60_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ talkSeconds: 30, costNano: 30_000_000n });
  });

  it('bills no more than the hold paid for when the wall clock stepped forward by an hour during the talk', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await node.reconcile({ seenAt: later(3_640_000), now: later(3_700_000) });
    // 30 s and 45 s of ringing and 60 s of talk were held.
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      talkSeconds: 135,
      costNano: 135_000_000n,
      endTime: later(145_000),
    });
    expect(await walletOf(database.sql, call.workspaceId)).toMatchObject({ heldNano: 0n });
  });

  it('bills nothing when the wall clock stepped back by an hour during the talk', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await node.reconcile({ seenAt: later(-3_560_000), now: later(-3_500_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      talkSeconds: 0,
      totalSeconds: 10,
      costNano: null,
    });
  });

  it('fails the transcript of a talk that went with the process, and keeps what was understood', async () => {
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

  it('tells in the event log that the call was lost and what became of it', async () => {
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

  it('resolves a call that an interrupted reconciliation left unknown', async () => {
    const node = await openNode();
    const call = await node.orphan('bridged', { answeredAt: later(10_000) });
    await database.sql`update calls set state = 'unknown' where call_id = ${call.callId}`;
    await node.reconcile({ seenAt: later(20_000), now: later(60_000) });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ state: 'completed', talkSeconds: 10 });
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.filter(({ event }) => event === 'call.unknown')).toEqual([]);
  });

  it('brings the recording of a lost call to the store', async () => {
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

  it('goes on with the recording of a call that was settled, but not one that is stored or failed', async () => {
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

  it('leaves the calls and the recordings of other nodes alone', async () => {
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

  it('leaves the live calls of this boot alone, and the recordings that still grow', async () => {
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

  it('has nothing to do and nothing to say on a first start', async () => {
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

/** A node that starts, with a way to leave calls behind as its earlier boot would have. */
async function openNode() {
  const { sql } = database;
  const node = `node-${randomUUID()}`;
  const boot = `boot-${randomUUID()}`;
  const deliverer = createFakeDeliverer();
  const recordings = createFakeDesk();
  const logger = createTestLogger();
  const sip = new FakeSip();
  const published: string[] = [];
  return {
    published,
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
        publish: (_, event) => void published.push(event.event),
        logger,
        ...given,
      }),
  };
}
