import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { connect, type Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import {
  type AdmitCallInput,
  type AdmitCallResult,
  admitCall,
  admitCalls,
  listCallEvents,
  mayAdmitTogether,
} from '../../storage/queries/calls.ts';
import { addToDoNotCall } from '../../storage/queries/do-not-call.ts';
import * as fc from '../properties.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, USD } from './seed.ts';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const LISTED = '+919810000003';
let trunks = 0;

/** A workspace with money, a do-not-call list, and a trunk with two numbers. It rents the first one. */
async function ready({ balanceNano = 10n * USD, channels = 10 }: { balanceNano?: bigint; channels?: number } = {}) {
  const { sql } = database;
  const { workspace } = await seedWorkspace(sql, { balanceNano });
  trunks += 1;
  const numbers = ['1', '2'].map((last) => `+9133${String(trunks).padStart(6, '0')}${last}`) as [string, string];
  await seedTrunk(sql, { workspaceId: workspace.id, channels, numbers });
  await addToDoNotCall(sql, { workspaceId: workspace.id, numbers: [LISTED], now: NOW });
  const input = (overrides: Partial<AdmitCallInput> = {}) => admission({ workspaceId: workspace.id, ...overrides });
  return { sql, workspaceId: workspace.id, numbers, input };
}

const placement = fc.record({
  agentNumber: fc.constantFrom('+919810000001', '+14150000001'),
  customerNumber: fc.constantFrom('+919810000002', '+442070000002', LISTED),
  number: fc.constantFrom(null, 0, 1),
  announceCharacters: fc.constantFrom(null, 300),
  isInbound: fc.boolean(),
});

const limits = fc.record({
  balanceNano: fc.bigInt(1n, 2_000_000_000n),
  channels: fc.integer({ min: 1, max: 8 }),
  placements: fc.integer({ min: 1, max: 8 }),
  toIndia: fc.constantFrom(1, 3, 100),
  dailySpendCapNano: fc.constantFrom(null, 300_000_000n),
});

/** Before the others, and how long ago. */
const earlier = fc.array(fc.integer({ min: 1, max: 90 }), { maxLength: 6 });

it('decides about calls that are admitted together as about the same calls one after the other', async () => {
  await fc.assert(
    fc.asyncProperty(limits, earlier, fc.array(placement, { minLength: 1, maxLength: 8 }), async (set, ages, asked) => {
      const decided = await Promise.all(
        [decideTogether, decideOneByOne].map((decide) => place(decide, set, ages, asked)),
      );
      expect(decided[0]).toEqual(decided[1]);
    }),
    { numRuns: 40 },
  );
});

type Decide = (sql: Sql, inputs: AdmitCallInput[]) => Promise<PromiseSettledResult<AdmitCallResult>[]>;
type Limits = typeof limits extends fc.Arbitrary<infer Value> ? Value : never;
type Asked = typeof placement extends fc.Arbitrary<infer Value> ? Value : never;

const decideTogether: Decide = admitCalls;

const decideOneByOne: Decide = async (sql, inputs) => {
  const outcomes: PromiseSettledResult<AdmitCallResult>[] = [];
  for (const input of inputs) outcomes.push(...(await Promise.allSettled([admitCall(sql, input)])));
  return outcomes;
};

async function place(decide: Decide, { placements, toIndia, ...set }: Limits, ages: number[], asked: Asked[]) {
  const { sql, workspaceId, numbers, input } = await ready(set);
  for (const age of ages.toSorted((a, b) => b - a)) {
    await admitCall(sql, input({ now: later(-age * 1_000), agentRingTimeoutS: 1, customerRingTimeoutS: 1 })).catch(
      () => {},
    );
  }
  const inputs = asked.map(({ number, isInbound, ...each }) =>
    input({
      ...each,
      did: number === null ? null : numbers[number]!,
      placedVia: isInbound ? 'inbound' : 'api_key',
      placementsPerMinute: { free: 0, starter: 0, pro: 0, enterprise: placements },
      callingLimits: {
        dailySpendCapNano: set.dailySpendCapNano,
        blockedPrefixes: [],
        destinationLimits: [{ prefix: '+91', callsPerMinute: toIndia }],
      },
    }),
  );
  const outcomes = await decide(sql, inputs);
  const entries = await sql<{ amountNano: bigint; balanceBeforeNano: bigint; balanceAfterNano: bigint }[]>`
    select kind, result_nano as amount_nano, balance_before_nano, balance_after_nano from entries
    where workspace_id = ${workspaceId} order by position`;
  return {
    outcomes: outcomes.map((outcome) => presented(outcome, numbers)),
    wallet: await walletOf(sql, workspaceId),
    entries: [...entries],
    stored: await storedCalls(sql, workspaceId),
  };
}

function presented(outcome: PromiseSettledResult<AdmitCallResult>, numbers: readonly string[]) {
  if (outcome.status === 'rejected') {
    const { code, retryAfterS, details } = outcome.reason as TandemError;
    return { code, retryAfterS, details };
  }
  const { heldNano, call } = outcome.value;
  const { state, seq, agentNumber, customerNumber, placedVia, announceCharacters } = call;
  return {
    heldNano,
    state,
    seq,
    agentNumber,
    customerNumber,
    placedVia,
    announceCharacters,
    did: numbers.indexOf(call.did),
  };
}

async function storedCalls(sql: Sql, workspaceId: string): Promise<number> {
  const [row] = await sql<{ calls: number }[]>`
    select count(*)::int as calls from calls c join call_events e using (call_id) join holds h on h.id = c.hold_id
    where c.workspace_id = ${workspaceId} and e.event = 'call.pending' and e.sequence = 1`;
  return row!.calls;
}

it('stores the others if the database refuses one of the calls that are admitted together', async () => {
  const { sql, input, workspaceId } = await ready();
  const inputs = [input(), input({ apiKeyName: 'a\0b' }), input()];
  const outcomes = await admitCalls(sql, inputs);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await storedCalls(sql, workspaceId)).toBe(2);
  expect(await listCallEvents(sql, { callId: inputs[2]!.callId })).toMatchObject([
    { event: 'call.pending', sequence: 1 },
  ]);
});

