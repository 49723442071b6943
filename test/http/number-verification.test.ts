import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { verifyNumber } from '../../storage/queries/number-claims.ts';
import { VERIFICATION_MS } from '../../storage/queries/number-verifications.ts';
import { eventually } from '../eventually.ts';
import { seedTrunk, USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const VERIFICATIONS = '/dialer/numbers/verifications';
const CALLER_ID = '+911140000001';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
  await seedTrunk(fixture.sql, { workspaceId: fixture.owner.workspaceId, numbers: [CALLER_ID] });
});
afterAll(() => fixture[Symbol.asyncDispose]());

let series = 0;
/** A workspace with a trunk that claims a number, and credit for some calls. */
async function claimant({ balanceNano = USD } = {}) {
  const member = await fixture.addWorkspace();
  const { workspaceId } = member;
  const at = fixture.now.current;
  if (balanceNano > 0n) {
    const operationKey = `seed:${workspaceId}`;
    await topUp(fixture.sql, { workspaceId, amountNano: balanceNano, paymentType: 'admin_bonus', operationKey, at });
  }
  const e164 = `+9122491${String(++series).padStart(5, '0')}`;
  const trunkId = await trunkOf(member, e164);
  return { member, e164, trunkId };
}

async function trunkOf(member: Member, e164: string): Promise<string> {
  const body = { name: 'PBX', sip_uri: 'sip:pbx.example', numbers: [e164] };
  const trunk = await fixture.call('POST', '/dialer/trunks', { as: member, body });
  expect(trunk.status, JSON.stringify(trunk.body)).toBe(201);
  return trunk.body.data.id;
}

/** Stores verifications of the workspace that have failed. */
async function past(
  { workspaceId }: Member,
  { count, at = fixture.now.current, ...claim }: { e164: string; trunkId: string; count: number; at?: Date },
): Promise<void> {
  const ended = { status: 'failed', failure: 'busy', createdAt: at, endedAt: at };
  const rows = Array.from({ length: count }, () => ({ id: randomUUID(), workspaceId, ...claim, ...ended }));
  await fixture.sql`insert into number_verifications ${fixture.sql(rows)}`;
}

const verify = (member: Member, e164: string, trunkId: string) =>
  fixture.call('POST', VERIFICATIONS, { as: member, body: { e164, trunk_id: trunkId } });

const legTo = async (e164: string) =>
  await eventually(() => {
    const leg = fixture.sip.legs.find(({ request }) => request.calledNumber === e164);
    expect(leg).toBeDefined();
    return leg!;
  });

async function endedBusy(e164: string, path: string, as: Member): Promise<void> {
  const leg = await legTo(e164);
  fixture.sip.legs.splice(fixture.sip.legs.indexOf(leg), 1);
  leg.emit({ type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'Busy Here' });
  await eventually(async () => {
    const { body } = await fixture.call('GET', path, { as });
    expect(body.data).toMatchObject({ status: 'failed', failure: 'busy' });
  });
}

