import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { seedTrunk, seedWorkspace, USD } from '../storage/seed.ts';
import { callOf, PLACEMENT } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall, seedRecordedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let stranger: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
  stranger = await fixture.addWorkspace();
  await fund(fixture.owner);
  await seedTrunk(fixture.sql, { workspaceId: fixture.owner.workspaceId, channels: 1000 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function fund({ workspaceId }: Member): Promise<void> {
  await topUp(fixture.sql, {
    workspaceId,
    amountNano: 1000n * USD,
    paymentType: 'admin_bonus',
    operationKey: `test:${randomUUID()}`,
    at: fixture.now.current,
  });
}

describe('single call', () => {
  it('responds to its id and its reference', async () => {
    const call = await seedCall(fixture, {
      by: fixture.owner,
      referenceId: 'find:me',
      metadata: { a: [1, { b: null }] },
    });
    for (const id of [call.callId, 'find:me', 'find%3Ame']) {
      const { status, body } = await fixture.call('GET', `/dialer/click2call/${id}`);
      expect(status).toBe(200);
      expect(body.data.call).toMatchObject({
        call_id: call.callId,
        reference_id: 'find:me',
        state: 'pending',
        call_done: false,
        metadata: { a: [1, { b: null }] },
        created_by_user_id: fixture.owner.userId,
        api_key_name: 'owner key',
        placed_via: 'api_key',
        recording_available: false,
      });
    }
  });

  it('answers 404 to another workspace and for an unknown id', async () => {
    const call = await seedCall(fixture, { by: fixture.owner });
    const asStranger = { as: stranger };
    for (const answer of [
      await fixture.call('GET', `/dialer/click2call/${call.callId}`, asStranger),
      await fixture.call('GET', `/dialer/click2call/${call.callId}/events`, asStranger),
      await fixture.call('GET', `/dialer/click2call/${call.callId}/stream`, asStranger),
      await fixture.call('POST', `/dialer/click2call/${call.callId}/hangup`, asStranger),
      await fixture.call('GET', '/dialer/click2call/nothing'),
      await fixture.call('GET', '/dialer/click2call/%00'),
      await fixture.call('GET', "/dialer/click2call/'%20or%201=1--"),
      await fixture.call('POST', '/dialer/click2call/%F0%9F%93%9E/hangup'),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([404, 'CALL_NOT_FOUND']);
    }
    expect(fixture.dialer.hungUp).toEqual([]);
  });

  it('searches for missing audio again only with refresh=1, after a recorded call ended', async () => {
    const unrecorded = await seedCall(fixture, { by: fixture.owner });
    const { call } = await seedRecordedCall(fixture, { by: fixture.owner, bytes: Buffer.from('RIFF') });
    const url = `/dialer/click2call/${call.callId}`;
    expect((await fixture.call('GET', url)).status).toBe(200);
    expect((await fixture.call('GET', `/dialer/click2call/${unrecorded.callId}?refresh=1`)).status).toBe(200);
    expect(fixture.dialer.refreshed).toEqual([]);
    fixture.dialer.onRefresh = async (callId) => {
      await fixture.sql`update calls set recording_status = 'uploaded', talk_seconds = 9 where call_id = ${callId}`;
      return true;
    };
    const { body } = await fixture.call('GET', `${url}?refresh=1`);
    expect(fixture.dialer.refreshed).toEqual([call.callId]);
    expect(body.data.call).toMatchObject({ recording_available: true, talk_seconds: 9 });
    expect((await fixture.call('GET', `${url}?refresh=maybe`)).body.code).toBe('VALIDATION_FAILED');
  });

  it('includes an event log', async () => {
    const call = await seedCall(fixture, { by: fixture.owner });
    await initiate(fixture, call.callId);
    await finish(fixture, call.callId);
    const { body } = await fixture.call('GET', `/dialer/click2call/${call.callId}/events`);
    expect(body.data.events.map(({ sequence, state }: Record<string, unknown>) => [sequence, state])).toEqual([
      [1, 'pending'],
      [2, 'initiated'],
      [3, 'failed'],
    ]);
    expect(body.data.events[2]).toMatchObject({ event: 'call.not_answered', sip_status: 486, delivery: null });
  });

  it('hangs up by reference too, and returns the call as the dialer left it', async () => {
    const call = await seedCall(fixture, { by: fixture.owner, referenceId: 'hang-me' });
    fixture.dialer.onHangup = ({ callId }) => ({ ...callOf(PLACEMENT, callId), hangup_cause: 'ORIGINATOR_CANCEL' });
    const { status, body } = await fixture.call('POST', '/dialer/click2call/hang-me/hangup', {
      headers: { 'content-type': 'application/json' },
    });
    expect([status, body.data.call.hangup_cause]).toEqual([200, 'ORIGINATOR_CANCEL']);
    expect(fixture.dialer.hungUp).toEqual([{ workspaceId: fixture.owner.workspaceId, callId: call.callId }]);
  });
});

describe('list of calls', () => {
  it('supports pages and filters within the workspace', async () => {
    const { workspace, user } = await seedWorkspace(fixture.sql);
    const lister = await fixture.addMemberWith('member', workspace.id);
    await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers: ['+911149999999'] });
    const base = { by: { ...lister, userId: user.id } };
    const at = (iso: string) => new Date(iso);
    await seedCall(fixture, { ...base, referenceId: 'one', now: at('2026-01-01T00:00:00Z') });
    await seedCall(fixture, {
      ...base,
      referenceId: 'two',
      now: at('2026-01-02T00:00:00Z'),
      agentNumber: '+919810000009',
    });
    const third = await seedCall(fixture, { ...base, referenceId: 'three', now: at('2026-01-03T00:00:00Z') });
    await finish(fixture, third.callId);

    const references = async (query: string) => {
      const { status, body } = await fixture.call('GET', `/dialer/click2call?${query}`, { as: lister });
      expect(status).toBe(200);
      return body.data.calls.map((call: { reference_id: string }) => call.reference_id);
    };
    expect(await references('')).toEqual(['three', 'two', 'one']);
    expect(await references('state=failed')).toEqual(['three']);
    expect(await references('state=')).toHaveLength(3);
    expect(await references('agent_number=98100-00009')).toEqual(['two']);
    expect(await references('agent_number=+919810000009')).toEqual(['two']);
    expect(await references('customer_number=%2B919810000002&reference_id=one')).toEqual(['one']);
    expect(await references('from=2026-01-02&to=2026-01-03T00:00:00Z')).toEqual(['two']);
    expect(await references('from=2026-01-02T05:30:00+05:30')).toEqual(['three', 'two']);
    expect(await references('page=2&limit=2')).toEqual(['one']);

    const { body } = await fixture.call('GET', '/dialer/click2call?limit=2', { as: lister });
    expect(body.data.pagination).toEqual({ page: 1, limit: 2, total: 3, pages: 2 });
  });

  it('accepts huge page numbers and returns an empty page', async () => {
    const { status, body } = await fixture.call('GET', '/dialer/click2call?page=9007199254740991&limit=100');
    expect([status, body.data.calls]).toEqual([200, []]);
  });

  it.each([
    'limit=101',
    'limit=0',
    'limit=ten',
    'limit=1.5',
    'page=0',
    'page=-1',
    'page=9007199254740992',
    'page=1e3',
    'limit=1&limit=2',
    'state=ringing',
    'from=yesterday',
    'to=2026-99-99',
    'from=-271821-04-20',
    'agent_number=12',
    'reference_id=a%00b',
    'reference_id=%27%3B--',
  ])('rejects %s', async (query) => {
    const { status, body } = await fixture.call('GET', `/dialer/click2call?${query}`);
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.details[0].path).toBe(query.split('=')[0]);
  });
});

