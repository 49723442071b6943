import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listAudit } from '../../storage/queries/audit.ts';
import { getDelivery, recordAttempt } from '../../storage/queries/deliveries.ts';
import { WEBHOOK_EXAMPLES } from '../../storage/queries/webhook-events.ts';
import { liveWebhookSecrets, MAX_WEBHOOKS_PER_WORKSPACE } from '../../storage/queries/webhooks.ts';
import { webhookSecretContext } from '../../storage/secret-contexts.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const HOOK_URL = 'https://hooks.example.com/tandem?token=a';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
// Keeps below the limit of webhooks per workspace.
afterEach(() => fixture.sql`update webhook_subscriptions set deleted_at = now()`);

async function create(body: object = {}, as: Member = fixture.owner) {
  const answer = await fixture.call('POST', '/webhooks', {
    as,
    body: { url: HOOK_URL, events: ['stt.failed'], ...body },
  });
  return answer;
}

async function secretsOf(id: string): Promise<string[]> {
  const sealed = await liveWebhookSecrets(fixture.sql, { webhookId: id, now: fixture.now.current });
  return sealed.map((secret) => fixture.secrets.open(secret, webhookSecretContext(id)));
}

describe('POST /webhooks', () => {
  it('creates a webhook, and returns its generated secret only once', async () => {
    const { status, body } = await create({ events: ['stt.completed', 'stt.failed', 'stt.completed'] });
    expect(status).toBe(201);
    const { secret, ...webhook } = body.data;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      url: HOOK_URL,
      events: ['stt.completed', 'stt.failed'],
      status: 'active',
      disabled_reason: null,
      failing_since: null,
      created_at: '2026-01-02T03:04:05.678Z',
      updated_at: '2026-01-02T03:04:05.678Z',
    });
    expect(await secretsOf(webhook.id)).toEqual([secret]);
    expect((await fixture.call('GET', `/webhooks/${webhook.id}`)).body.data).toEqual(webhook);
    expect(fixture.logLines.join()).not.toContain(secret.slice(6));
  });

  it('stores a supplied secret encrypted, and never returns it', async () => {
    const secret = 'a secret of our own';
    const { status, body } = await create({ secret });
    expect(status).toBe(201);
    expect(body.data).not.toHaveProperty('secret');
    expect(await secretsOf(body.data.id)).toEqual([secret]);
    const rows = await fixture.sql`select * from webhook_secrets where subscription_id = ${body.data.id}`;
    expect(rows[0]?.secretEncrypted.includes(secret)).toBe(false);
  });

  it.each([
    ['no url', { url: undefined }, 'url'],
    ['a numeric url', { url: 7 }, 'url'],
    ['no events', { events: undefined }, 'events'],
    ['an empty list', { events: [] }, 'events'],
    ['an unknown event', { events: ['stt.completed', 'call.unheard'] }, 'events.1'],
    ['a null event', { events: [null] }, 'events.0'],
    ['a short secret', { secret: 'x'.repeat(15) }, 'secret'],
    ['a long secret', { secret: 'x'.repeat(257) }, 'secret'],
    ['a secret that libraries disagree on', { secret: 'ein Geheimnis für uns' }, 'secret'],
    ['a whsec_ secret without base64', { secret: 'whsec_no base64 at all' }, 'secret'],
    ['an unknown field', { status: 'active' }, 'status'],
  ])('answers 400 to %s', async (_name, changes, path) => {
    const { status, body } = await create(changes);
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.details[0].path).toBe(path);
  });

  it.each([
    'http://hooks.example.com/',
    'https://user:password@hooks.example.com/',
    'https://localhost/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://169.254.169.254/',
    'https://100.64.0.1/',
    'not a URL',
    '',
    `https://hooks.example.com/${'a'.repeat(2100)}`,
  ])('rejects the url %s', async (url) => {
    const { status, body } = await create({ url });
    expect([status, body.code]).toEqual([400, 'INVALID_WEBHOOK_URL']);
  });

  it('enforces the limit of webhooks per workspace', async () => {
    const member = await fixture.addWorkspace();
    for (let i = 0; i < MAX_WEBHOOKS_PER_WORKSPACE; i += 1) expect((await create({}, member)).status).toBe(201);
    const { status, body } = await create({}, member);
    expect([status, body.code]).toEqual([409, 'WEBHOOK_LIMIT_REACHED']);
  });
});

