import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { type CallFilters, type CallPosition, callsAfter, listCalls } from '../../storage/queries/call-search.ts';
import { callStatistics } from '../../storage/queries/call-statistics.ts';
import { admitCall } from '../../storage/queries/calls.ts';
import { onEveryServer } from './every-server.ts';
import { admission, later, seedEndedCalls, seedTrunk, seedWorkspace } from './seed.ts';
import { createTestDatabase } from './test-database.ts';

async function ready(sql: Sql) {
  const { workspace, user } = await seedWorkspace(sql);
  const trunk = await seedTrunk(sql, { workspaceId: workspace.id, channels: 100 });
  return { workspaceId: workspace.id, user, trunk };
}

async function referencesOf(sql: Sql, filters: CallFilters): Promise<string[]> {
  const { rows } = await callsAfter(sql, filters, { after: null, limit: 100 });
  const listed = await listCalls(sql, filters, { page: 1, limit: 100 });
  expect(listed.rows.map(({ callId }) => callId)).toEqual(rows.map(({ callId }) => callId));
  expect(listed.total).toBe(rows.length);
  return rows.map(({ referenceId }) => referenceId);
}

onEveryServer('call search', (database) => {
  it('filters by each property', async () => {
    const { sql } = database();
    const { workspaceId, user, trunk } = await ready(sql);
    const place = async (referenceId: string, at: number, more: object = {}) =>
      await admitCall(sql, admission({ workspaceId, referenceId, now: later(at), ...more }));
    await place('one', 1, { customerNumber: '+919812345678', metadata: { Note: 'Größe "A" 100%' } });
    await place('two', 2, { agentNumber: '+919812345678', createdByUserId: user.id });
    await place('three', 3);
    await sql`update calls set state = 'completed', hangup_cause = 'NORMAL_CLEARING', talk_seconds = 30,
      recording_status = 'uploaded', direction = 'inbound' where reference_id = 'three'`;
    await sql`update calls set state = 'failed', hangup_cause = 'USER_BUSY', talk_seconds = 0 where reference_id = 'two'`;
    const find = (filters: Partial<CallFilters>) => referencesOf(sql, { workspaceId, ...filters });
    expect(await find({})).toEqual(['three', 'two', 'one']);
    expect(await find({ states: ['completed', 'failed'] })).toEqual(['three', 'two']);
    expect(await find({ states: [] })).toEqual([]);
    expect(await find({ hangupCause: 'USER_BUSY' })).toEqual(['two']);
    expect(await find({ direction: 'inbound' })).toEqual(['three']);
    expect(await find({ number: '+919812345678' })).toEqual(['two', 'one']);
    expect(await find({ number: '345678' })).toEqual(['two', 'one']);
    expect(await find({ number: '1234567' })).toEqual([]);
    expect(await find({ userId: user.id })).toEqual(['two']);
    expect(await find({ trunkId: trunk.id })).toHaveLength(3);
    expect(await find({ trunkId: randomUUID() })).toEqual([]);
    expect(await find({ metadataText: 'größe \\"a\\" 100%' })).toEqual(['one']);
    expect(await find({ metadataText: '100_' })).toEqual([]);
    expect(await find({ minTalkSeconds: 0, maxTalkSeconds: 29 })).toEqual(['two']);
    expect(await find({ hasRecording: true })).toEqual(['three']);
    expect(await find({ hasRecording: false })).toEqual(['two', 'one']);
    const { workspace: other } = await seedWorkspace(sql);
    expect(await find({ workspaceId: other.id })).toEqual([]);
  });

  it('paginates calls of the same moment once each, even while calls arrive', async () => {
    const { sql } = database();
    const { workspaceId } = await ready(sql);
    const expected: string[] = [];
    for (let index = 0; index < 7; index++) {
      const now = later(index < 4 ? 0 : 1);
      expected.push((await admitCall(sql, admission({ workspaceId, now }))).call.callId);
    }
    // Timestamps may have microseconds.
    await sql`update calls set created_at = created_at + interval '7 microseconds' where call_id = ${expected[6]!}`;
    const seen: string[] = [];
    let after: CallPosition | null = null;
    do {
      const page: Awaited<ReturnType<typeof callsAfter>> = await callsAfter(sql, { workspaceId }, { after, limit: 2 });
      seen.push(...page.rows.map(({ callId }) => callId));
      after = page.next;
      await admitCall(sql, admission({ workspaceId, now: later(10) }));
    } while (after !== null);
    expect(seen.toSorted()).toEqual(expected.toSorted());
    expect(seen[0]).toBe(expected[6]);
  });
});