describe('recording of a call', () => {
  it('gets a URL by call id, reference and recording id', async () => {
    const { call, recordingId } = await seedRecordedCall(fixture, { by: fixture.owner, bytes: Buffer.from('RIFF') });
    for (const id of [call.callId, call.referenceId, recordingId]) {
      const { status, body } = await fixture.call('POST', `/dialer/click2call/${id}/recording`);
      expect(status).toBe(200);
      expect(body.data.recording).toEqual({
        call_id: call.callId,
        recording_id: recordingId,
        recording_status: 'uploaded',
        recording_format: 'wav',
        recording_channels: 'stereo',
        recording_size: 4,
        recording_duration_ms: null,
        peaks_url: null,
        playback_url: expect.stringMatching(
          /^http:\/\/voice\.test\/media\/recordings\/.+\.wav\?expires=\d+&signature=.+$/,
        ),
        expires_at: '2026-01-02T03:09:05.000Z',
      });
    }
    const { body } = await fixture.call('POST', `/dialer/recordings/${recordingId}/playback-url`);
    expect(Object.keys(body.data).sort()).toEqual(['expires_at', 'peaks_url', 'playback_url']);
  });

  it('answers RECORDING_NOT_OWNED to a teammate and CALL_NOT_FOUND to another workspace', async () => {
    const { call, recordingId } = await seedRecordedCall(fixture, { by: fixture.owner, bytes: Buffer.from('RIFF') });
    const teammate = await fixture.addMemberWith('admin');
    await seedTrunk(fixture.sql, { workspaceId: stranger.workspaceId, numbers: [] });
    for (const url of [
      `/dialer/click2call/${call.callId}/recording`,
      `/dialer/recordings/${recordingId}/playback-url`,
    ]) {
      const byTeammate = await fixture.call('POST', url, { as: teammate });
      expect([byTeammate.status, byTeammate.body.code]).toEqual([404, 'RECORDING_NOT_OWNED']);
      const byStranger = await fixture.call('POST', url, { as: stranger });
      expect([byStranger.status, byStranger.body.code]).toEqual([404, 'CALL_NOT_FOUND']);
    }
  });

  it('distinguishes an unrequested recording from a missing one', async () => {
    const notRecorded = await seedCall(fixture, { by: fixture.owner });
    const notProduced = await seedCall(fixture, { by: fixture.owner, record: true });
    const messages = [];
    for (const { callId } of [notRecorded, notProduced]) {
      const { status, body } = await fixture.call('POST', `/dialer/click2call/${callId}/recording`);
      expect([status, body.code]).toEqual([404, 'RECORDING_UNAVAILABLE']);
      messages.push(body.message);
    }
    expect(messages[0]).not.toBe(messages[1]);
  });

  it('answers 404 for an unknown id', async () => {
    for (const id of ['nothing', randomUUID(), '%00']) {
      for (const url of [`/dialer/click2call/${id}/recording`, `/dialer/recordings/${id}/playback-url`]) {
        const { status, body } = await fixture.call('POST', url);
        expect([status, body.code]).toEqual([404, 'CALL_NOT_FOUND']);
      }
    }
  });

  it('requires a trunk first', async () => {
    const bare = await fixture.addWorkspace();
    for (const url of ['/dialer/click2call/nothing/recording', `/dialer/recordings/${randomUUID()}/playback-url`]) {
      const { status, body } = await fixture.call('POST', url, { as: bare });
      expect([status, body.code]).toEqual([409, 'DIALER_NOT_PROVISIONED']);
    }
  });
});
