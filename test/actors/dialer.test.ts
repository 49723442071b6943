import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getCallById } from '../../storage/queries/calls.ts';
import { createRecording, type RecordingPatch, updateRecording } from '../../storage/queries/recordings.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { type DialerOptions, endsWhenAsked, openDialer, type TestDialer } from './dialer-fixture.ts';
import { FakeSip, quiet, sqlWithFaults } from './fakes.ts';

const CALLBACK = { callbackUrl: 'https://example.com/hook', callbackSecret: 'sixteen characters' };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

const open = (options: Partial<DialerOptions> = {}) => openDialer({ sql: database.sql, ...options });

describe('an inbound call', () => {
  it('is traced only once it is stored, because messages of unknown calls are not kept', async () => {
    const { dialer, request, caller, clock } = await open();
    const { promise: traced, resolve } = Promise.withResolvers<{ callId: string; wasStored: Promise<boolean> }>();
    const { apiKeyId, apiKeyName, userId, referenceId, metadata, placedVia, ...asked } = request();
    const receiving = dialer.receive(
      { ...asked, did: caller.did, decidedBy: { decided_by: 'rule', fault: null, after_ms: null } },
      {
        ...{ called: caller.did, caller: asked.customerNumber!, source: { host: '192.0.2.7', port: 5060 } },
        ...{ authorization: undefined, abandoned: new AbortController().signal },
        ring() {},
        refuse() {},
        challenge() {},
        answer: () => {
          throw new Error('not answered here');
        },
        traceAs({ callId, leg }) {
          expect(leg).toBe('customer');
          resolve({ callId, wasStored: getCallById(database.sql, callId).then((row) => row !== null) });
        },
      },
    );
    const { wasStored } = await traced;
    expect(await wasStored).toBe(true);
    await receiving;
    clock.advance(0);
  });
});

