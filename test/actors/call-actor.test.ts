import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PublicCallEvent, presentCallEvent } from '../../actors/call-view.ts';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import { walletOf } from '../../storage/ledger.ts';
import { getCallById, listCallEvents } from '../../storage/queries/calls.ts';
import { deliveriesOfCall } from '../../storage/queries/deliveries.ts';
import { eventually } from '../eventually.ts';
import { later } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import type { DialerOptions } from './dialer-fixture.ts';
import { sqlWithFaults } from './fakes.ts';
import { placeCallOn } from './placed-call.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

describe('call from the first INVITE to its callback', () => {
  it('rings both parties, bridges, records, charges, and leaves nothing behind', async () => {
    const call = await placeCall({
      record: true,
      callbackUrl: 'https://example.com/hook',
      callbackSecret: 'x'.repeat(16),
    });
    const received: PublicCallEvent[] = [];
    call.dialer.watch(call.callId, (event) => received.push(event), new AbortController().signal);
    await call.bridge();
    const { session } = call.mediaPlane;
    await eventually(() => expect(session.log.at(-1)).toBe('record done'));
    call.clock.advance(61_500);
    call.customer().emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await call.over();

    const row = await getCallById(database.sql, call.callId);
    expect(row).toMatchObject({
      state: 'completed',
      hangupCause: 'NORMAL_CLEARING',
      leg: 'customer',
      talkSeconds: 62,
      costNano: 62_000_000n,
      recordingStatus: 'processing',
      quality: { agent: null, customer: null },
    });
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.map(({ event }) => event)).toEqual([
      'call.pending',
      'call.initiated',
      'agent.ringing',
      'agent.answered',
      'customer.dialing',
      'customer.ringing',
      'call.bridged',
      'recording.started',
      'call.completed',
    ]);
    // The watcher subscribed after `call.initiated`.
    expect(received.map(({ sequence }) => sequence)).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(session.log.filter((line) => !line.endsWith('done'))).toEqual([
      'connect agent 20000',
      'path ringback',
      'connect customer 30000',
      'path bridged',
      'record',
      'path idle',
      'measure',
      'stop recording',
    ]);
    const [delivery] = await deliveriesOfCall(database.sql, call.callId);
    expect(call.deliverer.enqueued).toEqual([delivery?.id]);
    expect(call.recordings.asked).toEqual([
      { recordingId: row?.recordingId, callId: call.callId, workspaceId: call.caller.workspaceId },
    ]);
    expect(await walletOf(database.sql, call.caller.workspaceId)).toMatchObject({ heldNano: 0n });
    expect(session.closed).toBeGreaterThan(0);
    expect(call.sip.legs.every(({ request }) => request.signal.aborted)).toBe(true);
    expect(call.clock.waiting()).toEqual([]);
  });

  it('notifies watchers of stored events only', async () => {
    const call = await placeCall();
    const received: number[] = [];
    const stored: Promise<number[]>[] = [];
    call.dialer.watch(
      call.callId,
      ({ sequence }) => {
        received.push(sequence);
        stored.push(
          listCallEvents(database.sql, { callId: call.callId }).then((rows) => rows.map((event) => event.sequence)),
        );
      },
      new AbortController().signal,
    );
    await call.bridge();
    await call.hangup();
    await call.over();
    expect(received.length).toBeGreaterThan(3);
    for (const [index, sequence] of received.entries()) expect(await stored[index]).toContain(sequence);
  });

  it('publishes the terminal event with its callback delivery, as the event log lists it', async () => {
    const call = await placeCall({ callbackUrl: 'https://example.com/hook', callbackSecret: 'x'.repeat(16) });
    const received: PublicCallEvent[] = [];
    call.dialer.watch(call.callId, (event) => received.push(event), new AbortController().signal);
    await call.bridge();
    await call.hangup();
    await call.over();
    const logged = (await listCallEvents(database.sql, { callId: call.callId })).at(-1)!;
    expect(logged.delivery).toMatchObject({ status: 'pending', attempts: 0, nextAttemptAt: expect.any(Date) });
    expect(received.at(-1)).toEqual(presentCallEvent(logged));
    expect(received.slice(0, -1).every(({ delivery }) => delivery === null)).toBe(true);
  });

  it('survives a watcher that throws', async () => {
    const call = await placeCall();
    const broken = () => {
      throw new Error('the response was closed');
    };
    call.dialer.watch(call.callId, broken, new AbortController().signal);
    await call.bridge();
    await call.hangup();
    await call.over();
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(new Set(events.map(({ event }) => event)).size).toBe(events.length);
    expect(events.at(-1)?.event).toBe('call.completed');
  });

  it('continues when the recording cannot start', async () => {
    const call = await placeCall({ record: true });
    call.mediaPlane.session.onCommand = (command) => {
      if (command === 'record') throw new Error('the disk is full');
    };
    await call.bridge();
    await eventually(async () => {
      const events = await listCallEvents(database.sql, { callId: call.callId });
      expect(events.at(-1)?.event).toBe('recording.failed');
    });
    await call.hangup();
    await call.over();
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      state: 'completed',
      recordingId: null,
      recordingStatus: null,
    });
    expect(call.recordings.asked).toEqual([]);
  });

  it('ends a call that lost its media, and charges the time until then', async () => {
    const call = await placeCall();
    await call.bridge();
    call.clock.advance(10_000);
    call.mediaPlane.session.options.onEvent({ type: 'media.lost', detail: 'the worker died' });
    await call.over();
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      state: 'completed',
      hangupCause: 'NORMAL_TEMPORARY_FAILURE',
      talkSeconds: 10,
      billingStatus: 'billed',
    });
  });

  for (const [direction, stepMs] of [
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ] as const) {
    it(`holds and charges the monotonic talk time when the wall clock steps ${direction} by an hour`, async () => {
      const call = await placeCall();
      await call.bridge();
      call.clock.jumpTo(later(stepMs));
      // The call holds 135 s. The hold grows 15 s before it runs out, to the talk so far, the lead and another minute.
      call.clock.advance(120_000);
      await eventually(async () =>
        expect(await walletOf(database.sql, call.caller.workspaceId)).toMatchObject({ heldNano: 195_000_000n }),
      );
      await eventually(() => expect(call.clock.waiting()).toContain(60_000));
      call.clock.advance(30_000);
      await call.hangup();
      await call.over();
      expect(await getCallById(database.sql, call.callId)).toMatchObject({
        state: 'completed',
        hangupCause: 'NORMAL_CLEARING',
        talkSeconds: 150,
        totalSeconds: 150,
        costNano: 150_000_000n,
      });
    });
  }

  it('ends when the wallet runs dry, and charges the whole hold', async () => {
    const call = await placeCall({}, { balanceNano: 140_000_000n });
    await call.bridge();
    // The call holds 135 s. The hold grows 15 s before it runs out, by the remaining 5 s.
    call.clock.advance(120_000);
    await eventually(async () =>
      expect(await walletOf(database.sql, call.caller.workspaceId)).toMatchObject({ availableNano: 0n }),
    );
    await eventually(() => expect(call.clock.waiting()).toContain(20_000));
    call.clock.advance(20_000);
    await call.over();
    expect(await getCallById(database.sql, call.callId)).toMatchObject({
      state: 'completed',
      hangupCause: 'INSUFFICIENT_FUNDS',
      talkSeconds: 140,
      costNano: 140_000_000n,
      billingStatus: 'billed',
    });
  });

  it('settles with the original times once storage returns', async () => {
    let away = false;
    const call = await placeCall(
      {},
      {
        actorsSql: sqlWithFaults(database.sql, async (run) => {
          if (away) throw new Error('storage is away');
          return await run();
        }),
      },
    );
    await call.bridge();
    away = true;
    call.clock.advance(30_000);
    await call.hangup();
    await eventually(() => expect(call.clock.waiting()).toEqual([500]));
    call.clock.advance(500);
    await eventually(() => expect(call.clock.waiting()).toEqual([1_000]));
    away = false;
    call.clock.advance(1_000);
    await call.over();
    expect(await getCallById(database.sql, call.callId)).toMatchObject({ state: 'completed', talkSeconds: 30 });
  });

  it('leaves the registry and ends its legs when its machine fails, and logs the failure', async () => {
    const call = await placeCall();
    const live = call.registry.get(call.callId)!;
    // @ts-expect-error The machine fails without the ending.
    live.actor.send({ type: 'agent.gone' });
    await live.settled;
    expect(call.registry.get(call.callId)).toBeUndefined();
    expect(live.abort.signal.aborted).toBe(true);
    expect(call.sip.legs[0]?.request.signal.aborted).toBe(true);
    expect(call.logger.messages('error')).toContain('call actor failed');
  });
});

function placeCall(wanted: Partial<PlaceCallRequest> = {}, options: Partial<DialerOptions> = {}) {
  return placeCallOn({ sql: database.sql, ...options }, wanted);
}
