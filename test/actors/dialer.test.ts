import { randomUUID } from 'node:crypto';
import type { Fragment } from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import type { InboundCall } from '../../sip/sip-gateway.ts';
import { getCallById } from '../../storage/queries/calls.ts';
import { createRecording, type RecordingPatch, updateRecording } from '../../storage/queries/recordings.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { acceptsHangup, type DialerOptions, openDialer, type TestDialer } from './dialer-fixture.ts';
import { FakeSip, quiet, sqlWithFaults } from './fakes.ts';

const CALLBACK = { callbackUrl: 'https://example.com/hook', callbackSecret: 'sixteen characters' };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

async function waitingForLocks(): Promise<number> {
  return await activity(database.sql`wait_event_type = 'Lock'`);
}

async function openTransactions(): Promise<number> {
  return await activity(database.sql`xact_start is not null and pid <> pg_backend_pid()`);
}

async function activity(condition: Fragment): Promise<number> {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::int from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and ${condition}`;
  return row!.count;
}

const open = (options: Partial<DialerOptions> = {}) => openDialer({ sql: database.sql, ...options });

function inboundCall({ traceAs }: Pick<InboundCall, 'traceAs'>): InboundCall {
  return {
    ...{ called: '+912240000001', to: '+912240000001', caller: '+919822222222' },
    ...{ source: { host: '192.0.2.7', port: 5060 }, authorization: undefined, abandoned: new AbortController().signal },
    offersAudio: () => true,
    ring() {},
    refuse() {},
    challenge() {},
    answer: () => {
      throw new Error('not answered here');
    },
    traceAs,
  };
}

describe('inbound call', () => {
  it.each([
    ['whose text is invalid SSML', { announce: '<speak><p>Call for sales.' }],
    ['whose voice was deleted', { announce: 'Call for sales.', voiceId: 'vce_deleted' }],
  ])('rings the endpoint without an announcement %s', async (_, wanted) => {
    const { dialer, request, caller, sip, speech, rows } = await open();
    speech.onResolve = ({ voiceId }) => {
      if (voiceId !== null) throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice.');
    };
    const { apiKeyId, apiKeyName, userId, referenceId, metadata, placedVia, ...asked } = request(wanted);
    const decidedBy = { decided_by: 'rule', fault: null, after_ms: null } as const;
    await dialer.receive({ ...asked, did: caller.did, decidedBy }, inboundCall({ traceAs() {} }));
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(await rows()).toMatchObject([{ direction: 'inbound', announceCharacters: null }]);
  });

  it('gets traced only after it is stored, because the trace drops unknown calls', async () => {
    const { dialer, request, caller, clock } = await open();
    const { promise: traced, resolve } = Promise.withResolvers<{ callId: string; wasStored: Promise<boolean> }>();
    const { apiKeyId, apiKeyName, userId, referenceId, metadata, placedVia, ...asked } = request();
    const receiving = dialer.receive(
      { ...asked, did: caller.did, decidedBy: { decided_by: 'rule', fault: null, after_ms: null } },
      inboundCall({
        traceAs({ callId, leg }) {
          expect(leg).toBe('customer');
          resolve({ callId, wasStored: getCallById(database.sql, callId).then((row) => row !== null) });
        },
      }),
    );
    const { wasStored } = await traced;
    expect(await wasStored).toBe(true);
    await receiving;
    clock.advance(0);
  });
});

describe('check of the speech of later calls', () => {
  it('rejects what the placement of a call rejects', async () => {
    const { dialer, request, speech } = await open();
    const { workspaceId } = request();
    const later = { workspaceId, announce: 'Call for the sales team.', whisper: null, voiceId: null };
    await dialer.checkSpeech(later);
    await expect(dialer.checkSpeech({ ...later, announce: '<speak>Call' })).rejects.toMatchObject({
      code: 'INVALID_ANNOUNCE',
      message: expect.stringMatching(/^announce: not well-formed SSML/),
      details: [{ path: 'announce', message: expect.stringMatching(/^not well-formed SSML/) }],
    });
    speech.onResolve = () => {
      throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice.');
    };
    await expect(dialer.checkSpeech({ ...later, voiceId: 'gone' })).rejects.toMatchObject({ code: 'VOICE_NOT_FOUND' });
  });
});

describe('placement of a call', () => {
  it('admits it, dials the agent and returns the initiated call', async () => {
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

  it('returns the live call of its reference without dialing', async () => {
    const { dialer, request, registry } = await open();
    const first = await dialer.place(request({ referenceId: 'order-7' }));
    const again = await dialer.place(request({ referenceId: 'order-7' }));
    expect(again).toMatchObject({ placed: false, replayed: true, call: { call_id: first.call.call_id } });
    expect(registry.list()).toHaveLength(1);
  });

  it('repeats a live reference for the same fields in any order, from any client', async () => {
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

  it('encrypts the callback secret, and keeps its last four characters and the normalised URL', async () => {
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

  it('fails without a free media port, dials nothing and keeps the reference available', async () => {
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

  it('fails while the media workers are fully loaded, and stores nothing', async () => {
    const { dialer, request, mediaPlane, rows } = await open();
    mediaPlane.load = 1;
    const placing = dialer.place(request({ referenceId: 'order-8' }));
    await expect(placing).rejects.toMatchObject({ code: 'no_free_channel', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
    mediaPlane.load = 0.99;
    expect(await dialer.place(request({ referenceId: 'order-8' }))).toMatchObject({ placed: true });
  });

  it('fails without capacity for transcription, counting ringing calls', async () => {
    const { dialer, request, recognition, rows } = await open();
    recognition.loadPerStream = 0.25;
    await dialer.place(request({ transcribe: true }));
    await dialer.place(request({ transcribe: true }));
    const placing = dialer.place(request({ transcribe: true, referenceId: 'order-9' }));
    await expect(placing).rejects.toMatchObject({ code: 'no_free_channel', retryAfterS: 10 });
    expect(await rows()).toHaveLength(2);
    expect(await dialer.place(request({ referenceId: 'order-9' }))).toMatchObject({ placed: true });
  });

  it('starts the listening threads for a transcribed call, while its phones ring', async () => {
    const { dialer, request, listening } = await open();
    await dialer.place(request());
    expect(listening.isWarm).toBe(false);
    await dialer.place(request({ transcribe: true, referenceId: 'order-9' }));
    expect(listening.isWarm).toBe(true);
  });

  it('forwards a refused admission and starts nothing', async () => {
    const { dialer, request, registry } = await open();
    await expect(dialer.place(request({ did: '+911199999999' }))).rejects.toMatchObject({
      code: 'CALLER_ID_NOT_OWNED',
    });
    expect(registry.list()).toEqual([]);
  });

  it('returns the initiated call after ten seconds when its first move is still unstored', async () => {
    const { dialer, request, clock, logger, sip, rows } = await open({
      actorsSql: sqlWithFaults(database.sql, () => new Promise(() => {})),
    });
    const placing = dialer.place(request({ referenceId: 'order-7' }));
    await eventually(() => expect(sip.legs).toHaveLength(1));
    clock.advance(9_999);
    await quiet();
    expect(logger.messages('warn')).toEqual([]);
    clock.advance(1);
    const [row] = await rows();
    const call = { call_id: row?.callId, state: 'initiated' };
    expect(await placing).toMatchObject({ placed: true, replayed: false, call });
    expect(logger.messages('warn')).toEqual(['call placed before its first move was stored']);
  });

  it('fails as overloaded after five seconds behind locks of other placements, and stores nothing', async () => {
    const { dialer, request, clock, caller, rows, sip } = await open();
    const other = await database.sql.reserve();
    try {
      await other`begin`;
      await other`select 1 from workspaces where id = ${caller.workspaceId} for update`;
      const placing = dialer.place(request({ referenceId: 'order-8' }));
      const answer = expect(placing).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', retryAfterS: 1 });
      await eventually(async () => expect(await waitingForLocks()).toBe(1));
      clock.advance(5_000);
      await answer;
      await other`commit`;
    } finally {
      other.release();
    }
    await eventually(async () => expect(await openTransactions()).toBe(0));
    expect(await rows()).toEqual([]);
    expect(sip.legs).toEqual([]);
    expect(await dialer.place(request({ referenceId: 'order-8' }))).toMatchObject({ placed: true });
  });

  it('fails as overloaded after five seconds without a database connection, and stores nothing', async () => {
    const connected = Promise.withResolvers<void>();
    const outcome = Promise.withResolvers<unknown>();
    const { dialer, request, clock, rows } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        await connected.promise;
        const running = run();
        outcome.resolve(running.catch((error) => error));
        return await running;
      }),
    });
    const answer = expect(dialer.place(request())).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    await eventually(() => expect(clock.waiting()).toContain(5_000));
    clock.advance(5_000);
    await answer;
    connected.resolve();
    expect(await outcome.promise).toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    expect(await rows()).toEqual([]);
  });

  it('reports an unknown outcome when storage hangs during the admission', async () => {
    const { dialer, request, clock, logger, rows } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        await run();
        return await new Promise(() => {});
      }),
    });
    const placing = dialer.place(request());
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

  it('continues with a call whose admission committed although the response was lost', async () => {
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

  it('continues with a call whose admission commits after its connection was lost', async () => {
    const { dialer, request, rows, registry } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        run().catch(() => {});
        await eventually(async () => expect(await waitingForLocks()).toBe(1));
        throw new Error('the connection was lost during the commit');
      }),
    });
    // Makes the commit wait.
    await database.sql`
      create function wait_at_commit() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(1); return null; end'`;
    await database.sql`
      create constraint trigger wait_at_commit after insert on calls deferrable initially deferred
        for each row execute function wait_at_commit()`;
    const other = await database.sql.reserve();
    try {
      await other`select pg_advisory_lock(1)`;
      const placing = dialer.place(request());
      const failed = placing.catch(() => {});
      await Promise.race([failed, eventually(async () => expect(await waitingForLocks()).toBe(2))]);
      await other`select pg_advisory_unlock(1)`;
      const { placed, call } = await placing;
      expect([placed, call.state]).toEqual([true, 'initiated']);
      expect(registry.list().map(({ row }) => row.callId)).toEqual([call.call_id]);
      expect(await rows()).toHaveLength(1);
    } finally {
      other.release();
      await database.sql`drop function wait_at_commit cascade`;
    }
  });

  it('fails and starts nothing when storage rejects the admission', async () => {
    const { dialer, request, rows, registry } = await open({
      dialerSql: sqlWithFaults(database.sql, async () => {
        throw new Error('storage is away');
      }),
    });
    await expect(dialer.place(request())).rejects.toThrow('storage is away');
    expect(await rows()).toEqual([]);
    expect(registry.list()).toEqual([]);
  });

  it('dials nothing when the admission commits after the caller got an unknown outcome', async () => {
    const stored = Promise.withResolvers<void>();
    const { dialer, request, clock, sip, rows } = await open({
      dialerSql: sqlWithFaults(database.sql, async (run) => {
        const admitted = await run();
        await stored.promise;
        return admitted;
      }),
    });
    const answer = expect(dialer.place(request())).rejects.toMatchObject({ code: 'C2C_OUTCOME_UNKNOWN' });
    await eventually(async () => expect(await rows()).toHaveLength(1));
    clock.advance(10_000);
    await answer;
    stored.resolve();
    await eventually(async () =>
      expect(await rows()).toMatchObject([{ state: expect.stringMatching(/failed|rejected/) }]),
    );
    expect(sip.legs).toEqual([]);
  });

  it('starts an admitted call whose response was lost and whose hold cannot be read', async () => {
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

  it('leaves no timer after its response', async () => {
    const { dialer, request, clock } = await open();
    await dialer.place(request());
    for (const ms of [5_000, 10_000]) expect(clock.waiting()).not.toContain(ms);
  });
});

