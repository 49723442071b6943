import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { FakeDialer } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let writer: Member;
let reader: Member;
let stranger: Member;
let call: string;
const dialer = new FakeDialer();

beforeAll(async () => {
  fixture = await createHttpFixture({ dialer });
  const { workspace } = await seedWorkspace(fixture.sql);
  writer = await fixture.addMemberWith('developer', workspace.id);
  reader = await fixture.addMemberWith('viewer', workspace.id);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  const { callId } = await seedCall(fixture, { by: writer });
  await initiate(fixture, callId);
  call = `/dialer/click2call/${callId}`;
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  dialer.controlled.length = 0;
  dialer.onControl = () => undefined;
});

const REQUESTS = [
  ['mute', { leg: 'agent' }, { type: 'mute', leg: 'agent' }],
  ['unmute', { leg: 'customer' }, { type: 'unmute', leg: 'customer' }],
  ['dtmf', { leg: 'customer', digits: '1w2#' }, { type: 'dtmf', leg: 'customer', digits: '1w2#', durationMs: 160 }],
  ['dtmf', { leg: 'agent', digits: '*', duration_ms: 60 }, { type: 'dtmf', leg: 'agent', digits: '*', durationMs: 60 }],
  ['hold', { leg: 'customer' }, { type: 'hold', leg: 'customer', music: true }],
  ['hold', { leg: 'agent', music: false }, { type: 'hold', leg: 'agent', music: false }],
  ['resume', { leg: 'agent' }, { type: 'resume', leg: 'agent' }],
  ['recording/pause', undefined, { type: 'recording.pause' }],
  ['recording/resume', undefined, { type: 'recording.resume' }],
] as const;

describe('control of a live call', () => {
  for (const [path, body, control] of REQUESTS) {
    it(`sends ${control.type} to the call by POST ${path} with ${JSON.stringify(body)}, and returns the call`, async () => {
      const { status, body: answer } = await fixture.call('POST', `${call}/${path}`, { as: writer, body });
      expect({ status, answer }).toMatchObject({
        status: 200,
        answer: { data: { call: { call_id: expect.any(String) } } },
      });
      expect(dialer.controlled).toEqual([control]);
    });

    it(`refuses POST ${path} from readers and from other workspaces`, async () => {
      expect((await fixture.call('POST', `${call}/${path}`, { as: reader, body })).status).toBe(403);
      expect((await fixture.call('POST', `${call}/${path}`, { as: stranger, body })).body.code).toBe('CALL_NOT_FOUND');
      expect(dialer.controlled).toEqual([]);
    });
  }

  for (const body of [{}, { leg: 7 }, { leg: 'agent', digits: '' }, { leg: 'agent', digits: '1'.repeat(65) }]) {
    it(`rejects digits in ${JSON.stringify(body).slice(0, 60)} with VALIDATION_FAILED`, async () => {
      const { status, body: answer } = await fixture.call('POST', `${call}/dtmf`, { as: writer, body });
      expect({ status, code: answer.code }).toEqual({ status: 400, code: 'VALIDATION_FAILED' });
    });
  }

  for (const digits of ['1 2', 'x', '١', '1\u0000', '+91']) {
    it(`rejects the digits ${JSON.stringify(digits)} with INVALID_DIGITS`, async () => {
      const { status, body } = await fixture.call('POST', `${call}/dtmf`, {
        as: writer,
        body: { leg: 'agent', digits },
      });
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'INVALID_DIGITS' });
    });
  }

  it('rejects an unknown leg with LEG_NOT_FOUND', async () => {
    for (const path of ['mute', 'unmute']) {
      const { status, body } = await fixture.call('POST', `${call}/${path}`, { as: writer, body: { leg: 'both' } });
      expect({ status, code: body.code }).toEqual({ status: 404, code: 'LEG_NOT_FOUND' });
    }
  });

  it('forwards the reason when the call refuses', async () => {
    dialer.onControl = () => {
      throw new TandemError('CALL_NOT_LIVE', 'The two parties are not talking.');
    };
    const { status, body } = await fixture.call('POST', `${call}/mute`, { as: writer, body: { leg: 'agent' } });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'CALL_NOT_LIVE' });
  });
});
