import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CallEventSchema, CallSchema, RecordingSchema } from '../../http/schemas/call.ts';
import { ErrorSchema } from '../../http/schemas/envelope.ts';
import { TrunkSchema } from '../../http/schemas/trunk.ts';
import { NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall, seedRecordedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let member: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('owner', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
});
afterAll(() => fixture[Symbol.asyncDispose]());

function expectDocumented(schema: TSchema & { properties: Record<string, unknown> }, value: object): void {
  expect([...Compile(schema).Errors(value)]).toEqual([]);
  expect(Object.keys(value).filter((field) => !(field in schema.properties))).toEqual([]);
}

it('calls and their events match the OpenAPI document in every state', async () => {
  const { callId } = await seedCall(fixture, { by: member, metadata: { a: 1 } });
  const legQuality = {
    codec: 'PCMU',
    packets_received: 9,
    packets_lost: 1,
    jitter_ms: 0.5,
    mos: 4.2,
    snr_db: null,
    encryption: null,
  } as const;
  const steps = [
    () => Promise.resolve(),
    () => initiate(fixture, callId),
    () => finish(fixture, callId, { quality: { agent: legQuality, customer: null } }),
  ];
  for (const step of steps) {
    await step();
    const { body } = await fixture.call('GET', `/dialer/click2call/${callId}`, { as: member });
    expectDocumented(CallSchema, body.data.call);
  }
  const { body } = await fixture.call('GET', `/dialer/click2call/${callId}/events`, { as: member });
  expect(body.data.events).toHaveLength(3);
  for (const event of body.data.events) expectDocumented(CallEventSchema, event);
});

it('recordings, trunks and errors match the OpenAPI document', async () => {
  const { call } = await seedRecordedCall(fixture, { by: member, bytes: Buffer.from('RIFF') });
  const minted = await fixture.call('POST', `/dialer/click2call/${call.callId}/recording`, { as: member });
  expectDocumented(RecordingSchema, minted.body.data.recording);
  const trunks = await fixture.call('GET', '/dialer/trunks', { as: member });
  expectDocumented(TrunkSchema, trunks.body.data.trunks[0]);
  expect(trunks.body.data.trunks[0].created_at).toBe(NOW.toISOString());
  for (const url of ['/nowhere', '/dialer/click2call?limit=0', '/dialer/click2call/x']) {
    expectDocumented(ErrorSchema, (await fixture.call('GET', url, { as: member })).body);
  }
});