describe('large call table', () => {
  it('uses indexes for every page and for the last digits of a number', async () => {
    await using database = await createTestDatabase();
    const { sql } = database;
    const { workspaceId, trunk } = await ready(sql);
    await seedEndedCalls(sql, { workspaceId, trunkId: trunk.id, calls: 30_000 });
    const plan = async (filters: Partial<CallFilters>, after: CallPosition | null) => {
      const plans: string[] = [];
      const explaining = new Proxy(sql, {
        apply(target, self, args) {
          const part = Reflect.apply(target, self, args);
          // `sql(columns)` is not a query.
          if (!args[0][0].includes('select *,')) return part;
          return sql`explain (costs off) ${part}`.then((rows) => {
            plans.push(rows.map((row) => Object.values(row)[0]).join('\n'));
            return [];
          });
        },
      });
      await callsAfter(explaining, { workspaceId, ...filters }, { after, limit: 50 });
      return plans.join('\n');
    };
    const middle = (await callsAfter(sql, { workspaceId }, { after: null, limit: 15_000 })).next;
    for (const text of [await plan({}, null), await plan({}, middle), await plan({ states: ['failed'] }, middle)]) {
      expect(text).toContain('calls_workspace_created');
      expect(text).not.toMatch(/Seq Scan|Sort/);
    }
    const byDigits = await plan({ number: '001234' }, null);
    expect(byDigits).toContain('calls_customer_digits');
    expect(byDigits).toContain('calls_agent_digits');
  });
});

