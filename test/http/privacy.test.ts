import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOfRecording } from '../../actors/recordings/recording-names.ts';
import { inTransaction } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { addSipMessages } from '../../storage/queries/sip-messages.ts';
import { failTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import { eventually } from '../eventually.ts';
import { later, NOW, seedTrunk } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

const NUMBER = '+919810004711';
let fixture: HttpFixture;
let owner: Member;

beforeAll(async () => {
  fixture = await createHttpFixture();
  ({ owner } = fixture);
  await seedTrunk(fixture.sql, { workspaceId: owner.workspaceId, channels: 100 });
  await fixture.sql`
    update accounts set balance_nano = 10000000000 where workspace_id = ${owner.workspaceId} and kind = 'wallet'`;
});
afterAll(() => fixture[Symbol.asyncDispose]());

const remove = (id: string, as: Member = owner) => fixture.call('DELETE', `/dialer/click2call/${id}`, { as });
const erase = (e164: string, as: Member = owner) => fixture.call('POST', '/privacy/erasures', { as, body: { e164 } });

async function tablesWith(text: string): Promise<string[]> {
  const tables = await fixture.sql<{ name: string }[]>`
    select tablename::text as name from pg_tables where schemaname = 'public' order by 1`;
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await fixture.sql.unsafe(`select 1 from public."${name}" t where t::text like $1 limit 1`, [
      `%${text}%`,
    ]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

async function seedWholeCall(numbers: { customerNumber?: string; agentNumber?: string } = {}) {
  const { sql } = fixture;
  const { call, recordingId, objectKey } = await seedRecordedCall(fixture, { by: owner, bytes: Buffer.from('audio') });
  const { callId, workspaceId } = call;
  for (const key of keysOfRecording(objectKey)) await fixture.putObject(key, Buffer.from('audio'));
  const { customerNumber = call.customerNumber, agentNumber = call.agentNumber } = numbers;
  await sql`
    update calls set customer_number = ${customerNumber}, agent_number = ${agentNumber}, metadata = '{"name": "Asha"}'
    where call_id = ${callId}`;
  await openTranscript(sql, { callId, now: NOW });
  await sql`
    insert into call_transcript_segments (call_id, sequence, leg, text, language, start_ms, end_ms, words)
    values (${callId}, 1, 'agent', 'hello', 'en', 0, 10, '[]')`;
  await failTranscript(sql, { callId, error: 'INTERRUPTED', now: NOW });
  await addSipMessages(sql, [
    {
      ...{ callId, leg: 'agent', at: NOW, direction: 'sent', transport: 'udp', sipCallId: 'a', isCut: false },
      ...{ localHost: null, localPort: null, remoteHost: null, remotePort: null, message: Buffer.from('INVITE') },
    },
  ]);
  const deliveryId = randomUUID();
  await sql`
    insert into deliveries (id, workspace_id, call_id, event, event_id, url, body, secret_encrypted, next_attempt_at, created_at)
    values (${deliveryId}, ${workspaceId}, ${callId}, 'call.failed', 'e', 'https://x', '{}', 'x', ${NOW}, ${NOW})`;
  await sql`
    insert into delivery_attempts (delivery_id, attempt, started_at, duration_ms) values (${deliveryId}, 1, ${NOW}, 1)`;
  const [evaluationId, batchId] = [randomUUID(), randomUUID()];
  const judge = { workspace_id: workspaceId, user_id: owner.userId, samples: 1, created_at: NOW };
  await sql`
    insert into judge_batches ${sql({
      ...judge,
      ...{ id: batchId, rubric_id: randomUUID(), rubric_name: 'R', questions: sql.json({}), filter: sql.json({}) },
      ...{ status: 'completed', total: 1, updated_at: NOW, ended_at: NOW },
    })}`;
  await sql`
    insert into judge_evaluations ${sql({
      ...judge,
      ...{ id: evaluationId, batch_id: batchId, call_id: callId, state: 'failed', error: 'LLM_TIMEOUT', attempt: 1 },
      ...{ model: 'm', seed: 1, owner_node: 'node-1', owner_boot: 'boot-1', ended_at: NOW },
    })}`;
  await sql`
    insert into judge_batch_items ${sql({
      ...{
        batch_id: batchId,
        call_id: callId,
        position: 1,
        evaluation_id: evaluationId,
        status: 'judged',
        ended_at: NOW,
      },
    })}`;
  return { callId, recordingId, objectKey, batchId };
}

const deletedRows = { calls: 1, recordings: 1, transcripts: 1, sip_messages: 1, deliveries: 1, evaluations: 1 };

describe('DELETE /dialer/click2call/{id}', () => {
  it('deletes all stored data of a call except its ledger entries', async () => {
    const { callId, objectKey, batchId } = await seedWholeCall();
    const before = await walletOf(fixture.sql, owner.workspaceId);
    expect(await tablesWith(callId)).toContain('call_events');
    const { status, body } = await remove(callId);
    expect({ status, data: body.data }).toEqual({
      status: 200,
      data: { call_id: callId, deleted: { ...deletedRows, events: expect.any(Number) } },
    });
    expect(body.data.deleted.events).toBeGreaterThan(0);
    expect(await tablesWith(callId)).toEqual(['audit_log', 'entries', 'holds']);
    await eventually(async () => {
      const objects = await Promise.all(keysOfRecording(objectKey).map((key) => fixture.objects.stat(key)));
      expect(objects.filter((object) => object !== null)).toEqual([]);
    });
    expect(await walletOf(fixture.sql, owner.workspaceId)).toEqual(before);
    expect(await fixture.sql`select total from judge_batches where id = ${batchId}`).toMatchObject([{ total: 0 }]);
    const { body: audit } = await fixture.call('GET', '/audit?action=call.deleted', { as: owner });
    expect(audit.data.entries[0]).toMatchObject({
      target: { type: 'call', id: callId },
      details: { deleted: deletedRows },
    });
    expect((await remove(callId)).body.code).toBe('CALL_NOT_FOUND');
  });

  it('refuses a live call, and an unfinished recording or transcript', async () => {
    const { callId } = await seedCall(fixture, { by: owner });
    expect((await remove(callId)).body).toMatchObject({
      code: 'CALL_IN_USE',
      message: expect.stringContaining('ended'),
    });
    await finish(fixture, callId);
    await openTranscript(fixture.sql, { callId, now: NOW });
    expect((await remove(callId)).body).toMatchObject({
      code: 'CALL_IN_USE',
      message: expect.stringContaining('transcript'),
    });
    await failTranscript(fixture.sql, { callId, error: 'INTERRUPTED', now: NOW });
    const recorded = await seedRecordedCall(fixture, { by: owner, bytes: Buffer.from('audio') });
    await fixture.sql`update recordings set status = 'processing' where id = ${recorded.recordingId}`;
    expect((await remove(recorded.call.callId)).body).toMatchObject({ code: 'CALL_IN_USE' });
    expect((await remove(callId)).status).toBe(200);
  });

  it('admits only admins and owners of the workspace', async () => {
    const { callId } = await seedCall(fixture, { by: owner });
    await finish(fixture, callId);
    const developer = await fixture.addMemberWith('developer');
    expect((await remove(callId, developer)).status).toBe(403);
    const stranger = await fixture.addWorkspace();
    expect((await remove(callId, stranger)).body.code).toBe('CALL_NOT_FOUND');
    expect((await remove(callId, await fixture.addMemberWith('admin'))).status).toBe(200);
  });

  it('makes the event stream of the deleted call answer 204', async () => {
    const { callId } = await seedCall(fixture, { by: owner });
    await finish(fixture, callId);
    await fixture.sql`delete from call_events where call_id = ${callId}`;
    const { status } = await fixture.call('GET', `/dialer/click2call/${callId}/stream`, { as: owner });
    expect(status).toBe(204);
  });
});

describe('POST /privacy/erasures', () => {
  it('deletes calls and deliveries that contain the number in any role, in this workspace only', async () => {
    const { sql } = fixture;
    const stranger = await fixture.addWorkspace();
    await seedTrunk(sql, { workspaceId: stranger.workspaceId, numbers: ['+911150000009'] });
    await sql`update accounts set balance_nano = 10000000000 where workspace_id = ${stranger.workspaceId} and kind = 'wallet'`;
    const elsewhere = await seedCall(fixture, { by: stranger, customerNumber: NUMBER });
    await finish(fixture, elsewhere.callId);
    const asCustomer = await seedWholeCall({ customerNumber: NUMBER });
    const asAgent = await seedWholeCall({ agentNumber: NUMBER });
    const asThird = await seedWholeCall();
    await sql`update calls set legs = ${sql.json([{ legId: 'leg_1', number: NUMBER }])} where call_id = ${asThird.callId}`;
    const other = await seedWholeCall();
    await fixture.call('POST', '/webhooks', {
      as: owner,
      body: { url: 'https://hooks.example.com', events: ['stt.failed'] },
    });
    await inTransaction(sql, (tx) =>
      emitWebhookEvent(tx, {
        ...{ workspaceId: owner.workspaceId, event: 'stt.failed', now: NOW },
        data: { id: 'stt_1', error: `about ${NUMBER}` },
      }),
    );
    await fixture.call('POST', '/dialer/do-not-call', { as: owner, body: { numbers: [NUMBER] } });

    const { status, body } = await erase(NUMBER);
    expect(status).toBe(202);
    expect(body.data).toMatchObject({
      last4: '4711',
      status: 'completed',
      deleted: { calls: 3, recordings: 3, transcripts: 3, sip_messages: 3, deliveries: 4 },
    });
    const calls = await sql<{ callId: string }[]>`select call_id from calls`;
    const left = calls.map(({ callId }) => callId);
    expect(left).toEqual(expect.arrayContaining([elsewhere.callId, other.callId]));
    for (const { callId } of [asCustomer, asAgent, asThird]) expect(left).not.toContain(callId);
    await sql`delete from calls where call_id = ${elsewhere.callId}`.catch(() => {});
    const naming = await tablesWith(NUMBER);
    expect(naming).toEqual(expect.arrayContaining(['do_not_call']));
    expect(naming).not.toEqual(expect.arrayContaining(['erasures']));
    expect(naming).not.toEqual(expect.arrayContaining(['audit_log']));
    const { body: audit } = await fixture.call('GET', '/audit', { as: owner });
    const entries = audit.data.entries.filter(({ action }: { action: string }) => action.startsWith('erasure.'));
    expect(entries.map(({ action }: { action: string }) => action)).toEqual(['erasure.completed', 'erasure.requested']);
    expect(JSON.stringify(entries)).toContain('4711');
    const log = fixture.logLines.join('');
    expect(log).not.toContain(NUMBER);
  });

  it('keeps deliveries about a longer number that begins with the erased one', async () => {
    const { sql } = fixture;
    const [erased, longer] = ['+49301234560', '+493012345601'];
    for (const error of [`about ${longer}`, `about ${longer} and ${erased}, twice`, `about ${erased}`]) {
      await inTransaction(sql, (tx) =>
        emitWebhookEvent(tx, {
          ...{ workspaceId: owner.workspaceId, event: 'stt.failed', now: NOW, data: { id: 'stt_2', error } },
        }),
      );
    }
    expect((await erase(erased)).body.data).toMatchObject({ status: 'completed', deleted: { deliveries: 2 } });
    const left = await sql<{ body: string }[]>`select body from deliveries where position(${longer} in body) > 0`;
    expect(left.map(({ body }) => JSON.parse(body).data.error)).toEqual([`about ${longer}`]);
  });

  it('waits until live calls end, then completes', async () => {
    const number = '+919810004712';
    const { callId } = await seedCall(fixture, { by: owner, customerNumber: number, now: later(-1) });
    const { body } = await erase(number);
    expect(body.data).toMatchObject({ status: 'running', completed_at: null, deleted: { calls: 0 } });
    const path = `/privacy/erasures/${body.data.id}`;
    expect((await fixture.call('GET', path, { as: owner })).body.data).toEqual(body.data);
    await finish(fixture, callId);
    // Any request triggers the next round at once.
    await erase('+919810004713');
    expect((await fixture.call('GET', path, { as: owner })).body.data).toMatchObject({
      status: 'completed',
      deleted: { calls: 1 },
    });
    expect(await tablesWith(number)).toEqual([]);
  });

  it('rejects invalid numbers, other roles and other workspaces', async () => {
    expect((await erase('not a number')).body).toMatchObject({ code: 'VALIDATION_FAILED' });
    expect((await erase(NUMBER, await fixture.addMemberWith('developer'))).status).toBe(403);
    const { body } = await erase(NUMBER);
    const stranger = await fixture.addWorkspace();
    const answer = await fixture.call('GET', `/privacy/erasures/${body.data.id}`, { as: stranger });
    expect(answer.body.code).toBe('ERASURE_NOT_FOUND');
  });
});
