import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const OPERATOR = {
  dailySpendCapNano: 500_000_000_000n,
  blockedPrefixes: ['+882'],
  destinationLimits: [{ prefix: '+91', callsPerMinute: 60 }],
};
const OPERATOR_LIMITS = {
  daily_spend_cap_usd: 500,
  blocked_prefixes: ['+882'],
  destination_limits: [{ prefix: '+91', calls_per_minute: 60 }],
};

let fixture: HttpFixture;
let admin: Member;
beforeAll(async () => {
  fixture = await createHttpFixture({ callingLimits: OPERATOR });
  admin = await fixture.addMemberWith('admin');
});
afterAll(() => fixture[Symbol.asyncDispose]());

const change = (body: unknown, as = admin) => fixture.call('PATCH', '/dialer/calling-rules', { as, body });

describe('calling rules', () => {
  it('default to the limits of the operator alone', async () => {
    const as = await fixture.addMemberWith('viewer');
    const { status, body } = await fixture.call('GET', '/dialer/calling-rules', { as });
    expect([status, body.data]).toEqual([
      200,
      {
        daily_spend_cap_usd: null,
        blocked_prefixes: [],
        destination_limits: [],
        calling_hours: null,
        operator_limits: OPERATOR_LIMITS,
      },
    ]);
  });

  it('change field by field, with entries in the audit log', async () => {
    const hours = { time_zone: 'Asia/Kolkata', start: '09:00', end: '21:00' };
    const first = { daily_spend_cap_usd: 12.345678901, blocked_prefixes: ['+979'], calling_hours: hours };
    expect((await change(first)).body.data).toMatchObject({ ...first, destination_limits: [] });
    const limits = [{ prefix: '+91', calls_per_minute: 15 }];
    expect((await change({ destination_limits: limits })).body.data).toMatchObject({
      ...first,
      destination_limits: limits,
    });
    const { entries } = (await fixture.call('GET', '/audit?limit=1')).body.data;
    expect(entries).toMatchObject([
      { action: 'calling_rules.updated', details: { destination_limits: limits }, actor: { user_id: admin.userId } },
    ]);
    const off = { daily_spend_cap_usd: null, blocked_prefixes: [], destination_limits: [], calling_hours: null };
    expect((await change(off)).body.data).toEqual({ ...off, operator_limits: OPERATOR_LIMITS });
  });

  it.each<[unknown, string]>([
    [{}, 'body'],
    [{ daily_spend_cap_usd: -1 }, 'daily_spend_cap_usd'],
    [{ daily_spend_cap_usd: 0.0000000001 }, 'daily_spend_cap_usd'],
    [{ blocked_prefixes: ['91'] }, 'blocked_prefixes.0'],
    [{ destination_limits: [{ prefix: '+91', calls_per_minute: 0 }] }, 'destination_limits.0.calls_per_minute'],
    [{ destination_limits: [{ prefix: '+91' }] }, 'destination_limits.0.calls_per_minute'],
    [{ calling_hours: { time_zone: 'Asia/Kolkata', start: '9:00', end: '21:00' } }, 'calling_hours.start'],
    [{ calling_hours: { time_zone: 'Asia/Kolkata', start: '09:00', end: '24:00' } }, 'calling_hours.end'],
    [{ calling_hours: { time_zone: 'Asia/Kolkata', start: '09:00', end: '09:00' } }, 'calling_hours.end'],
    [{ calling_hours: { time_zone: 'Mars/Olympus', start: '09:00', end: '21:00' } }, 'calling_hours.time_zone'],
    [{ calling_hours: { time_zone: '+05:30', start: '09:00', end: '21:00' } }, 'calling_hours.time_zone'],
    [{ calling_hours: { time_zone: "x'; --", start: '09:00', end: '21:00' } }, 'calling_hours.time_zone'],
    [{ unknown: 1 }, 'unknown'],
  ])('reject %j', async (body, path) => {
    const answer = await change(body);
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.details.map((detail: { path: string }) => detail.path)).toContain(path);
  });
});

describe('do-not-call list', () => {
  const url = '/dialer/do-not-call';
  const add = (numbers: string[], as = admin) => fixture.call('POST', url, { as, body: { numbers } });

  it('stores numbers in any usual notation once, lists, checks and removes them', async () => {
    expect((await add(['98123 45678', '+919812345678', '+44 20 7946 0958'])).body.data).toEqual({ added: 2 });
    expect((await add(['+919812345678'])).body.data).toEqual({ added: 0 });
    const viewer = await fixture.addMemberWith('viewer');
    const listed = await fixture.call('GET', `${url}?limit=1`, { as: viewer });
    expect(listed.body.data).toEqual({
      numbers: [{ e164: '+442079460958', created_at: fixture.now.current.toISOString() }],
      pagination: { page: 1, limit: 1, total: 2, pages: 2 },
    });
    const check = { as: viewer, body: { numbers: ['9812345678', '9812345679'] } };
    expect((await fixture.call('POST', `${url}/check`, check)).body.data).toEqual({ listed: ['+919812345678'] });
    const removed = await fixture.call('DELETE', `${url}/%2B442079460958`, { as: admin });
    expect(removed.body.data).toEqual({ e164: '+442079460958', removed: true });
    for (const number of ['%2B442079460958', 'nonsense', '%00']) {
      const again = await fixture.call('DELETE', `${url}/${number}`, { as: admin });
      expect([again.status, again.body.code]).toEqual([404, 'NOT_ON_DO_NOT_CALL']);
    }
    const { entries } = (await fixture.call('GET', '/audit?limit=3')).body.data;
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      'do_not_call.removed',
      'do_not_call.added',
      'do_not_call.added',
    ]);
  });

  it('belongs to one workspace', async () => {
    await add(['+919812340001']);
    const as = await fixture.addWorkspace();
    const body = { numbers: ['+919812340001'] };
    expect((await fixture.call('POST', `${url}/check`, { as, body })).body.data).toEqual({ listed: [] });
    expect((await fixture.call('DELETE', `${url}/%2B919812340001`, { as })).status).toBe(404);
  });

  it('rejects invalid numbers by index without repeating them', async () => {
    const { status, body } = await add(['+919812345678', '911', 'ring me']);
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.details.map(({ path }: { path: string }) => path)).toEqual(['numbers.1', 'numbers.2']);
    expect(JSON.stringify(body)).not.toContain('ring me');
    expect((await add([])).status).toBe(400);
    expect((await add(Array.from({ length: 1001 }, () => '+919812345678'))).status).toBe(400);
  });

  it('accepts a thousand numbers at once', async () => {
    const numbers = Array.from({ length: 1000 }, (_, i) => `+9170000${String(i).padStart(5, '0')}`);
    expect((await add(numbers)).body.data).toEqual({ added: 1000 });
  });
});
