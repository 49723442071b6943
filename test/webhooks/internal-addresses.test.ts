import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { createWebhookDesk } from '../../actors/webhooks/webhook-desk.actor.ts';
import { getDelivery } from '../../storage/queries/deliveries.ts';
import { listWebhooks } from '../../storage/queries/webhooks.ts';
import { createWebhookFixture, type WebhookFixture } from './webhook-fixture.ts';

const PUBLIC = '93.184.215.14';
let answers: string[];
let asked: string[];
const resolve = async (name: string) => {
  asked.push(name);
  return answers;
};

let fixture: WebhookFixture;
beforeAll(async () => {
  fixture = await createWebhookFixture({ resolve });
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  answers = [PUBLIC];
  asked = [];
});

/** Creates a webhook under an operator's allow-list, which is empty by default. */
async function create(url: string, allow: string[] = []) {
  const { sql, secrets, deliverer, by } = fixture;
  const desk = createWebhookDesk({ sql, secrets, deliverer, resolve, allowCidrs: parseCidrs(allow) });
  return (await desk.create({ url, events: ['stt.failed'], secret: null, by })).webhook;
}

const INSIDE = [
  ['plain http', 'http://hooks.example.com/'],
  ['a user and password', 'https://user:secret@hooks.example.com/'],
  ['localhost', 'https://localhost/'],
  ['an internal name', 'https://metadata.google.internal/'],
  ['a single label', 'https://intranet/'],
  ['loopback', 'https://127.0.0.1/'],
  ['decimal loopback', 'https://2130706433/'],
  ['octal loopback', 'https://0177.0.0.1/'],
  ['hex loopback', 'https://0x7f.0.0.1/'],
  ['short loopback', 'https://127.1/'],
  ['private', 'https://10.0.0.1/'],
  ['cloud metadata', 'https://169.254.169.254/latest/meta-data/'],
  ['decimal cloud metadata', 'https://2852039166/'],
  ['carrier-grade NAT', 'https://100.64.0.1/'],
  ['the end of carrier-grade NAT', 'https://100.127.255.255/'],
  ['unspecified', 'https://0.0.0.0/'],
  ['bracketed loopback', 'https://[::1]/'],
  ['IPv4-mapped loopback', 'https://[::ffff:127.0.0.1]/'],
  ['IPv4-mapped metadata in hex', 'https://[::ffff:a9fe:a9fe]/'],
  ['NAT64 loopback', 'https://[64:ff9b::7f00:1]/'],
  ['NAT64 metadata', 'https://[64:ff9b::169.254.169.254]/'],
  ['unique local', 'https://[fd00::1]/'],
  ['link-local', 'https://[fe80::1]/'],
] as const;

describe('webhook URL at creation', () => {
  test.each(INSIDE)('fails for an internal address: %s: %s', async (_name, url) => {
    await expect(create(url)).rejects.toMatchObject({
      code: 'INVALID_WEBHOOK_URL',
      status: 400,
      message: expect.stringMatching(/^url /),
    });
  });

  test.each([
    ['private', ['10.0.0.1']],
    ['public and private', [PUBLIC, '192.168.0.1']],
    ['IPv4-mapped', ['::ffff:127.0.0.1']],
    ['NAT64', ['64:ff9b::a00:1']],
    ['carrier-grade NAT', ['100.64.1.1']],
    ['cloud metadata', ['169.254.169.254']],
    ['nothing', []],
  ])('fails for a name that resolves to %s', async (_name, addresses) => {
    answers = addresses;
    await expect(create('https://hooks.example.com/')).rejects.toMatchObject({ code: 'INVALID_WEBHOOK_URL' });
  });

  test('leaves nothing behind when rejected', async () => {
    const { sql, by } = fixture;
    const before = await listWebhooks(sql, by, { page: 1, limit: 1 });
    await expect(create('https://127.0.0.1/')).rejects.toThrow();
    expect((await listWebhooks(sql, by, { page: 1, limit: 1 })).total).toBe(before.total);
  });

  test('gets the same check when changed', async () => {
    const { sql, secrets, deliverer, by } = fixture;
    const { id, url } = await create('https://hooks.example.com/');
    const desk = createWebhookDesk({ sql, secrets, deliverer, resolve, allowCidrs: [] });
    const patch = { url: 'https://[::ffff:10.0.0.1]/' };
    await expect(desk.update({ id, patch, by })).rejects.toMatchObject({ code: 'INVALID_WEBHOOK_URL' });
    expect((await desk.update({ id, patch: { events: ['tts.failed'] }, by })).url).toBe(url);
  });

  test('may be internal when the operator allows its network', async () => {
    expect((await create('http://10.1.2.3:8080/hook', ['10.0.0.0/8'])).url).toBe('http://10.1.2.3:8080/hook');
    answers = ['10.1.2.3'];
    expect((await create('http://receiver/hook', ['10.0.0.0/8'])).url).toBe('http://receiver/hook');
    await expect(create('http://10.1.2.3/', ['192.168.0.0/16'])).rejects.toMatchObject({ code: 'INVALID_WEBHOOK_URL' });
  });
});