describe('placing a call', () => {
  it('admits it, dials the agent and answers with the initiated call', async () => {
    const { dialer, request, sip, caller, rows } = await open();
    const placed = await dialer.place(request({ metadata: { order: 7 } }));
    expect(placed).toMatchObject({
      placed: true,
      replayed: false,
      call: {
        state: 'initiated',
        call_done: false,
        did: caller.did,
        outbound_trunk_id: caller.trunkId,
        metadata: { order: 7 },
        created_by_user_id: caller.userId,
        start_time: NOW.toISOString(),
      },
    });
    expect(placed.call.call_id).toMatch(/^call_[0-9a-f-]{36}$/);
    expect(placed.call.reference_id).toMatch(/^qc2c-[0-9a-f-]{36}$/);
    await eventually(() =>
      expect(sip.legs.map(({ request: { calledNumber } }) => calledNumber)).toEqual(['+919810000001']),
    );
    expect(await rows()).toMatchObject([{ ownerNode: 'node-1', ownerBoot: 'boot-1' }]);
  });

  it('answers with the live call when its reference is bound to one, and dials nobody', async () => {
    const { dialer, request, registry } = await open();
    const first = await dialer.place(request({ referenceId: 'order-7' }));
    const again = await dialer.place(request({ referenceId: 'order-7' }));
    expect(again).toMatchObject({ placed: false, replayed: true, call: { call_id: first.call.call_id } });
    expect(registry.list()).toHaveLength(1);
  });

  it('repeats a live reference for the same fields in any order, whoever sends them', async () => {
    const { dialer, request, registry } = await open();
    const metadata = { order: 7, items: [{ a: 1, b: 2 }] };
    const first = await dialer.place(request({ referenceId: 'order-7', metadata }));
    const reordered = { items: [{ b: 2, a: 1 }], order: 7 };
    const again = await dialer.place(request({ referenceId: 'order-7', metadata: reordered, placedVia: 'session' }));
    expect(again).toMatchObject({ replayed: true, call: { call_id: first.call.call_id } });
    expect(registry.list()).toHaveLength(1);
  });

  it.each([
    ['customer_number', { customerNumber: '+919810000009' }],
    ['record', { record: true }],
    ['max_duration', { maxDurationS: 60 }],
    ['metadata', { metadata: { order: 8 } }],
    [null, { onMachine: 'hangup' }],
    [null, { recordingBeep: true }],
  ] as const)('rejects a live reference with other fields: %s', async (field, changed) => {
    const { dialer, request, registry } = await open();
    const { call } = await dialer.place(request({ referenceId: 'order-7' }));
    await expect(dialer.place(request({ referenceId: 'order-7', ...changed }))).rejects.toMatchObject({
      code: 'REFERENCE_CONFLICT',
      details: { call_id: call.call_id, fields: field === null ? [] : [field] },
    });
    expect(registry.list()).toHaveLength(1);
  });

  it('seals the callback secret, keeps its last four characters and the normalised URL', async () => {
    const { dialer, request, rows, secrets, caller } = await open();
    const { call } = await dialer.place(
      request({ ...CALLBACK, callbackUrl: 'https://EXAMPLE.com:443/a/../hook#part' }),
    );
    expect(call).toMatchObject({ callback_url: 'https://example.com/hook', callback_secret_last4: 'ters' });
    const [row] = await rows();
    expect(row?.callbackSecretEncrypted?.toString('latin1')).not.toContain('sixteen');
    const opened = secrets.open(
      row?.callbackSecretEncrypted ?? Buffer.alloc(0),
      callbackSecretContext(caller.workspaceId),
    );
    expect(opened).toBe('sixteen characters');
  });

  it('is refused without a free media port; nobody was dialed and the same reference works afterwards', async () => {
    const { dialer, request, mediaPlane, sip, registry } = await open();
    mediaPlane.refuse();
    await expect(dialer.place(request({ referenceId: 'order-7' }))).rejects.toMatchObject({
      code: 'no_free_channel',
      retryAfterS: 10,
    });
    expect(sip.legs).toEqual([]);
    expect(registry.list()).toEqual([]);
    mediaPlane.onOpen = () => undefined;
    const { placed, call } = await dialer.place(request({ referenceId: 'order-7' }));
    expect([placed, call.state, call.reference_id]).toEqual([true, 'initiated', 'order-7']);
  });

  it('is refused while the media workers are fully loaded, before anything is stored', async () => {
    const { dialer, request, mediaPlane, rows } = await open();
    mediaPlane.load = 1;
    const placing = dialer.place(request({ referenceId: 'order-8' }));
    await expect(placing).rejects.toMatchObject({ code: 'no_free_channel', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
    mediaPlane.load = 0.99;
    expect(await dialer.place(request({ referenceId: 'order-8' }))).toMatchObject({ placed: true });
  });

  it('passes a refusal of the admission on and starts nothing', async () => {
    const { dialer, request, registry } = await open();
    await expect(dialer.place(request({ did: '+911199999999' }))).rejects.toMatchObject({
      code: 'CALLER_ID_NOT_OWNED',
    });
    expect(registry.list()).toEqual([]);
  });

  it('answers that the outcome is not known when the call is not confirmed within ten seconds', async () => {
    const { dialer, request, clock, logger, rows } = await open({
      actorsSql: sqlWithFaults(database.sql, () => new Promise(() => {})),
    });
    const placing = dialer.place(request({ referenceId: 'order-7' }));
    const answer = expect(placing).rejects.toMatchObject({ code: 'C2C_OUTCOME_UNKNOWN', retryAfterS: null });
    await eventually(async () => expect(await rows()).toHaveLength(1));
    clock.advance(9_999);
    await quiet();
    expect(logger.messages('error')).toEqual([]);
    clock.advance(1);
    await answer;
    const [row] = await rows();
    await expect(placing).rejects.toMatchObject({ details: { call_id: row?.callId } });
    expect(logger.messages('error')).toEqual(['call placement not confirmed in time']);
  });

  it('answers that the outcome is not known when storage hangs at the admission', async () => {
    let asked = 0;
    const { dialer, request, clock } = await open({
      dialerSql: sqlWithFaults(database.sql, () => {
        asked += 1;
        return new Promise(() => {});
      }),
    });
    const answer = expect(dialer.place(request())).rejects.toMatchObject({ code: 'C2C_OUTCOME_UNKNOWN' });
    await eventually(() => expect(asked).toBe(1));
    clock.advance(10_000);
    await answer;
  });

  it('goes on with a call whose admission was stored although the answer was lost', async () => {
    const { dialer, request, rows, registry } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        await run();
        throw new Error('the connection was lost after the commit');
      }),
    });
    const { placed, call } = await dialer.place(request());
    expect([placed, call.state]).toEqual([true, 'initiated']);
    expect(registry.list().map(({ row }) => row.callId)).toEqual([call.call_id]);
    expect(await rows()).toHaveLength(1);
  });

  it('fails, and starts nothing, when storage did not take the admission', async () => {
    const { dialer, request, rows, registry } = await open({
      dialerSql: sqlWithFaults(database.sql, async () => {
        throw new Error('storage is away');
      }),
    });
    await expect(dialer.place(request())).rejects.toThrow('storage is away');
    expect(await rows()).toEqual([]);
    expect(registry.list()).toEqual([]);
  });

  it('rings no phone when the admission comes after the caller was told that the outcome is not known', async () => {
    const stored = Promise.withResolvers<void>();
    const { dialer, request, clock, sip, rows } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        await stored.promise;
        return await run();
      }),
    });
    const answer = expect(dialer.place(request())).rejects.toMatchObject({ code: 'C2C_OUTCOME_UNKNOWN' });
    await eventually(() => expect(clock.waiting()).toContain(10_000));
    clock.advance(10_000);
    await answer;
    stored.resolve();
    await eventually(async () =>
      expect(await rows()).toMatchObject([{ state: expect.stringMatching(/failed|rejected/) }]),
    );
    expect(sip.legs).toEqual([]);
  });

  it('starts an admitted call although its answer was lost and what was held for it cannot be read', async () => {
    const lossy = sqlWithFaults(database.sql, async (run) => {
      await run();
      throw new Error('the connection was lost after the commit');
    });
    const { dialer, request, registry } = await open({
      dialerSql: new Proxy(lossy, {
        apply(target, self, [text, ...values]) {
          if (String(text).includes('from holds')) return Promise.reject(new Error('storage is away'));
          return Reflect.apply(target, self, [text, ...values]);
        },
      }),
    });
    const { call } = await dialer.place(request());
    expect(registry.get(call.call_id)?.actor.getSnapshot().context.fundedForMs).toBe(0);
  });

  it('leaves no timer behind once it has answered', async () => {
    const { dialer, request, clock } = await open();
    await dialer.place(request());
    expect(clock.waiting()).not.toContain(10_000);
  });
});