it('stores nothing of a placement that was rejected while it waited, and admits the others', async () => {
  const { sql, input, workspaceId } = await ready();
  const refused = AbortSignal.abort(new TandemError('PLACEMENTS_OVERLOADED', 'too late'));
  const late = { refused, claim: () => refused.throwIfAborted() };
  const outcomes = await admitCalls(sql, [input({ turn: late }), input()]);
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { code: 'PLACEMENTS_OVERLOADED' } },
    { status: 'fulfilled', value: { outcome: 'admitted' } },
  ]);
  expect(await storedCalls(sql, workspaceId)).toBe(1);
});

it('replays a live call among others that are admitted with it', async () => {
  const { sql, input } = await ready();
  const referenceId = `order-${randomUUID()}`;
  const { call } = await admitCall(sql, input({ referenceId }));
  const outcomes = await admitCalls(sql, [input({ referenceId }), input()]);
  expect(outcomes).toMatchObject([
    { value: { outcome: 'replayed', call: { callId: call.callId }, heldNano: null } },
    { value: { outcome: 'admitted' } },
  ]);
});

it('reuses prepared statements for calls with other optional fields', async () => {
  const { input } = await ready({ channels: 100 });
  const bare = () => input();
  const full = () =>
    input({
      metadata: { order: 7 },
      callbackUrl: 'https://client.example/calls',
      callbackSecretEncrypted: Buffer.from('sealed'),
      callbackSecretLast4: 'aled',
      requestHash: Buffer.alloc(32),
    });
  const inbound = () => input({ placedVia: 'inbound', decidedBy: { decided_by: 'rule', fault: null, after_ms: null } });
  const sql = connect({ url: database.url, max: 1 });
  const admitBoth = async (...inputs: AdmitCallInput[]) => {
    const outcomes = await admitCalls(sql, inputs);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    return await sql`select count(*) from pg_prepared_statements`;
  };
  const before = await admitBoth(bare(), full());
  expect(await admitBoth(full(), bare())).toEqual(before);
  expect(await admitBoth(inbound(), bare())).toEqual(before);
  expect(await admitBoth(full(), inbound())).toEqual(before);
  await sql.end();
});

it('admits a placement after the minute of an earlier call, together with one within it', async () => {
  const { sql, input } = await ready();
  const placementsPerMinute = { free: 1, starter: 1, pro: 1, enterprise: 1 };
  await admitCall(sql, input({ placementsPerMinute }));
  const outcomes = await admitCalls(
    sql,
    [59_000, 60_000].map((ms) => input({ placementsPerMinute, now: later(ms) })),
  );
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { code: 'C2C_RATE_LIMITED', retryAfterS: 1 } },
    { status: 'fulfilled', value: { outcome: 'admitted' } },
  ]);
});

it('does not admit calls of one reference or of two trunks together', () => {
  const [first, second] = [admission({ workspaceId: 'a' }), admission({ workspaceId: 'a' })];
  expect(mayAdmitTogether([first], second)).toBe(true);
  expect(mayAdmitTogether([second, first], { ...second, referenceId: first.referenceId })).toBe(false);
  expect(mayAdmitTogether([first], { ...second, trunkId: randomUUID() })).toBe(false);
});