onEveryServer('call statistics', (database) => {
  async function place(sql: Sql, workspaceId: string, at: string, outcome: Record<string, unknown> = {}) {
    const { call } = await admitCall(sql, admission({ workspaceId, now: new Date(at) }));
    if (Object.keys(outcome).length > 0) await sql`update calls set ${sql(outcome)} where call_id = ${call.callId}`;
  }
  const completed = (talkSeconds: number, more = {}) => {
    return { state: 'completed', terminalEvent: 'call.completed', talkSeconds, costNano: 1_000_000n, ...more };
  };

  it('sums outcomes, talk, cost and quality by day and in total, including empty days', async () => {
    const { sql } = database();
    const { workspaceId } = await ready(sql);
    const quality = (agent: number, customer: number) =>
      sql.json({ agent: { mos: agent }, customer: { mos: customer } });
    await place(sql, workspaceId, '2026-03-01T10:00:00Z', completed(60, { quality: quality(4.5, 3.5) }));
    await place(
      sql,
      workspaceId,
      '2026-03-01T11:00:00Z',
      completed(30, { legsCostNano: 500_000n, quality: quality(4, 2) }),
    );
    await place(sql, workspaceId, '2026-03-03T00:00:00Z', { state: 'failed', terminalEvent: 'call.not_answered' });
    await place(sql, workspaceId, '2026-03-03T01:00:00Z', { state: 'failed', terminalEvent: 'call.failed' });
    await place(sql, workspaceId, '2026-03-03T02:00:00Z', { state: 'failed', terminalEvent: 'call.temporaryfailed' });
    await place(sql, workspaceId, '2026-03-03T03:00:00Z', { state: 'rejected', terminalEvent: 'call.temporaryfailed' });
    await place(sql, workspaceId, '2026-03-03T04:00:00Z');
    await place(sql, workspaceId, '2026-03-04T00:00:00Z', completed(600));
    const range = { from: new Date('2026-03-01T00:00:00Z'), to: new Date('2026-03-04T00:00:00Z') };
    const query = { workspaceId, ...range, interval: 'day', timeZone: 'UTC' } as const;
    const { total, intervals } = await callStatistics(sql, query);
    const outcomes = { live: 1, completed: 2, notAnswered: 1, failed: 1, temporarilyFailed: 1, rejected: 1 };
    expect(total).toMatchObject({ ...outcomes, talkSeconds: 90n, costNano: 2_500_000n, meanMos: 3.5, worstMos: 2 });
    expect(intervals.map(({ start, completed: count }) => [start.toISOString().slice(0, 10), count])).toEqual([
      ['2026-03-01', 2],
      ['2026-03-02', 0],
      ['2026-03-03', 0],
    ]);
    expect(intervals[1]).toMatchObject({ talkSeconds: 0n, costNano: 0n, meanMos: null, worstMos: null });
    const { workspace: other } = await seedWorkspace(sql);
    expect((await callStatistics(sql, { ...query, workspaceId: other.id })).total.completed).toBe(0);
  });

  it('follow daylight saving time', async () => {
    const { sql } = database();
    const { workspaceId } = await ready(sql);
    const boundaries = async (timeZone: string, interval: 'day' | 'hour', from: string, to: string) => {
      const range = { from: new Date(from), to: new Date(to) };
      const { intervals } = await callStatistics(sql, { workspaceId, ...range, interval, timeZone });
      for (const [index, { end }] of intervals.slice(0, -1).entries()) expect(end).toEqual(intervals[index + 1]!.start);
      return intervals.map(({ start, completed: count }) => `${start.toISOString().slice(0, 16)} ${count}`);
    };
    // Berlin: 23 hours on 29 March 2026, 25 on 25 October.
    await place(sql, workspaceId, '2026-03-28T23:30:00Z', completed(1));
    await place(sql, workspaceId, '2026-03-29T21:59:00Z', completed(1));
    await place(sql, workspaceId, '2026-03-29T22:00:00Z', completed(1));
    expect(await boundaries('Europe/Berlin', 'day', '2026-03-27T23:00:00Z', '2026-03-30T22:00:00Z')).toEqual([
      '2026-03-27T23:00 0',
      '2026-03-28T23:00 2',
      '2026-03-29T22:00 1',
    ]);
    await place(sql, workspaceId, '2026-10-25T00:30:00Z', completed(1));
    await place(sql, workspaceId, '2026-10-25T01:30:00Z', completed(1));
    await place(sql, workspaceId, '2026-10-25T22:59:00Z', completed(1));
    expect(await boundaries('Europe/Berlin', 'day', '2026-10-24T22:00:00Z', '2026-10-26T23:00:00Z')).toEqual([
      '2026-10-24T22:00 3',
      '2026-10-25T23:00 0',
    ]);
    // The hour from 2 to 3 occurs twice.
    expect(await boundaries('Europe/Berlin', 'hour', '2026-10-25T00:00:00Z', '2026-10-25T03:00:00Z')).toEqual([
      '2026-10-25T00:00 1',
      '2026-10-25T01:00 1',
      '2026-10-25T02:00 0',
    ]);
    expect(await boundaries('Asia/Kolkata', 'hour', '2026-10-25T00:00:00Z', '2026-10-25T01:00:00Z')).toEqual([
      '2026-10-24T23:30 0',
      '2026-10-25T00:30 1',
    ]);
    // Beirut has no midnight on 29 March 2026; Lord Howe shifts by half an hour.
    expect(await boundaries('Asia/Beirut', 'day', '2026-03-27T22:00:00Z', '2026-03-29T21:00:00Z')).toHaveLength(2);
    const howe = await boundaries('Australia/Lord_Howe', 'hour', '2026-04-04T13:00:00Z', '2026-04-04T17:00:00Z');
    expect(howe.length).toBeGreaterThanOrEqual(4);
  });

  it.each([
    // Postgres reads these as abbreviations: of Israel's time, and of Central Europe's without daylight saving time.
    { timeZone: 'IST', start: '2026-06-30T18:30:00.000Z' },
    { timeZone: 'CET', start: '2026-06-30T22:00:00.000Z' },
    { timeZone: 'UTC', start: '2026-07-01T00:00:00.000Z' },
  ])('begin the day of $timeZone at $start', async ({ timeZone, start }) => {
    const { sql } = database();
    const { workspaceId } = await ready(sql);
    const range = { from: new Date('2026-07-01T00:00:00Z'), to: new Date('2026-07-01T01:00:00Z') };
    const { intervals } = await callStatistics(sql, { workspaceId, ...range, interval: 'day', timeZone });
    expect(intervals.map((each) => each.start.toISOString())).toEqual([start]);
  });
});