test('an unavailable name server causes a retryable error instead of a rejected URL', async () => {
  const { sql, secrets, deliverer, by } = fixture;
  const away = async () => {
    throw Object.assign(new Error('queryA ESERVFAIL'), { code: 'ESERVFAIL' });
  };
  const desk = createWebhookDesk({ sql, secrets, deliverer, resolve: away, allowCidrs: [] });
  const request = { url: 'https://hooks.example.com/', events: ['stt.failed'], secret: null, by } as const;
  await expect(desk.create(request)).rejects.toMatchObject({ code: 'WEBHOOK_URL_UNREACHABLE', status: 503 });
});

describe('webhook URL at delivery', () => {
  let receiver: Awaited<ReturnType<WebhookFixture['openReceiver']>>;
  beforeAll(async () => {
    receiver = await fixture.openReceiver();
  });
  beforeEach(async () => {
    await fixture.sql`update webhook_subscriptions set deleted_at = now()`;
  });

  test.each([
    ['loopback', '127.0.0.1'],
    ['IPv4-mapped loopback', '::ffff:127.0.0.1'],
    ['NAT64 loopback', '64:ff9b::7f00:1'],
    ['cloud metadata', '169.254.169.254'],
    ['carrier-grade NAT', '100.64.0.1'],
  ])('fails for a public name rebound to %s', async (_name, address) => {
    const port = new URL(receiver.url).port;
    await create(`https://hooks.example.com:${port}/`);
    const [id = ''] = await fixture.emit();
    answers = [address];
    await fixture.openDeliverer({ allowCidrs: [] }).sweep();
    expect(await getDelivery(fixture.sql, id)).toMatchObject({
      status: 'pending',
      attempts: 1,
      lastError: 'url_refused',
      lastHttpStatus: null,
    });
    expect(receiver.requests).toEqual([]);
  });

  test('resolves once and connects to the checked address, with the name as Host', async () => {
    const port = new URL(receiver.url).port;
    answers = ['127.0.0.1'];
    await create(`http://rebinding.example.com:${port}/`, ['127.0.0.0/8']);
    await fixture.emit();
    asked = [];
    await fixture.deliverer.sweep();
    expect(asked).toEqual(['rebinding.example.com']);
    expect(receiver.requests[0]?.headers.host).toBe(`rebinding.example.com:${port}`);
  });

  test('fails on a redirect to an internal address without following it', async () => {
    const inside = await fixture.openReceiver();
    const outside = await fixture.openReceiver(
      ({ response }) => void response.writeHead(302, { location: inside.url }).end(),
    );
    await create(outside.url, ['127.0.0.0/8']);
    const [id = ''] = await fixture.emit();
    await fixture.deliverer.sweep();
    expect(await getDelivery(fixture.sql, id)).toMatchObject({ lastHttpStatus: 302, lastError: 'redirect_refused' });
    expect(inside.requests).toEqual([]);
  });
});