describe('verification of a number', () => {
  it("places a call over the operator's trunk, charges one minute, and goes to the audit log", async () => {
    const { member, e164, trunkId } = await claimant();
    const started = await verify(member, e164, trunkId);
    expect(started.status, JSON.stringify(started.body)).toBe(202);
    const verification = started.body.data;
    expect(verification).toMatchObject({ e164, outbound_trunk_id: trunkId, status: 'calling', failure: null });
    const { request } = await legTo(e164);
    expect([request.callerId, request.trunk.sipUri]).toEqual([CALLER_ID, 'sip:127.0.0.1:5070']);
    const [charged] = await fixture.sql<{ amount: bigint }[]>`
      select requested_nano as amount from entries where operation_key = ${`number-verification:${verification.id}`}`;
    expect(charged?.amount).toBe(60_000_000n);
    const audited = await fixture.sql`select 1 from audit_log where action = 'number.verification_started'
      and workspace_id = ${member.workspaceId}`;
    expect(audited).toHaveLength(1);
    await endedBusy(e164, `${VERIFICATIONS}/${verification.id}`, member);
  });

  it('accepts the id of the trunk in capitals', async () => {
    const { member, e164, trunkId } = await claimant();
    const first = await verify(member, e164, trunkId.toUpperCase());
    expect([first.status, first.body.data?.outbound_trunk_id]).toEqual([202, trunkId]);
    const again = await verify(member, e164, trunkId.toUpperCase());
    expect([again.status, again.body.data?.id]).toEqual([202, first.body.data.id]);
  });

  it('continues when requested again', async () => {
    const { member, e164, trunkId } = await claimant();
    const first = await verify(member, e164, trunkId);
    const again = await verify(member, e164, trunkId);
    expect([again.status, again.body.data.id]).toEqual([202, first.body.data.id]);
    await legTo(e164);
    expect(fixture.sip.legs.filter(({ request }) => request.calledNumber === e164)).toHaveLength(1);
  });

  it('hides from other workspaces', async () => {
    const { member, e164, trunkId } = await claimant();
    const { id } = (await verify(member, e164, trunkId)).body.data;
    const answer = await fixture.call('GET', `${VERIFICATIONS}/${id}`);
    expect([answer.status, answer.body.code]).toEqual([404, 'VERIFICATION_NOT_FOUND']);
  });

  it('fails when the calling server disappears', async () => {
    const { member, e164, trunkId } = await claimant();
    const { id } = (await verify(member, e164, trunkId)).body.data;
    fixture.now.current = new Date(fixture.now.current.getTime() + VERIFICATION_MS);
    const { body } = await fixture.call('GET', `${VERIFICATIONS}/${id}`, { as: member });
    expect(body.data).toMatchObject({ status: 'failed', failure: 'interrupted' });
  });

  it('allows three calls a day per number across workspaces', async () => {
    const { member, e164, trunkId } = await claimant();
    const other = await claimant();
    const othersTrunk = await trunkOf(other.member, e164);
    for (let call = 0; call < 3; call += 1) {
      const { status, body } = await verify(member, e164, trunkId);
      expect(status).toBe(202);
      await endedBusy(e164, `${VERIFICATIONS}/${body.data.id}`, member);
    }
    const refused = await verify(other.member, e164, othersTrunk);
    expect([refused.status, refused.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(80_000);
  });

  it('reports when the limit that was reached has room again', async () => {
    const { member, e164, trunkId } = await claimant();
    const yesterday = new Date(fixture.now.current.getTime() - 86_390_000);
    await past(member, { e164: '+912249199999', trunkId, count: 1, at: yesterday });
    await past(member, { e164, trunkId, count: 3 });
    const refused = await verify(member, e164, trunkId);
    expect([refused.status, refused.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBe(86_400);
  });

  it('allows twenty calls a day per workspace despite concurrent requests', async () => {
    const { member, e164, trunkId } = await claimant();
    await past(member, { e164: '+912249199998', trunkId, count: 19 });
    const others = ['+912249199990', '+912249199991', '+912249199992'];
    const trunk = { as: member, body: { numbers: [e164, ...others] } };
    expect((await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, trunk)).status).toBe(200);
    const answers = await Promise.all([e164, ...others].map((number) => verify(member, number, trunkId)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 429, 429, 429]);
  });

  it('fails while the number is being verified for another trunk', async () => {
    const { member, e164, trunkId } = await claimant();
    const other = await claimant();
    const othersTrunk = await trunkOf(other.member, e164);
    await verify(member, e164, trunkId);
    const refused = await verify(other.member, e164, othersTrunk);
    expect([refused.status, refused.body.code]).toEqual([409, 'NUMBER_NOT_AVAILABLE']);
  });
});

describe('refused verification', () => {
  const refusals: {
    when: string;
    code: string;
    status: number;
    balanceNano?: bigint;
    ask?: (asked: Awaited<ReturnType<typeof claimant>>) => Promise<{ e164?: string; trunkId?: string } | undefined>;
  }[] = [
    { when: 'without credit', code: 'INSUFFICIENT_CREDITS', status: 402, balanceNano: 0n },
    {
      when: 'for a number that the trunk does not list',
      ...{ code: 'NUMBER_NOT_FOUND', status: 404 },
      ask: async () => ({ e164: '+912249999999' }),
    },
    {
      when: 'for a trunk of another workspace',
      ...{ code: 'TRUNK_NOT_FOUND', status: 404 },
      ask: async () => ({ trunkId: (await claimant()).trunkId }),
    },
    {
      when: 'for an invalid id',
      ...{ code: 'TRUNK_NOT_FOUND', status: 404 },
      ask: async () => ({ trunkId: 'none' }),
    },
    {
      when: 'for a premium-rate number',
      ...{ code: 'VALIDATION_FAILED', status: 400 },
      ask: async () => ({ e164: '+911860123456' }),
    },
    {
      when: 'for a number of a country that must not be called',
      ...{ code: 'VALIDATION_FAILED', status: 400 },
      ask: async () => ({ e164: '+442079460958' }),
    },
    {
      when: 'for a number that is verified',
      ...{ code: 'NUMBER_NOT_AVAILABLE', status: 409 },
      async ask({ e164, trunkId }) {
        await verifyNumber(fixture.sql, { e164, trunkId, by: 'operator', now: fixture.now.current });
        return undefined;
      },
    },
    {
      when: 'for a prefix that the workspace has blocked',
      ...{ code: 'DESTINATION_BLOCKED', status: 403 },
      async ask({ member, e164 }) {
        const body = { blocked_prefixes: [e164.slice(0, 8)] };
        const rules = await fixture.call('PATCH', '/dialer/calling-rules', { as: member, body });
        expect(rules.status, JSON.stringify(rules.body)).toBe(200);
        return undefined;
      },
    },
  ];

  it.each(refusals)('places no call $when', async ({ code, status, balanceNano, ask }) => {
    const asked = await claimant(balanceNano === undefined ? {} : { balanceNano });
    const changed = { ...asked, ...(await ask?.(asked)) };
    const legs = fixture.sip.legs.length;
    const answer = await verify(asked.member, changed.e164, changed.trunkId);
    expect([answer.status, answer.body.code], answer.body.message).toEqual([status, code]);
    const stored =
      await fixture.sql`select 1 from number_verifications where workspace_id = ${asked.member.workspaceId}`;
    expect([stored.length, fixture.sip.legs.length]).toEqual([0, legs]);
  });

  it('places no call while the operator has no trunk', async () => {
    await using bare = await createHttpFixture();
    const member = await bare.addWorkspace();
    const e164 = '+912249300001';
    const body = { name: 'PBX', sip_uri: 'sip:pbx.example', numbers: [e164] };
    const trunk = await bare.call('POST', '/dialer/trunks', { as: member, body });
    const asked = { e164, trunk_id: trunk.body.data.id };
    const answer = await bare.call('POST', VERIFICATIONS, { as: member, body: asked });
    expect([answer.status, answer.body.code]).toEqual([409, 'DIALER_NOT_PROVISIONED']);
  });
});
