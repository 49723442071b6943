import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addQualitySamples } from '../../storage/queries/call-quality.ts';
import { later, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let viewer: Member;
let stranger: Member;
let callId: string;

beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  viewer = await fixture.addMemberWith('viewer', workspace.id);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  ({ callId } = await seedCall(fixture, { by: viewer, referenceId: 'order-1' }));
});
afterAll(() => fixture[Symbol.asyncDispose]());

const qualityOf = (id: string, as: Member) => fixture.call('GET', `/dialer/click2call/${id}/quality`, { as });

describe('media quality of a call over time', () => {
  it('contains no legs before the first sample', async () => {
    const { status, body } = await qualityOf(callId, viewer);
    expect(status).toBe(200);
    expect(body.data).toEqual({ call_id: callId, interval_s: 5, legs: [] });
  });

  it('lists samples by leg, oldest first, with units in the names', async () => {
    const sample = { callId, packetsReceived: 198, packetsLost: 2, jitterMs: 1.23, roundTripMs: 40.5, mos: 4.12 };
    const silent = { packetsReceived: 0, packetsLost: 3, roundTripMs: null, mos: null };
    await addQualitySamples(fixture.sql, [
      { ...sample, leg: 'leg_1', at: later(9_000) },
      { ...sample, ...silent, leg: 'customer', at: later(10_000) },
      { ...sample, leg: 'agent', at: later(10_000) },
      { ...sample, leg: 'agent', at: later(5_000) },
    ]);
    const { body } = await qualityOf('order-1', viewer);
    const shown = {
      ...{ packets_received: 198, packets_lost: 2, loss_percent: 1, jitter_ms: 1.23, round_trip_ms: 40.5, mos: 4.12 },
    };
    expect(body.data.legs).toEqual([
      {
        leg_id: 'agent',
        role: 'agent',
        samples: [5_000, 10_000].map((ms) => ({ at: later(ms).toISOString(), ...shown })),
      },
      {
        leg_id: 'customer',
        role: 'customer',
        samples: [
          {
            ...{ at: later(10_000).toISOString(), packets_received: 0, packets_lost: 3, loss_percent: 100 },
            ...{ jitter_ms: 1.23, round_trip_ms: null, mos: null },
          },
        ],
      },
      { leg_id: 'leg_1', role: 'party', samples: [{ at: later(9_000).toISOString(), ...shown }] },
    ]);
  });

  it('answers 404 to other workspaces and hostile ids', async () => {
    expect((await qualityOf(callId, stranger)).status).toBe(404);
    for (const id of ['%00', "'%3B%20drop%20table%20calls", '%F0%9F%92%A3', 'a'.repeat(500)]) {
      expect((await qualityOf(id, viewer)).body.code, id).toBe('CALL_NOT_FOUND');
    }
  });

  it('disappears with the call', async () => {
    const admin = await fixture.addMemberWith('admin', viewer.workspaceId);
    await initiate(fixture, callId);
    await finish(fixture, callId);
    expect((await fixture.call('DELETE', `/dialer/click2call/${callId}`, { as: admin })).status).toBe(200);
    expect(await fixture.sql`select 1 from call_quality_samples where call_id = ${callId}`).toHaveLength(0);
    expect((await qualityOf(callId, admin)).status).toBe(404);
  });
});