describe('access to webhooks', () => {
  it.each([['admin'], ['owner']] as const)('lets %s change webhooks', async (role) => {
    const as = await fixture.addMemberWith(role);
    expect((await create({}, as)).status).toBe(201);
  });

  it.each([['viewer'], ['member'], ['developer']] as const)('lets %s read only', async (role) => {
    const as = await fixture.addMemberWith(role);
    const { id } = (await create()).body.data;
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/deliveries`]) {
      expect((await fixture.call('GET', path, { as })).status).toBe(200);
    }
    const acts = [
      ['POST', '/webhooks'],
      ['PATCH', `/webhooks/${id}`],
      ['DELETE', `/webhooks/${id}`],
      ['POST', `/webhooks/${id}/test`],
      ['POST', `/webhooks/${id}/rotate-secret`],
      ['POST', `/webhooks/deliveries/${id}/replay`],
    ] as const;
    for (const [method, path] of acts) {
      const { status, body } = await fixture.call(method, path, { as });
      expect([status, body.code]).toEqual([403, 'FORBIDDEN']);
    }
  });

  it('answers 404 to other workspaces and for unknown ids', async () => {
    const { id } = (await create()).body.data;
    const delivery = (await fixture.call('POST', `/webhooks/${id}/test`)).body.data.id;
    const stranger = await fixture.addWorkspace();
    for (const [as, target] of [
      [stranger, id],
      [fixture.owner, UNKNOWN],
      [fixture.owner, 'nonsense'],
    ] as const) {
      const answers = [
        await fixture.call('GET', `/webhooks/${target}`, { as }),
        await fixture.call('PATCH', `/webhooks/${target}`, { as, body: { status: 'disabled' } }),
        await fixture.call('DELETE', `/webhooks/${target}`, { as }),
        await fixture.call('GET', `/webhooks/${target}/deliveries`, { as }),
        await fixture.call('POST', `/webhooks/${target}/test`, { as }),
        await fixture.call('POST', `/webhooks/${target}/rotate-secret`, { as }),
      ];
      expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
        answers.map(() => [404, 'WEBHOOK_NOT_FOUND']),
      );
      const replay = target === id ? delivery : target;
      const { status, body } = await fixture.call('POST', `/webhooks/deliveries/${replay}/replay`, { as });
      expect([status, body.code]).toEqual([404, 'DELIVERY_NOT_FOUND']);
    }
    expect((await fixture.call('GET', '/webhooks', { as: stranger })).body.data.webhooks).toEqual([]);
  });
});

it('GET /webhooks lists webhooks of the workspace by creation time, in pages', async () => {
  const member = await fixture.addWorkspace();
  const ids: string[] = [];
  for (let i = 0; i < 3; i += 1) {
    fixture.now.current = new Date(fixture.now.current.getTime() + 1);
    ids.push((await create({}, member)).body.data.id);
  }
  const { body } = await fixture.call('GET', '/webhooks?page=2&limit=2', { as: member });
  expect(body.data.webhooks.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2));
  expect(body.data.pagination).toEqual({ page: 2, limit: 2, total: 3, pages: 2 });
  expect(JSON.stringify(body)).not.toContain('secret');
});

describe('PATCH /webhooks/:id', () => {
  it('changes only the fields in the body', async () => {
    const { id } = (await create()).body.data;
    const events = await fixture.call('PATCH', `/webhooks/${id}`, { body: { events: ['voice.ready'] } });
    expect(events.body.data).toMatchObject({ url: HOOK_URL, events: ['voice.ready'], status: 'active' });
    const url = await fixture.call('PATCH', `/webhooks/${id}`, { body: { url: 'https://HOOKS.example.com/new#part' } });
    expect(url.body.data).toMatchObject({ url: 'https://hooks.example.com/new', events: ['voice.ready'] });
    const off = await fixture.call('PATCH', `/webhooks/${id}`, { body: { status: 'disabled' } });
    expect(off.body.data).toMatchObject({ status: 'disabled', disabled_reason: 'by_request' });
    const on = await fixture.call('PATCH', `/webhooks/${id}`, { body: { status: 'active' } });
    expect(on.body.data).toMatchObject({ status: 'active', disabled_reason: null, failing_since: null });
  });

  it.each([
    ['nothing', {}, 'VALIDATION_FAILED'],
    ['an unknown status', { status: 'paused' }, 'VALIDATION_FAILED'],
    ['an unknown event', { events: ['*'] }, 'VALIDATION_FAILED'],
    ['a secret, which requires its own route', { secret: 'x'.repeat(20) }, 'VALIDATION_FAILED'],
    ['an internal url', { url: 'https://10.0.0.1/' }, 'INVALID_WEBHOOK_URL'],
  ])('rejects %s and changes nothing', async (_name, body, code) => {
    const before = (await create()).body.data;
    const answer = await fixture.call('PATCH', `/webhooks/${before.id}`, { body });
    expect([answer.status, answer.body.code]).toEqual([400, code]);
    const { secret: _, ...webhook } = before;
    expect((await fixture.call('GET', `/webhooks/${before.id}`)).body.data).toEqual(webhook);
  });
});

it('DELETE /webhooks/:id deletes a webhook once', async () => {
  const { id } = (await create()).body.data;
  expect((await fixture.call('DELETE', `/webhooks/${id}`)).body.data).toEqual({ id, deleted: true });
  expect((await fixture.call('GET', `/webhooks/${id}`)).status).toBe(404);
  expect((await fixture.call('DELETE', `/webhooks/${id}`)).status).toBe(404);
});

describe('POST /webhooks/:id/test', () => {
  it('sends an example of the first event, marked as a test, and returns the delivery', async () => {
    const { id } = (await create({ events: ['voice.ready', 'stt.failed'] })).body.data;
    const { status, body } = await fixture.call('POST', `/webhooks/${id}/test`);
    expect(status).toBe(202);
    expect(body.data).toEqual({
      id: expect.any(String),
      subscription_id: id,
      message_id: expect.any(String),
      event: 'voice.ready',
      status: 'pending',
      attempts: 0,
      last_http_status: null,
      last_error: null,
      next_attempt_at: fixture.now.current.toISOString(),
      replay_of: null,
      created_at: fixture.now.current.toISOString(),
      delivered_at: null,
    });
    const row = await getDelivery(fixture.sql, body.data.id);
    expect(JSON.parse(row?.body ?? '')).toEqual({
      event: 'voice.ready',
      timestamp: fixture.now.current.toISOString(),
      data: { ...WEBHOOK_EXAMPLES['voice.ready'], test: true },
    });
    expect(fixture.enqueued).toContain(body.data.id);
  });

  it('sends the requested event', async () => {
    const { id } = (await create()).body.data;
    const asked = await fixture.call('POST', `/webhooks/${id}/test`, { body: { event: 'tts.completed' } });
    expect(asked.body.data.event).toBe('tts.completed');
    const unknown = await fixture.call('POST', `/webhooks/${id}/test`, { body: { event: 'call.unheard' } });
    expect([unknown.status, unknown.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('fails while the webhook is disabled', async () => {
    const { id } = (await create()).body.data;
    await fixture.call('PATCH', `/webhooks/${id}`, { body: { status: 'disabled' } });
    const { status, body } = await fixture.call('POST', `/webhooks/${id}/test`);
    expect([status, body.code]).toEqual([409, 'WEBHOOK_DISABLED']);
  });
});

describe('webhook delivery log', () => {
  async function delivered(id: string) {
    const { body } = await fixture.call('POST', `/webhooks/${id}/test`);
    const attempt = { deliveryId: body.data.id as string, startedAt: fixture.now.current, durationMs: 84 };
    const nextAttemptAt = new Date(fixture.now.current.getTime() + 5_000);
    const outcome = { kind: 'retry', nextAttemptAt } as const;
    await recordAttempt(fixture.sql, { ...attempt, httpStatus: 503, error: 'status_not_2xx', outcome });
    await recordAttempt(fixture.sql, { ...attempt, httpStatus: 204, error: null, outcome: { kind: 'delivered' } });
    return attempt.deliveryId;
  }

  it('lists payloads and attempts, newest first', async () => {
    const { id } = (await create()).body.data;
    const first = await delivered(id);
    fixture.now.current = new Date(fixture.now.current.getTime() + 1_000);
    const second = (await fixture.call('POST', `/webhooks/${id}/test`)).body.data.id;
    const { body } = await fixture.call('GET', `/webhooks/${id}/deliveries`);
    expect(body.data.pagination).toMatchObject({ total: 2 });
    expect(body.data.deliveries.map((it: { id: string }) => it.id)).toEqual([second, first]);
    expect(body.data.deliveries[0].log).toEqual([]);
    const at = new Date(fixture.now.current.getTime() - 1_000).toISOString();
    expect(body.data.deliveries[1]).toMatchObject({ status: 'delivered', attempts: 2, last_http_status: 204 });
    expect(body.data.deliveries[1].log).toEqual([
      { attempt: 1, http_status: 503, error: 'status_not_2xx', started_at: at, duration_ms: 84 },
      { attempt: 2, http_status: 204, error: null, started_at: at, duration_ms: 84 },
    ]);
  });

  it('supports pages and filters by status and event', async () => {
    const { id } = (await create()).body.data;
    const first = await delivered(id);
    const second = (await fixture.call('POST', `/webhooks/${id}/test`, { body: { event: 'tts.failed' } })).body.data.id;
    const ids = async (query: string) => {
      const { body } = await fixture.call('GET', `/webhooks/${id}/deliveries?${query}`);
      return body.data.deliveries.map((it: { id: string }) => it.id);
    };
    expect(await ids('status=delivered')).toEqual([first]);
    expect(await ids('status=pending')).toEqual([second]);
    expect(await ids('event=tts.failed')).toEqual([second]);
    expect(await ids('event=stt.failed&status=pending')).toEqual([]);
    expect(await ids('page=2&limit=1')).toHaveLength(1);
    expect((await fixture.call('GET', `/webhooks/${id}/deliveries?status=lost`)).status).toBe(400);
  });

  it('replays into a new delivery with the same message id', async () => {
    const { id } = (await create()).body.data;
    const deliveryId = await delivered(id);
    const { status, body } = await fixture.call('POST', `/webhooks/deliveries/${deliveryId}/replay`);
    expect(status).toBe(202);
    const old = await getDelivery(fixture.sql, deliveryId);
    expect(body.data).toMatchObject({
      message_id: old?.eventId,
      replay_of: deliveryId,
      status: 'pending',
      attempts: 0,
    });
    expect(fixture.enqueued).toContain(body.data.id);
    await fixture.call('PATCH', `/webhooks/${id}`, { body: { status: 'disabled' } });
    const refused = await fixture.call('POST', `/webhooks/deliveries/${deliveryId}/replay`);
    expect([refused.status, refused.body.code]).toEqual([409, 'WEBHOOK_DISABLED']);
  });
});

describe('POST /webhooks/:id/rotate-secret', () => {
  it('generates a secret, shown once, that signs beside the old one for a day', async () => {
    const created = (await create()).body.data;
    const { status, body } = await fixture.call('POST', `/webhooks/${created.id}/rotate-secret`);
    expect(status).toBe(200);
    expect(body.data.secret).toMatch(/^whsec_/);
    expect(body.data.secret).not.toBe(created.secret);
    const endsMs = fixture.now.current.getTime() + 86_400_000;
    expect(body.data.previous_secret_expires_at).toBe(new Date(endsMs).toISOString());
    expect(await secretsOf(created.id)).toEqual([body.data.secret, created.secret]);
  });

  it('accepts a supplied secret and an overlap, even of zero', async () => {
    const { id } = (await create()).body.data;
    const secret = 'another secret of ours';
    const { body } = await fixture.call('POST', `/webhooks/${id}/rotate-secret`, {
      body: { secret, overlap_seconds: 0 },
    });
    expect(body.data).not.toHaveProperty('secret');
    expect(body.data.previous_secret_expires_at).toBe(fixture.now.current.toISOString());
    expect(await secretsOf(id)).toEqual([secret]);
  });

  it.each([{ overlap_seconds: -1 }, { overlap_seconds: 604_801 }, { overlap_seconds: 1.5 }, { secret: 'short' }])(
    'rejects %j',
    async (body) => {
      const created = (await create()).body.data;
      const answer = await fixture.call('POST', `/webhooks/${created.id}/rotate-secret`, { body });
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(await secretsOf(created.id)).toEqual([created.secret]);
    },
  );
});

it('every webhook change appears in the audit log with its actor and without secrets', async () => {
  const member = await fixture.addWorkspace();
  const as = { as: member };
  const { id, secret } = (await create({}, member)).body.data;
  await fixture.call('PATCH', `/webhooks/${id}`, { ...as, body: { events: ['tts.failed'] } });
  const rotated = await fixture.call('POST', `/webhooks/${id}/rotate-secret`, as);
  const test = await fixture.call('POST', `/webhooks/${id}/test`, as);
  await fixture.call('POST', `/webhooks/deliveries/${test.body.data.id}/replay`, as);
  await fixture.call('DELETE', `/webhooks/${id}`, as);
  await fixture.call('DELETE', `/webhooks/${randomUUID()}`, as);
  const { rows } = await listAudit(fixture.sql, { workspaceId: member.workspaceId }, { page: 1, limit: 100 });
  const ours = rows.filter(({ targetType }) => targetType === 'webhook').reverse();
  expect(ours.map(({ action }) => action)).toEqual([
    'webhook.created',
    'webhook.updated',
    'webhook.secret_rotated',
    'webhook.replayed',
    'webhook.deleted',
  ]);
  for (const row of ours) {
    expect(row).toMatchObject({ targetId: id, actorUserId: member.userId, actorApiKeyId: member.keyId });
    expect(row.requestId).toMatch(/^[\w.:-]+$/);
  }
  const text = JSON.stringify(ours, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
  for (const hidden of [secret, rotated.body.data.secret]) expect(text).not.toContain(hidden);
});
