import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublicCallEvent, presentCallEvent } from '../../actors/call-view.ts';
import { connect } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { getCallById, listCallEvents, markOrphansUnknown } from '../../storage/queries/calls.ts';
import { eventually } from '../eventually.ts';
import { isDeep } from '../properties.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { acceptsHangup, openDialer, type TestDialer } from './dialer-fixture.ts';
import { remoteMedia } from './fakes.ts';

const BATCHES = isDeep ? 50 : 10;
const BATCH_CALLS = 10;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('call with a failing database', () => {
  it('stores every event, settles once and notifies watchers after connections break at every step', async () => {
    const killer = connect({ url: database.url, max: 1 });
    const cut = () => killer`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    const call = await bridgedCall(cut);
    await cut();
    call.clock.advance(10_000);
    call.sip.legs[1]!.emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await cut();
    await untilGone(call);
    await killer.end();
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.map(({ event }) => event)).toEqual([
      'call.pending',
      'call.initiated',
      'agent.answered',
      'customer.dialing',
      'call.bridged',
      'call.completed',
    ]);
    expect(call.received.map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5, 6]);
    const row = await getCallById(database.sql, call.callId);
    const talkedMs = row!.endTime!.getTime() - row!.answerTime!.getTime();
    expect(talkedMs).toBeGreaterThanOrEqual(10_000);
    expect(row).toMatchObject({ state: 'completed', costNano: BigInt(Math.ceil(talkedMs / 1_000)) * 1_000_000n });
    expect(await walletOf(database.sql, call.caller.workspaceId)).toMatchObject({ heldNano: 0n });
  });
});

describe('call after a takeover by another node', () => {
  it('hangs up when its journal is refused, and leaves settlement to the new owner', async () => {
    const call = await bridgedCall();
    await markOrphansUnknown(database.sql, {
      lost: { node: 'node-1', boot: 'boot-1' },
      owner: { node: 'node-2', boot: 'boot-2' },
      seenAt: null,
      now: NOW,
    });
    call.mediaPlane.session.options.onEvent({ type: 'recording.failed', detail: 'the disk is full' });
    await untilGone(call);
    expect(call.sip.legs.map(({ hangups }) => hangups)).toEqual([['SYSTEM_SHUTDOWN'], ['SYSTEM_SHUTDOWN']]);
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.at(-1)).toMatchObject({ event: 'call.unknown' });
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ state: 'unknown', ownerBoot: 'boot-2' });
    expect((await walletOf(database.sql, call.caller.workspaceId)).heldNano).toBeGreaterThan(0n);
  });
});

it('calls that end in every phase leave no entry, timer, listener or hold', async () => {
  const { sql } = database;
  const dialer = await openDialer({ sql, balanceNano: 1_000_000_000_000n });
  dialer.sip.onDial = (leg) => {
    acceptsHangup(leg);
    const number = dialer.sip.legs.length;
    if (number % 5 === 0) leg.emit({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' });
    else if (number % 5 < 4) leg.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
  };
  for (let batch = 0; batch < BATCHES; batch += 1) {
    await Promise.all(Array.from({ length: BATCH_CALLS }, () => dialer.dialer.place(dialer.request({ record: true }))));
    await Promise.all(dialer.registry.list().map((call) => call.journal.drained()));
    for (const { actor } of dialer.registry.list()) actor.send({ type: 'hangup.requested', reason: 'api' });
    await dialer.registry.idle();
    dialer.clock.advance(61_000);
  }
  expect(dialer.registry.list()).toEqual([]);
  expect(dialer.clock.waiting()).toEqual([]);
  expect(await walletOf(sql, dialer.caller.workspaceId)).toMatchObject({ heldNano: 0n });
  const rows = await dialer.rows();
  expect(rows).toHaveLength(BATCHES * BATCH_CALLS);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(['completed', 'failed']));
  expect(dialer.mediaPlane.sessions.length).toBeGreaterThan(0);
  expect(dialer.mediaPlane.sessions.every(({ closed }) => closed > 0)).toBe(true);
});

async function bridgedCall(between: () => PromiseLike<unknown> = async () => {}) {
  const dialer = await openDialer({ sql: database.sql });
  dialer.sip.onDial = acceptsHangup;
  const { call } = await dialer.dialer.place(dialer.request());
  const received: PublicCallEvent[] = [await firstEvent(call.call_id)];
  dialer.dialer.watch(call.call_id, (event) => received.push(event), new AbortController().signal);
  for (const index of [0, 1]) {
    await eventually(() => expect(dialer.sip.legs).toHaveLength(index + 1));
    dialer.sip.legs[index]!.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
    // Dialing the customer reads the trunk, which must not fail.
    await eventually(() => expect(dialer.sip.legs).toHaveLength(2));
    await between();
  }
  await settle(dialer, () => dialer.registry.get(call.call_id)!.journal.drained());
  return { ...dialer, callId: call.call_id, received };
}

async function firstEvent(callId: string): Promise<PublicCallEvent> {
  const events = await listCallEvents(database.sql, { callId, afterSequence: 1 });
  return presentCallEvent(events[0]!);
}

/** Advances the clock so that retries run. */
async function settle({ clock }: Pick<TestDialer, 'clock'>, work: () => Promise<void>): Promise<void> {
  let done = false;
  const finished = work().finally(() => {
    done = true;
  });
  await eventually(() => {
    if (!done) clock.advance(50);
    expect(done).toBe(true);
  });
  await finished;
}

async function untilGone(call: TestDialer): Promise<void> {
  await settle(call, () => call.registry.idle());
}