describe('placing a call while a line is down', () => {
  it('is refused as not configured when the SIP server was never reached', async () => {
    const { dialer, request, rows } = await open({ sip: new FakeSip('disconnected') });
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'C2C_NOT_CONFIGURED', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
  });

  it('is refused as a line down when the SIP server was there before, and works when it is back', async () => {
    const { dialer, request, rows, sip } = await open({ sip: new FakeSip('disconnected') });
    sip.become('connected');
    sip.become('disconnected');
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'CARRIER_LINE_DOWN', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
    sip.become('connected');
    expect((await dialer.place(request())).placed).toBe(true);
  });

  it('is refused when the carrier of the trunk does not answer, and consumes no reference', async () => {
    const { dialer, request, rows, downTrunks, caller } = await open();
    downTrunks.add(caller.trunkId);
    for (const trunkId of [null, caller.trunkId]) {
      await expect(dialer.place(request({ referenceId: 'order-7', trunkId }))).rejects.toMatchObject({
        code: 'CARRIER_LINE_DOWN',
        retryAfterS: 10,
      });
    }
    expect(await rows()).toEqual([]);
    downTrunks.clear();
    expect((await dialer.place(request({ referenceId: 'order-7' }))).placed).toBe(true);
  });

  it('still answers with the live call of a reference', async () => {
    const { dialer, request, downTrunks, caller } = await open();
    const { call } = await dialer.place(request({ referenceId: 'order-7' }));
    downTrunks.add(caller.trunkId);
    const again = await dialer.place(request({ referenceId: 'order-7' }));
    expect(again).toMatchObject({ replayed: true, call: { call_id: call.call_id } });
  });

  it('is refused, too, under a reference that a rejected call has given back', async () => {
    const { dialer, request, downTrunks, caller, mediaPlane, rows } = await open();
    mediaPlane.refuse();
    await expect(dialer.place(request({ referenceId: 'order-7' }))).rejects.toMatchObject({ code: 'no_free_channel' });
    mediaPlane.onOpen = () => undefined;
    downTrunks.add(caller.trunkId);
    await expect(dialer.place(request({ referenceId: 'order-7' }))).rejects.toMatchObject({
      code: 'CARRIER_LINE_DOWN',
    });
    expect(await rows()).toMatchObject([{ state: 'rejected' }]);
  });

  it('leaves a trunk the workspace does not have to the admission', async () => {
    const { dialer, request } = await open();
    await expect(dialer.place(request({ trunkId: randomUUID() }))).rejects.toMatchObject({
      code: 'DIALER_NOT_PROVISIONED',
    });
  });
});

