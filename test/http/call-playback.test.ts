import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CallLeg } from '../../machines/events.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { FakeDialer } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let writer: Member;
let reader: Member;
let call: string;
const dialer = new FakeDialer();

beforeAll(async () => {
  fixture = await createHttpFixture({ dialer });
  const { workspace } = await seedWorkspace(fixture.sql);
  writer = await fixture.addMemberWith('developer', workspace.id);
  reader = await fixture.addMemberWith('viewer', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  const { callId } = await seedCall(fixture, { by: writer });
  await initiate(fixture, callId);
  call = `/dialer/click2call/${callId}`;
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  dialer.played.length = 0;
  dialer.controlled.length = 0;
});

const TARGET = 'leg_00000000-0000-4000-8000-000000000001';
const SAY = { leg: 'both', text: 'This call is recorded.' };

describe('playback into a live call', () => {
  it.each([
    [SAY, ['agent', 'customer'], { kind: 'text', text: SAY.text, voiceId: null }, false],
    [{ leg: 'agent', text: 'Hi.', voice_id: 'v1' }, ['agent'], { kind: 'text', text: 'Hi.', voiceId: 'v1' }, false],
    [{ leg: 'customer', url: 'https://a.example/b.mp3', loop: true }, ['customer'], { kind: 'url' }, true],
  ])('forwards %j, and returns the playback id', async (body, legs, source, isLooped) => {
    const { status, body: answer } = await fixture.call('POST', `${call}/play`, { as: writer, body });
    expect({ status, data: answer.data }).toEqual({
      status: 201,
      data: { playback_id: expect.stringMatching(/^play_/) },
    });
    expect(dialer.played).toMatchObject([{ source, legs, isLooped }]);
  });

  it('plays to the target of a transfer as one of both parties', async () => {
    const transferred = await seedCall(fixture, { by: writer });
    const leg = { number: null, mode: null, muted: false, joinedAt: null, leftAt: null, hangupCause: null };
    const legs = [
      { ...leg, legId: 'agent', role: 'agent', state: 'ended' },
      { ...leg, legId: 'customer', role: 'customer', state: 'answered' },
      { ...leg, legId: TARGET, role: 'agent', state: 'answered' },
    ] satisfies CallLeg[];
    await fixture.sql`update calls set legs = ${fixture.sql.json(legs)} where call_id = ${transferred.callId}`;
    const path = `/dialer/click2call/${transferred.callId}/play`;
    expect((await fixture.call('POST', path, { as: writer, body: SAY })).status).toBe(201);
    expect(dialer.played).toMatchObject([{ legs: [TARGET, 'customer'] }]);
  });

  it.each([
    [{ text: 'Hi.' }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent' }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent', text: '' }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent', text: 'a'.repeat(2001) }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent', text: 'Hi.', url: 'https://a.example/b.mp3' }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent', url: 'https://a.example/b.mp3', voice_id: 'v1' }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'agent', text: 'Hi.', loop: 3 }, 400, 'VALIDATION_FAILED'],
    [{ leg: 'somebody', text: 'Hi.' }, 404, 'LEG_NOT_FOUND'],
  ])('rejects %j', async (body, status, code) => {
    const answer = await fixture.call('POST', `${call}/play`, { as: writer, body });
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
    expect(dialer.played).toEqual([]);
  });

  it('requires a writer', async () => {
    expect((await fixture.call('POST', `${call}/play`, { as: reader, body: SAY })).status).toBe(403);
    expect((await fixture.call('DELETE', `${call}/play/play_1`, { as: reader })).status).toBe(403);
    expect([dialer.played, dialer.controlled]).toEqual([[], []]);
  });

  it('stops a playback by its id', async () => {
    const { status, body } = await fixture.call('DELETE', `${call}/play/play_1`, { as: writer });
    expect({ status, body }).toMatchObject({ status: 200, body: { data: { call: { call_id: expect.any(String) } } } });
    expect(dialer.controlled).toEqual([{ type: 'play.stop', playbackId: 'play_1' }]);
  });
});
