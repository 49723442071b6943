import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { NOW, seedEndedCalls, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let member: Member;
let trunkId: string;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('member', workspace.id);
  trunkId = (await seedTrunk(fixture.sql, { workspaceId: workspace.id, channels: 100 })).id;
  for (let index = 0; index < 5; index++) {
    const now = new Date(Date.UTC(2026, 0, index + 1));
    const metadata = { note: index === 0 ? '=cmd|"x"' : 'a \u{1F600} "quoted" % _ text' };
    const placed = await seedCall(fixture, { by: member, referenceId: `-ref-${index}`, now, metadata });
    if (index >= 3) await finish(fixture, placed.callId);
  }
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function list(query: string, as = member) {
  const { status, body } = await fixture.call('GET', `/dialer/click2call?${query}`, { as });
  expect(status, JSON.stringify(body)).toBe(200);
  const references = body.data.calls.map((call: { reference_id: string }) => call.reference_id);
  return { references, data: body.data };
}

const ALL = ['-ref-4', '-ref-3', '-ref-2', '-ref-1', '-ref-0'];

describe('list of calls by cursor', () => {
  it('returns every call once, without a total, and null after the last page', async () => {
    const seen: string[] = [];
    let cursor: string | null = 'start';
    while (cursor !== null) {
      const { references, data }: Awaited<ReturnType<typeof list>> = await list(`limit=2&cursor=${cursor}`);
      expect(data).not.toHaveProperty('pagination');
      seen.push(...references);
      cursor = data.next_cursor;
    }
    expect(seen).toEqual(ALL);
    expect((await list('limit=5&cursor=start')).data.next_cursor).toBeNull();
    expect((await list('limit=5')).data).not.toHaveProperty('next_cursor');
  });

  it('applies the filters, and returns nothing to another workspace', async () => {
    const { data } = await list('limit=1&cursor=start&state=failed');
    expect((await list(`cursor=${data.next_cursor}&state=failed`)).references).toEqual(['-ref-3']);
    const stranger = await fixture.addWorkspace();
    expect((await list(`cursor=${data.next_cursor}`, stranger)).references).toEqual([]);
  });

  it.each([
    'nonsense',
    'MQ',
    Buffer.from("1/'; drop table calls").toString('base64url'),
    Buffer.from('9999999999999999999/call_1').toString('base64url'),
    Buffer.from('1/call_1\0').toString('base64url'),
    'x'.repeat(301),
  ])('rejects the cursor %s', async (cursor) => {
    const { status, body } = await fixture.call('GET', `/dialer/click2call?cursor=${cursor}`, { as: member });
    expect([status, body.code, body.details[0].path]).toEqual([400, 'VALIDATION_FAILED', 'cursor']);
  });

  it('accepts the smallest and the largest readable cursor', async () => {
    const far = (us: string) => Buffer.from(`${us}/call_1`).toString('base64url');
    expect((await list(`cursor=${far('0')}`)).references).toEqual([]);
    expect((await list(`cursor=${far('9'.repeat(18))}`)).references).toEqual(ALL);
  });

  it('rejects a page together with a cursor', async () => {
    const { status, body } = await fixture.call('GET', '/dialer/click2call?cursor=start&page=2', { as: member });
    expect([status, body.details[0].path]).toEqual([400, 'page']);
  });
});

describe('filters of the list of calls', () => {
  it.each([
    ['state=pending,failed', 5],
    ['state=failed', 2],
    ['hangup_cause=USER_BUSY', 2],
    ['hangup_cause=NO_ANSWER', 0],
    ['direction=outbound', 5],
    ['direction=inbound', 0],
    ['number=%2B919810000002', 5],
    ['number=+91 98100-00002', 5],
    ['number=0001', 5],
    ['number=9999', 0],
    ['metadata=QUOTED', 4],
    ['metadata=%22quoted%22', 4],
    ['metadata=%25 _', 4],
    ['metadata=__', 0],
    ['metadata=%F0%9F%98%80 %22q', 4],
    ['metadata=a%00b', 0],
    ['min_talk_seconds=1', 0],
    ['max_talk_seconds=0', 2],
    ['has_recording=false', 5],
    ['has_recording=true', 0],
    ['from=2026-01-02&to=2026-01-04', 2],
  ])('finds with %s %i calls', async (query, count) => {
    expect((await list(encodeURI(query).replaceAll('%25', '%'))).references).toHaveLength(count);
  });

  it('finds calls by user, key and trunk', async () => {
    expect((await list(`user_id=${member.userId}&api_key_id=${member.keyId}&trunk_id=${trunkId}`)).references).toEqual(
      ALL,
    );
    expect((await list(`user_id=${member.userId + 1}`)).references).toEqual([]);
    expect((await list(`trunk_id=${randomUUID()}`)).references).toEqual([]);
  });

  it.each([
    'state=ringing',
    'state=failed,',
    'state=failed,ringing',
    'hangup_cause=user busy',
    'direction=sideways',
    'number=123',
    'number=abcd',
    'number=12%2534',
    'user_id=0',
    'user_id=9999999999',
    'api_key_id=x',
    'trunk_id=1',
    'metadata=x',
    'min_talk_seconds=-1',
    'max_talk_seconds=1.5',
    'has_recording=maybe',
    'from=0001-01-01T00:00:00%2B01:00',
    'to=9999-12-31T23:59:59-01:00',
  ])('rejects %s, also for the export', async (query) => {
    for (const path of ['/dialer/click2call', '/dialer/export.csv']) {
      const { status, body } = await fixture.call('GET', `${path}?${query}`, { as: member });
      expect([status, body.code, body.details[0].path]).toEqual([400, 'VALIDATION_FAILED', query.split('=')[0]]);
    }
  });

  it('names the states when it rejects another', async () => {
    const { body } = await fixture.call('GET', '/dialer/click2call?state=ringing', { as: member });
    expect(body.message).toBe(
      'state is invalid. Expected: States of the calls, separated by commas: pending, initiated, bridged, completed, failed, rejected, unknown.',
    );
  });
});

describe('export of calls', () => {
  it('contains all matching calls, newest first, and no cell that a spreadsheet evaluates', async () => {
    const { status, headers, raw } = await fixture.call('GET', '/dialer/export.csv', { as: member });
    expect([status, headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8; header=present']);
    expect(headers['content-disposition']).toBe('attachment; filename="calls-2026-01-02.csv"');
    const [head, ...records] = raw.toString().trimEnd().split('\r\n');
    expect(head).toMatch(/^call_id,reference_id,direction,state,/);
    expect(records.map((record) => record.split(',')[1])).toEqual(ALL.map((reference) => `'${reference}`));
    expect(records.at(-1)).toContain('"{""note"":""=cmd|\\""x\\""""}"');
    expect(records[0]).toContain(',failed,call.not_answered,USER_BUSY,');
    expect(records[0]).toContain(',+919810000001,+919810000002,');
    for (const record of records) expect(record).not.toMatch(/(^|,)"?[=@-]/);
    const filtered = await fixture.call('GET', '/dialer/export.csv?state=failed', { as: member });
    expect(filtered.raw.toString().trimEnd().split('\r\n')).toHaveLength(3);
  });

  it('exports more calls than one batch', async () => {
    const { workspace } = await seedWorkspace(fixture.sql);
    const exporter = await fixture.addMemberWith('viewer', workspace.id);
    await seedEndedCalls(fixture.sql, { workspaceId: workspace.id, trunkId, calls: 1201, atOnce: 3 });
    const { raw } = await fixture.call('GET', '/dialer/export.csv', { as: exporter });
    const ids = raw
      .toString()
      .trimEnd()
      .split('\r\n')
      .slice(1)
      .map((record) => record.split(',')[0]);
    expect(new Set(ids).size).toBe(1201);
    expect(ids).toHaveLength(1201);
  });

  it('requires the scope, and hides the calls of other workspaces', async () => {
    const stranger = await fixture.addWorkspace();
    const { raw } = await fixture.call('GET', '/dialer/export.csv', { as: stranger });
    expect(raw.toString().trimEnd().split('\r\n')).toHaveLength(1);
    const key = `sk_${randomBytes(24).toString('base64url')}`;
    await createApiKey(fixture.sql, {
      ...{ workspaceId: member.workspaceId, createdByUserId: member.userId, name: 'limited', now: NOW },
      ...{ scopes: ['webhooks:read'], prefix: key.slice(0, 7), last4: key.slice(-4) },
      keyHash: createHash('sha256').update(key).digest(),
    });
    for (const path of ['/dialer/export.csv', '/dialer/click2call', '/dialer/statistics']) {
      const headers = { authorization: `Bearer ${key}` };
      expect((await fixture.call('GET', path, { as: null, headers })).status).toBe(403);
      expect((await fixture.call('GET', path, { as: null })).status).toBe(401);
    }
  });
});

describe('statistics of calls', () => {
  const statistics = async (query: string, as = member) => {
    return await fixture.call('GET', `/dialer/statistics?${query}`, { as });
  };

  it('counts the calls of the last 30 days by default', async () => {
    fixture.now.current = new Date('2026-01-06T12:00:00Z');
    const { status, body } = await statistics('');
    fixture.now.current = NOW;
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ from: '2025-12-07T12:00:00.000Z', interval: 'day', time_zone: 'UTC' });
    expect(body.data.total).toEqual({
      calls: 5,
      outcomes: { completed: 0, not_answered: 2, failed: 0, temporarily_failed: 0, rejected: 0, live: 3 },
      answer_seizure_ratio: 0,
      average_talk_seconds: null,
      talk_minutes: 0,
      cost_usd: 0,
      mos: { mean: null, worst: null },
    });
    expect(body.data.intervals).toHaveLength(31);
  });

  it('groups by days of the time zone, and excludes other workspaces', async () => {
    const query = 'from=2025-12-31T18:30:00Z&to=2026-01-03T18:30:00Z&time_zone=Asia/Kolkata';
    const { body } = await statistics(query);
    expect(body.data.time_zone).toBe('Asia/Kolkata');
    expect(body.data.intervals.map(({ start, calls }: { start: string; calls: number }) => [start, calls])).toEqual([
      ['2025-12-31T18:30:00.000Z', 1],
      ['2026-01-01T18:30:00.000Z', 1],
      ['2026-01-02T18:30:00.000Z', 1],
    ]);
    const stranger = await fixture.addWorkspace();
    expect((await statistics(query, stranger)).body.data.total.calls).toBe(0);
  });

  it.each([
    ['time_zone=Mars/Olympus', 'time_zone'],
    ['time_zone=%2B05:30', 'time_zone'],
    ["time_zone=UTC'; drop table calls", 'time_zone'],
    ['time_zone=Europe/Berlin%00', 'time_zone'],
    [`time_zone=${'x'.repeat(65)}`, 'time_zone'],
    ['interval=minute', 'interval'],
    ['from=2026-01-02&to=2026-01-02', 'from'],
    ['from=2026-01-03&to=2026-01-02', 'from'],
    ['from=yesterday', 'from'],
    ['from=2024-01-01&to=2026-01-01', 'from'],
    ['from=2026-01-01&to=2026-02-02&interval=hour', 'from'],
    ['to=0001-01-01', 'from'],
    ['from=9999-12-30&to=9999-12-31T12:00:00Z', 'to'],
  ])('rejects %s', async (query, path) => {
    const { status, body } = await statistics(query);
    expect([status, body.code, body.details[0].path]).toEqual([400, 'VALIDATION_FAILED', path]);
  });

  it('accepts the longest period of each interval', async () => {
    const days = await statistics('from=2025-01-01&to=2026-01-02');
    expect(days.body.data.intervals).toHaveLength(366);
    const hours = await statistics('from=2026-01-01&to=2026-02-01&interval=hour&time_zone=Europe/Berlin');
    expect(hours.body.data.intervals).toHaveLength(744);
  });
});