describe('the callback URL of a placement', () => {
  for (const [what, callbackUrl, addresses] of [
    ['plain http', 'http://example.com/hook', ['93.184.216.34']],
    ['a private address', 'https://10.0.0.1/hook', []],
    ['a name that resolves to a private address', 'https://example.com/hook', ['93.184.216.34', '192.168.1.1']],
    ['no URL at all', 'nonsense', []],
  ] as const) {
    it(`is refused when it is ${what}`, async () => {
      const { dialer, request, rows } = await open({ resolve: async () => addresses });
      await expect(dialer.place(request({ ...CALLBACK, callbackUrl }))).rejects.toMatchObject({
        code: 'INVALID_CALLBACK_URL',
      });
      expect(await rows()).toEqual([]);
    });
  }

  for (const code of ['ENOTFOUND', 'ENODATA']) {
    it(`is refused when its name does not exist (${code})`, async () => {
      const { dialer, request } = await open({ resolve: failingWith(code) });
      await expect(dialer.place(request(CALLBACK))).rejects.toMatchObject({ code: 'INVALID_CALLBACK_URL' });
    });
  }

  for (const code of ['ETIMEOUT', 'ESERVFAIL', 'ECONNREFUSED', 'ECANCELLED', 'EREFUSED']) {
    it(`may be tried again when it is our look-up that failed (${code}), under the same reference`, async () => {
      let broken = true;
      const { dialer, request, rows } = await open({
        resolve: async (name, signal) => (broken ? await failingWith(code)(name, signal) : ['93.184.216.34']),
      });
      const wanted = request({ ...CALLBACK, referenceId: 'order-7' });
      await expect(dialer.place(wanted)).rejects.toMatchObject({ code: 'C2C_CALLBACK_UNREACHABLE', retryAfterS: 10 });
      expect(await rows()).toEqual([]);
      broken = false;
      expect((await dialer.place(wanted)).placed).toBe(true);
    });
  }
});

describe('a drain', () => {
  it('refuses placements with the time to come back, and stores nothing of them', async () => {
    const { dialer, request, rows } = await open();
    await dialer.drain(1_000);
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'SHUTTING_DOWN', retryAfterS: 5 });
    expect(await rows()).toEqual([]);
  });

  it('refuses a placement that was still looking up its callback host when the drain began', async () => {
    const lookUp = Promise.withResolvers<string[]>();
    let asked = 0;
    const { dialer, request, rows } = await open({
      resolve: () => {
        asked += 1;
        return lookUp.promise;
      },
    });
    const placing = expect(dialer.place(request(CALLBACK))).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    await eventually(() => expect(asked).toBe(1));
    await dialer.drain(1_000);
    lookUp.resolve(['93.184.216.34']);
    await placing;
    expect(await rows()).toEqual([]);
  });

  it('waits for a placement that was being admitted when it began, and for its call', async () => {
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const { dialer, request, registry, sip } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        asked += 1;
        await gate.promise;
        return await run();
      }),
    });
    const placing = dialer.place(request());
    await eventually(() => expect(asked).toBe(1));
    let drained = false;
    const draining = dialer.drain(60_000).then(() => {
      drained = true;
    });
    await quiet();
    expect(drained).toBe(false);
    gate.resolve();
    expect((await placing).placed).toBe(true);
    await eventually(() => expect(sip.legs).toHaveLength(1));
    await quiet();
    expect(drained).toBe(false);
    sip.legs[0]?.tell({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' });
    await draining;
    expect(registry.list()).toEqual([]);
  });

  it('lets live calls talk on for the grace, then hangs them up, and ends when they are settled', async () => {
    const { dialer, request, sip, clock, rows } = await open();
    sip.onDial = endsWhenAsked;
    await dialer.place(request());
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const draining = dialer.drain(20_000);
    await eventually(() => expect(clock.waiting()).toContain(20_000));
    clock.advance(19_999);
    await quiet();
    expect(sip.legs[0]?.hangups).toEqual([]);
    clock.advance(1);
    await draining;
    expect(sip.legs[0]?.hangups).toEqual(['SYSTEM_SHUTDOWN']);
    expect(await rows()).toMatchObject([
      { state: 'failed', terminalEvent: 'call.temporaryfailed', hangupCause: 'SYSTEM_SHUTDOWN', error: 'shutdown' },
    ]);
  });
});

