import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { addTrunkProbe, type ProbeOutcome } from '../../storage/queries/trunk-probes.ts';
import { later, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const ANSWERED: ProbeOutcome = {
  ...{ sipUri: 'sip:127.0.0.1:5070', transport: 'udp', at: later(1_000) },
  ...{ sipStatus: 405, roundTripMs: 12.5, silence: null },
};
const SILENT: ProbeOutcome = { ...ANSWERED, sipStatus: null, roundTripMs: null, silence: 'no_response' };
let fixture: HttpFixture;
let admin: Member;
let outcome: () => Promise<readonly ProbeOutcome[]>;

beforeAll(async () => {
  fixture = await createHttpFixture({ trunkProber: { probe: () => outcome() } });
  admin = await fixture.addMemberWith('admin', (await seedWorkspace(fixture.sql)).workspace.id);
});
afterAll(() => fixture[Symbol.asyncDispose]());

let series = 0;
const addTrunk = async () =>
  (await seedTrunk(fixture.sql, { workspaceId: admin.workspaceId, numbers: [`+9122500000${++series}`] })).id;
const probe = (id: string, as = admin) => fixture.call('POST', `/dialer/trunks/${id}/probe`, { as });

describe('POST /dialer/trunks/{id}/probe', () => {
  it('returns the outcome for each gateway', async () => {
    const id = await addTrunk();
    outcome = async () => [ANSWERED, SILENT];
    const { status, body } = await probe(id);
    const shown = { sip_uri: 'sip:127.0.0.1:5070', transport: 'udp', at: later(1_000).toISOString() };
    expect({ status, data: body.data }).toEqual({
      status: 200,
      data: {
        trunk_id: id,
        probes: [
          { ...shown, sip_status: 405, round_trip_ms: 12.5, error: null },
          { ...shown, sip_status: null, round_trip_ms: null, error: 'no_response' },
        ],
      },
    });
  });

  it('answers 429 after 6 probes a minute of one trunk', async () => {
    const [id, other] = [await addTrunk(), await addTrunk()];
    outcome = async () => [ANSWERED];
    for (let i = 0; i < 6; i++) expect((await probe(id)).status).toBe(200);
    const { status, body, headers } = await probe(id);
    expect([status, body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect((await probe(other)).status).toBe(200);
  });

  it('reports an unreachable SIP server', async () => {
    outcome = async () => {
      throw new TandemError('CARRIER_LINE_DOWN', 'The SIP server is not reachable.', { retryAfterS: 10 });
    };
    expect((await probe(await addTrunk())).body.code).toBe('CARRIER_LINE_DOWN');
  });

  it('admits admins of the workspace with the trunk', async () => {
    const id = await addTrunk();
    outcome = async () => [ANSWERED];
    const developer = await fixture.addMemberWith('developer', admin.workspaceId);
    expect((await probe(id, developer)).status).toBe(403);
    const { workspace } = await seedWorkspace(fixture.sql);
    const stranger = await fixture.addMemberWith('owner', workspace.id);
    expect((await probe(id, stranger)).body.code).toBe('TRUNK_NOT_FOUND');
    for (const hostile of [randomUUID(), 'x', '%00', "'--"]) {
      expect((await probe(hostile)).body.code, hostile).toBe('TRUNK_NOT_FOUND');
    }
    const body = { unknown: 1 };
    expect((await fixture.call('POST', `/dialer/trunks/${id}/probe`, { as: admin, body })).status).toBe(400);
  });
});

describe('GET /dialer/trunks/{id}', () => {
  it('lists the last 20 probes from all nodes, newest first', async () => {
    const id = await addTrunk();
    const get = async () => (await fixture.call('GET', `/dialer/trunks/${id}`, { as: admin })).body.data.recent_probes;
    expect(await get()).toEqual([]);
    for (let i = 0; i < 22; i++) {
      const at = later(i * 1_000);
      const node = `node-${i % 2}`;
      await addTrunkProbe(fixture.sql, { trunkId: id, node, outcome: { ...(i === 21 ? SILENT : ANSWERED), at } });
    }
    const probes = await get();
    expect(probes).toHaveLength(20);
    expect(probes[0]).toMatchObject({ node: 'node-1', error: 'no_response', at: later(21_000).toISOString() });
    expect(probes[19]).toMatchObject({ node: 'node-0', sip_status: 405, at: later(2_000).toISOString() });
  });

  it('deletes the probes with the trunk, and drops later ones', async () => {
    const id = await addTrunk();
    await addTrunkProbe(fixture.sql, { trunkId: id, node: 'node-1', outcome: ANSWERED });
    expect((await fixture.call('DELETE', `/dialer/trunks/${id}`, { as: admin })).status).toBe(200);
    await addTrunkProbe(fixture.sql, { trunkId: id, node: 'node-1', outcome: ANSWERED });
    expect(await fixture.sql`select 1 from trunk_probes where trunk_id = ${id}`).toHaveLength(0);
  });
});
