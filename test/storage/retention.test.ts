import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { addQualitySamples, qualitySamplesOf } from '../../storage/queries/call-quality.ts';
import { type AdmitCallInput, admitCall, type CallRow } from '../../storage/queries/calls.ts';
import { insertDelivery, recordAttempt } from '../../storage/queries/deliveries.ts';
import { deleteOldRows, type RetainedKind } from '../../storage/queries/retention.ts';
import { addSipMessages } from '../../storage/queries/sip-messages.ts';
import { failTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { onEveryServer } from './every-server.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace } from './seed.ts';

const DAY_MS = 86_400_000;
const OLD = NOW;
const NEW = later(5 * DAY_MS);

onEveryServer('row retention', (database) => {
  let numbers = 0;

  async function seedCall(
    sql: Sql,
    { state, ...input }: { state: string } & Partial<AdmitCallInput>,
  ): Promise<CallRow> {
    const { workspace } = await seedWorkspace(sql);
    numbers += 1;
    await seedTrunk(sql, { workspaceId: workspace.id, numbers: [`+9111${String(numbers).padStart(8, '0')}`] });
    const { call } = await admitCall(sql, admission({ workspaceId: workspace.id, ...input }));
    await sql`update calls set state = ${state}, end_time = ${input.now ?? NOW} where call_id = ${call.callId}`;
    return call;
  }

  async function seedDelivery(
    sql: Sql,
    { workspaceId, callId }: CallRow,
    { at, isDone }: { at: Date; isDone: boolean },
  ) {
    const id = randomUUID();
    const subject = { workspaceId, callId, eventSequence: 1, event: 'call.completed', eventId: randomUUID() };
    await insertDelivery(sql, subject, {
      ...{ id, url: 'https://example.com', body: '{}', secretEncrypted: Buffer.from('x'), nextAttemptAt: at },
      createdAt: at,
    });
    const attempt = { deliveryId: id, httpStatus: 200, error: null, startedAt: at, durationMs: 1 };
    if (isDone) await recordAttempt(sql, { ...attempt, outcome: { kind: 'delivered' } });
    return id;
  }

  const sweep = (sql: Sql, kind: RetainedKind, limit = 100) =>
    deleteOldRows(sql, { kind, now: later(4 * DAY_MS), keptMs: 2 * DAY_MS, limit });

  it('deletes finished deliveries with their attempts, including replayed ones', async () => {
    const { sql } = database();
    const call = await seedCall(sql, { state: 'completed' });
    const [old, pending] = [
      await seedDelivery(sql, call, { at: OLD, isDone: true }),
      await seedDelivery(sql, call, { at: OLD, isDone: false }),
    ];
    const recent = await seedDelivery(sql, call, { at: NEW, isDone: true });
    await sql`update deliveries set replay_of = ${old} where id = ${recent}`;
    expect(await sweep(sql, 'deliveries')).toBe(1);
    expect(await sweep(sql, 'deliveries')).toBe(0);
    const left = await sql<{ id: string; replayOf: string | null }[]>`select id, replay_of from deliveries`;
    expect(new Map(left.map((row) => [row.id, row.replayOf]))).toEqual(
      new Map([
        [pending, null],
        [recent, null],
      ]),
    );
    expect(await sql`select 1 from delivery_attempts`).toHaveLength(1);
  });

  it('deletes events of old calls in batches, but not of live calls', async () => {
    const { sql } = database();
    const [old, live, recent] = [
      await seedCall(sql, { state: 'completed', now: OLD }),
      await seedCall(sql, { state: 'bridged', now: OLD }),
      await seedCall(sql, { state: 'completed', now: NEW }),
    ];
    await sql`
      insert into call_events (call_id, sequence, event, state, at)
      select ${old.callId}, n, 'dtmf.received', 'bridged', ${OLD} from generate_series(10, 13) as n`;
    expect([await sweep(sql, 'call_events', 3), await sweep(sql, 'call_events', 3)]).toEqual([3, 2]);
    const left = await sql<{ callId: string }[]>`select distinct call_id from call_events`;
    expect(new Set(left.map(({ callId }) => callId))).toEqual(new Set([live.callId, recent.callId]));
    expect(await sql`select 1 from entries where call_id = ${old.callId}`).not.toHaveLength(0);
  });

  it('deletes finished transcripts with their segments, but not growing ones', async () => {
    const { sql } = database();
    const [old, growing] = [await seedCall(sql, { state: 'completed' }), await seedCall(sql, { state: 'completed' })];
    for (const { callId } of [old, growing]) await openTranscript(sql, { callId, now: OLD });
    await sql`
      insert into call_transcript_segments (call_id, sequence, leg, text, language, start_ms, end_ms, words)
      values (${old.callId}, 1, 'agent', 'hello', 'en', 0, 10, '[]')`;
    await failTranscript(sql, { callId: old.callId, error: 'INTERRUPTED', now: OLD });
    expect(await sweep(sql, 'transcripts')).toBe(1);
    expect(await sql`select 1 from call_transcript_segments`).toHaveLength(0);
    const left = await sql<{ callId: string }[]>`select call_id from call_transcripts`;
    expect(left.map(({ callId }) => callId)).toEqual([growing.callId]);
  });

  it('deletes SIP messages by age, including those of live calls', async () => {
    const { sql } = database();
    const { callId } = await seedCall(sql, { state: 'bridged' });
    const message = {
      ...({ callId, leg: 'agent', direction: 'sent', transport: 'udp', sipCallId: 'a', isCut: false } as const),
      ...{ localHost: null, localPort: null, remoteHost: null, remotePort: null, message: Buffer.from('INVITE') },
    };
    await addSipMessages(sql, [
      { ...message, at: OLD },
      { ...message, at: NEW },
    ]);
    expect(await sweep(sql, 'sip_messages')).toBe(1);
    expect(await sql`select 1 from sip_messages where at = ${NEW}`).toHaveLength(1);
  });

  it('deletes quality samples by age', async () => {
    const { sql } = database();
    const { callId } = await seedCall(sql, { state: 'bridged' });
    const sample = { packetsReceived: 250, packetsLost: 0, jitterMs: 0.5, roundTripMs: null, mos: 4.4 };
    const samples = ['agent', 'customer'].flatMap((leg) => [OLD, NEW].map((at) => ({ callId, leg, at, ...sample })));
    await addQualitySamples(sql, samples);
    await addQualitySamples(sql, samples);
    expect([await sweep(sql, 'quality', 1), await sweep(sql, 'quality', 100)]).toEqual([1, 1]);
    expect((await qualitySamplesOf(sql, callId)).map(({ leg, at }) => ({ leg, at }))).toEqual([
      { leg: 'agent', at: NEW },
      { leg: 'customer', at: NEW },
    ]);
  });

  it('keeps data of today if the clock of the node is far ahead', async () => {
    const { sql } = database();
    const { callId } = await seedCall(sql, { state: 'bridged' });
    const sample = { packetsReceived: 250, packetsLost: 0, jitterMs: 0.5, roundTripMs: null, mos: 4.4 };
    await addQualitySamples(sql, [{ callId, leg: 'agent', at: new Date(), ...sample }]);
    const ahead = new Date(Date.now() + 365 * DAY_MS);
    expect(await deleteOldRows(sql, { kind: 'quality', now: ahead, keptMs: DAY_MS, limit: 9 })).toBe(0);
  });

  it('leaves a sweep to the node that started it', async () => {
    const { sql } = database();
    const call = await seedCall(sql, { state: 'completed' });
    await seedDelivery(sql, call, { at: OLD, isDone: true });
    await inTransaction(sql, async (tx) => {
      await tx`select pg_advisory_xact_lock(7264332, 0)`;
      expect(await sweep(sql, 'deliveries')).toBeNull();
    });
    expect(await sweep(sql, 'deliveries')).toBe(1);
  });
});