describe('hanging up', () => {
  it('ends a live call and answers with it', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = endsWhenAsked;
    const { call } = await dialer.place(request());
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const ended = await dialer.hangup({ workspaceId: caller.workspaceId, callId: call.call_id });
    expect(ended).toMatchObject({
      state: 'failed',
      call_done: true,
      terminal_event: 'call.not_answered',
      hangup_cause: 'ORIGINATOR_CANCEL',
      error: 'cancelled',
    });
    expect(sip.legs[0]?.hangups).toEqual(['ORIGINATOR_CANCEL']);
  });

  it('takes the reference for a name of the call as well', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = endsWhenAsked;
    await dialer.place(request({ referenceId: 'order-7' }));
    const ended = await dialer.hangup({ workspaceId: caller.workspaceId, callId: 'order-7' });
    expect(ended).toMatchObject({ reference_id: 'order-7', call_done: true });
  });

  it('returns a finished call unchanged', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = endsWhenAsked;
    const { call } = await dialer.place(request());
    const target = { workspaceId: caller.workspaceId, callId: call.call_id };
    const ended = await dialer.hangup(target);
    expect(await dialer.hangup(target)).toEqual(ended);
  });

  it('answers with the call as it is when it takes too long to end', async () => {
    const { dialer, request, clock, caller, sip } = await open({});
    const { call } = await dialer.place(request());
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const answer = dialer.hangup({ workspaceId: caller.workspaceId, callId: call.call_id });
    // Both legs stay silent: the machine gives them up after some seconds, the answer does not wait that long twice.
    await eventually(() => expect(clock.waiting()).toContain(8_000));
    clock.advance(8_000);
    expect((await answer).call_id).toBe(call.call_id);
  });

  it('does not know a call of another workspace, nor one that never was', async () => {
    const { dialer, request } = await open();
    const { call } = await dialer.place(request());
    const stranger = await open();
    for (const callId of [call.call_id, call.reference_id, 'call_nobody', "' or 1=1"]) {
      const target = { workspaceId: stranger.caller.workspaceId, callId };
      await expect(stranger.dialer.hangup(target)).rejects.toMatchObject({ code: 'CALL_NOT_FOUND' });
    }
    expect((await getCallById(database.sql, call.call_id))?.state).toBe('initiated');
  });

  it('returns a live call of another node as it is', async () => {
    const { dialer, caller } = await open();
    const call = await caller.admit({ ownerNode: 'node-2' });
    const target = { workspaceId: caller.workspaceId, callId: call.callId };
    expect(await dialer.hangup(target)).toMatchObject({ call_id: call.callId, state: 'pending' });
  });
});

describe('looking again for a recording', () => {
  it('tries to store it and tells when something changed', async () => {
    const dialer = await open();
    const recording = await recordedCall(dialer);
    dialer.recordings.onRetry = async ({ recordingId }) => {
      await updateRecording(database.sql, { id: recordingId, now: NOW, patch: { status: 'uploaded' } });
    };
    expect(await dialer.dialer.refreshRecording(recording.callId)).toBe(true);
    expect(dialer.recordings.retried).toEqual([recording]);
  });

  it('tells when nothing changed', async () => {
    const dialer = await open();
    const { callId } = await recordedCall(dialer, { status: 'failed' });
    expect(await dialer.dialer.refreshRecording(callId)).toBe(false);
    expect(dialer.recordings.retried).toHaveLength(1);
  });

  it('does nothing for a recording that is stored already, for a live call, or without a recording', async () => {
    const dialer = await open();
    const uploaded = await recordedCall(dialer, { status: 'uploaded' });
    const live = await recordedCall(dialer, { status: 'recording' }, { state: 'bridged' });
    const { callId } = await dialer.caller.admit();
    for (const id of [uploaded.callId, live.callId, callId, 'call_nobody']) {
      expect(await dialer.dialer.refreshRecording(id)).toBe(false);
    }
    expect(dialer.recordings.retried).toEqual([]);
  });

  it('leaves a recording to the node that has its file', async () => {
    const dialer = await open();
    const { callId } = await recordedCall(dialer, {}, { ownerNode: 'node-2' });
    expect(await dialer.dialer.refreshRecording(callId)).toBe(false);
    expect(dialer.recordings.retried).toEqual([]);
  });
});

function failingWith(code: string) {
  return async (_name: string, _signal?: AbortSignal): Promise<string[]> => {
    throw Object.assign(new Error(`queryA ${code}`), { code });
  };
}

/** A call that was recorded and is over, unless told otherwise. */
async function recordedCall(
  { caller }: TestDialer,
  patch: RecordingPatch = {},
  { state = 'completed', ownerNode = 'node-1' } = {},
) {
  const { sql } = database;
  const { callId, workspaceId } = await caller.admit({ ownerNode });
  const recordingId = randomUUID();
  await createRecording(sql, { id: recordingId, callId, workspaceId, node: ownerNode, now: NOW });
  await sql`update calls set state = ${state}, recording_id = ${recordingId} where call_id = ${callId}`;
  await updateRecording(sql, { id: recordingId, now: NOW, patch: { status: 'processing', ...patch } });
  return { recordingId, callId, workspaceId };
}