describe('placement during an outage', () => {
  it('fails as not configured before the first contact with the SIP server', async () => {
    const { dialer, request, rows } = await open({ sip: new FakeSip('disconnected') });
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'C2C_NOT_CONFIGURED', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
  });

  it('fails as line down while the SIP server is away, and works when it returns', async () => {
    const { dialer, request, rows, sip } = await open({ sip: new FakeSip('disconnected') });
    sip.become('connected');
    sip.become('disconnected');
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'CARRIER_LINE_DOWN', retryAfterS: 10 });
    expect(await rows()).toEqual([]);
    sip.become('connected');
    expect((await dialer.place(request())).placed).toBe(true);
  });

  it("fails when the trunk's carrier is down, and keeps the reference available", async () => {
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

  it('still returns the live call of a reference', async () => {
    const { dialer, request, downTrunks, caller } = await open();
    const { call } = await dialer.place(request({ referenceId: 'order-7' }));
    downTrunks.add(caller.trunkId);
    const again = await dialer.place(request({ referenceId: 'order-7' }));
    expect(again).toMatchObject({ replayed: true, call: { call_id: call.call_id } });
  });

  it('fails even with a reference freed by a rejected call', async () => {
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

  it('leaves an unknown trunk to the admission', async () => {
    const { dialer, request } = await open();
    await expect(dialer.place(request({ trunkId: randomUUID() }))).rejects.toMatchObject({
      code: 'DIALER_NOT_PROVISIONED',
    });
  });
});

describe('callback URL of a placement', () => {
  for (const [what, callbackUrl, addresses] of [
    ['plain http', 'http://example.com/hook', ['93.184.216.34']],
    ['a private address', 'https://10.0.0.1/hook', []],
    ['a name that resolves to a private address', 'https://example.com/hook', ['93.184.216.34', '192.168.1.1']],
    ['an invalid URL', 'nonsense', []],
  ] as const) {
    it(`fails for ${what}`, async () => {
      const { dialer, request, rows } = await open({ resolve: async () => addresses });
      await expect(dialer.place(request({ ...CALLBACK, callbackUrl }))).rejects.toMatchObject({
        code: 'INVALID_CALLBACK_URL',
      });
      expect(await rows()).toEqual([]);
    });
  }

  for (const code of ['ENOTFOUND', 'ENODATA']) {
    it(`fails for an unknown host name (${code})`, async () => {
      const { dialer, request } = await open({ resolve: failingWith(code) });
      await expect(dialer.place(request(CALLBACK))).rejects.toMatchObject({ code: 'INVALID_CALLBACK_URL' });
    });
  }

  for (const code of ['ETIMEOUT', 'ESERVFAIL', 'ECONNREFUSED', 'ECANCELLED', 'EREFUSED']) {
    it(`can be retried with the same reference after a failed DNS lookup (${code})`, async () => {
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

describe('drain of the dialer', () => {
  it('rejects placements with Retry-After, and stores nothing', async () => {
    const { dialer, request, rows } = await open();
    await dialer.drain(1_000);
    await expect(dialer.place(request())).rejects.toMatchObject({ code: 'SHUTTING_DOWN', retryAfterS: 5 });
    expect(await rows()).toEqual([]);
  });

  it('rejects a placement that is still resolving its callback host', async () => {
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

  it('waits for a placement in admission, and for its call', async () => {
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
    sip.legs[0]?.emit({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' });
    await draining;
    expect(registry.list()).toEqual([]);
  });

  it('lets live calls continue for the grace period, then hangs up and waits for settlement', async () => {
    const { dialer, request, sip, clock, rows } = await open();
    sip.onDial = acceptsHangup;
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

  it('hangs up although the other nodes cannot learn of it', async () => {
    const nodes = { renew: () => Promise.withResolvers<void>().promise };
    const { dialer, request, sip, clock } = await open({ nodes });
    sip.onDial = acceptsHangup;
    await dialer.place(request());
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const draining = dialer.drain(6_000);
    await eventually(() => expect(clock.waiting()).toContain(10_000));
    clock.advance(10_000);
    await eventually(() => expect(clock.waiting()).toContain(6_000));
    clock.advance(6_000);
    await draining;
    expect(sip.legs[0]?.hangups).toEqual(['SYSTEM_SHUTDOWN']);
  });
});

describe('hang-up of a call', () => {
  it('ends a live call and returns it', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = acceptsHangup;
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

  it('accepts the reference instead of the id', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = acceptsHangup;
    await dialer.place(request({ referenceId: 'order-7' }));
    const ended = await dialer.hangup({ workspaceId: caller.workspaceId, callId: 'order-7' });
    expect(ended).toMatchObject({ reference_id: 'order-7', call_done: true });
  });

  it('returns a finished call unchanged', async () => {
    const { dialer, request, sip, caller } = await open();
    sip.onDial = acceptsHangup;
    const { call } = await dialer.place(request());
    const target = { workspaceId: caller.workspaceId, callId: call.call_id };
    const ended = await dialer.hangup(target);
    expect(await dialer.hangup(target)).toEqual(ended);
  });

  it('returns the unfinished call when ending takes too long', async () => {
    const { dialer, request, clock, caller, sip } = await open({});
    const { call } = await dialer.place(request());
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const answer = dialer.hangup({ workspaceId: caller.workspaceId, callId: call.call_id });
    // The silent legs time out after some seconds; the response must not wait for both in turn.
    await eventually(() => expect(clock.waiting()).toContain(8_000));
    clock.advance(8_000);
    expect((await answer).call_id).toBe(call.call_id);
  });

  it('fails for calls of other workspaces and unknown calls', async () => {
    const { dialer, request } = await open();
    const { call } = await dialer.place(request());
    const stranger = await open();
    for (const callId of [call.call_id, call.reference_id, 'call_nobody', "' or 1=1"]) {
      const target = { workspaceId: stranger.caller.workspaceId, callId };
      await expect(stranger.dialer.hangup(target)).rejects.toMatchObject({ code: 'CALL_NOT_FOUND' });
    }
    expect((await getCallById(database.sql, call.call_id))?.state).toBe('initiated');
  });

  it('returns a live call of another node unchanged', async () => {
    const { dialer, caller } = await open();
    const call = await caller.admit({ ownerNode: 'node-2' });
    const target = { workspaceId: caller.workspaceId, callId: call.callId };
    expect(await dialer.hangup(target)).toMatchObject({ call_id: call.callId, state: 'pending' });
  });
});

describe('refresh of a recording', () => {
  it('retries the storage and reports a change', async () => {
    const dialer = await open();
    const recording = await recordedCall(dialer);
    dialer.recordings.onRetry = async ({ recordingId }) => {
      await updateRecording(database.sql, { id: recordingId, now: NOW, patch: { status: 'uploaded' } });
    };
    expect(await dialer.dialer.refreshRecording(recording.callId)).toBe(true);
    expect(dialer.recordings.retried).toEqual([recording]);
  });

  it('reports when nothing changed', async () => {
    const dialer = await open();
    const { callId } = await recordedCall(dialer, { status: 'failed' });
    expect(await dialer.dialer.refreshRecording(callId)).toBe(false);
    expect(dialer.recordings.retried).toHaveLength(1);
  });

  it('does nothing for a stored recording, a live call and a call without recording', async () => {
    const dialer = await open();
    const uploaded = await recordedCall(dialer, { status: 'uploaded' });
    const live = await recordedCall(dialer, { status: 'recording' }, { state: 'bridged' });
    const { callId } = await dialer.caller.admit();
    for (const id of [uploaded.callId, live.callId, callId, 'call_nobody']) {
      expect(await dialer.dialer.refreshRecording(id)).toBe(false);
    }
    expect(dialer.recordings.retried).toEqual([]);
  });

  it('leaves a recording to the node that holds its file', async () => {
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

/** By default a finished, recorded call. */
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
