import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type CallTraceOptions, openCallTrace } from '../../actors/call-trace.ts';
import type { CallMessage } from '../../sip/trace/wire-message.ts';
import type { Sql } from '../../storage/database.ts';
import { admitCall } from '../../storage/queries/calls.ts';
import { sipMessagesOf } from '../../storage/queries/sip-messages.ts';
import { fakeSql } from '../storage/fake-sql.ts';
import { admission, NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let sql: Sql;
let callId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = database.sql;
});
afterAll(() => database.drop());
beforeEach(async () => {
  callId = await seedCall();
});

/** Each in a separate workspace, which can place calls at once. */
async function seedCall(): Promise<string> {
  const workspaceId = (await seedWorkspace(sql)).workspace.id;
  const number = `+9111${String(numbers++).padStart(8, '0')}`;
  await seedTrunk(sql, { workspaceId, numbers: [number] });
  return (await admitCall(sql, admission({ workspaceId, did: number }))).call.callId;
}
let numbers = 0;

function open(options: Partial<CallTraceOptions> = {}) {
  const clock = createTestClock();
  const logger = createTestLogger();
  const trace = openCallTrace({ sql, percent: 100, clock, logger, ...options });
  onTestFinished(() => trace[Symbol.asyncDispose]());
  return { trace, clock };
}

function message(changes: Partial<CallMessage> = {}): CallMessage {
  return {
    ...{ callId, leg: 'agent', atMs: NOW.getTime(), direction: 'sent', transport: 'udp', sipCallId: 'a' },
    ...{ local: { host: '10.0.0.1', port: 5060 }, remote: null, text: 'INVITE' },
    ...changes,
  };
}

const kept = async (id = callId) => (await sipMessagesOf(sql, id)).map((row) => row.message.toString('latin1'));

describe('SIP trace of a call', () => {
  it('keeps messages byte for byte, in order', async () => {
    const { trace } = open();
    for (const text of ['first', 'sec\xf6nd\x00', 'third']) trace.add(message({ text }));
    await trace.flush();
    expect(await kept()).toEqual(['first', 'sec\xf6nd\x00', 'third']);
    expect((await sipMessagesOf(sql, callId))[0]).toMatchObject({
      ...{ leg: 'agent', at: NOW, direction: 'sent', localHost: '10.0.0.1', localPort: 5060, remoteHost: null },
      isCut: false,
    });
  });

  it('stores periodically, and stores the rest on close', async () => {
    const { trace, clock } = open();
    trace.add(message({ text: 'first' }));
    clock.advance(250);
    await expect.poll(() => kept()).toEqual(['first']);
    trace.add(message({ text: 'second' }));
    await trace[Symbol.asyncDispose]();
    expect(await kept()).toEqual(['first', 'second']);
  });

  it('ends with one truncated message after 500 messages or 1 MB', async () => {
    const { trace } = open();
    for (let i = 0; i < 600; i++) trace.add(message({ text: 'x'.repeat(1_100) }));
    await trace.flush();
    const rows = await sipMessagesOf(sql, callId);
    expect(rows.length).toBe(501);
    expect(rows.filter(({ isCut }) => isCut)).toEqual([rows.at(-1)]);
    expect(rows.at(-1)?.message.length).toBe(1_000);
    const large = await seedCall();
    for (let i = 0; i < 60; i++) trace.add(message({ callId: large, text: 'x'.repeat(60_000) }));
    await trace.flush();
    // The 17th message exceeds 1 MB.
    expect(await kept(large)).toHaveLength(17);
  });

  it('drops messages of unknown calls, and keeps the others', async () => {
    const { trace } = open();
    trace.add(message({ callId: 'gone' }));
    trace.add(message());
    await trace.flush();
    expect(await kept()).toEqual(['INVITE']);
    expect(trace.dump()).toEqual({ waiting: 0, lost: 0 });
  });

  it('samples whole calls consistently', async () => {
    const ids: string[] = [];
    while (ids.length < 30) ids.push(await seedCall());
    const counts = async () => await Promise.all(ids.map(async (id) => (await kept(id)).length));
    for (let round = 0; round < 2; round++) {
      const { trace } = open({ percent: 50 });
      for (const id of ids) trace.add(message({ callId: id }));
      await trace.flush();
    }
    const found = await counts();
    expect(new Set(found)).toEqual(new Set([0, 2]));
  });

  it('counts messages that a failing database loses, and continues', async () => {
    const { trace } = open({ sql: fakeSql(() => Promise.reject(new Error('no database'))) });
    trace.add(message());
    await trace.flush();
    trace.add(message());
    await trace.flush();
    expect(trace.dump()).toEqual({ waiting: 0, lost: 2 });
  });
});
