import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getTrunk } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

let series = 0;
/** A funded workspace with a trunk of three numbers, the first of them rented. */
async function provisioned(): Promise<{ member: Member; trunkId: string; numbers: [string, string, string] }> {
  const { workspace } = await seedWorkspace(fixture.sql);
  const member = await fixture.addMemberWith('admin', workspace.id);
  const stem = `+91224${String(++series).padStart(5, '0')}`;
  const numbers: [string, string, string] = [`${stem}01`, `${stem}02`, `${stem}03`];
  const { id } = await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers });
  return { member, trunkId: id, numbers };
}

describe('the pool', () => {
  it('of a workspace without trunk is not provisioned and empty', async () => {
    const { body } = await fixture.call('GET', '/dialer/pool');
    expect(body.data).toEqual({
      provisioned: false,
      counts: { available: 0, assigned: 0, reserved: 0 },
      available: [],
      allocated: [],
    });
  });

  it('tells what can be rented and what is', async () => {
    const { member, numbers } = await provisioned();
    const { body } = await fixture.call('GET', '/dialer/pool', { as: member });
    expect(body.data).toEqual({
      provisioned: true,
      counts: { available: 2, assigned: 1, reserved: 0 },
      available: numbers.slice(1),
      allocated: numbers.slice(0, 1),
    });
  });
});

describe('numbers', () => {
  it('are searched, rented, listed and released', async () => {
    const { member, trunkId, numbers } = await provisioned();
    const as = { as: member };
    const found = await fixture.call('GET', `/dialer/numbers/available?pattern=${numbers[1].slice(-4)}&limit=5`, as);
    expect(found.body.data.numbers.map(({ e164 }: { e164: string }) => e164)).toEqual([numbers[1]]);
    const encoded = await fixture.call('GET', `/dialer/numbers/available?pattern=+91*03`, as);
    expect(encoded.body.data.numbers.map(({ e164 }: { e164: string }) => e164)).toEqual([numbers[2]]);

    const rented = await fixture.call('POST', '/dialer/numbers', { ...as, body: { e164: numbers[1] } });
    expect(rented.status).toBe(201);
    expect(rented.body.data).toEqual({
      e164: numbers[1],
      status: 'assigned',
      outbound_trunk_id: trunkId,
      monthly_price_usd: 0,
      rented_at: fixture.now.current.toISOString(),
    });
    const again = await fixture.call('POST', '/dialer/numbers', { ...as, body: { e164: numbers[1] } });
    expect([again.status, again.body.code]).toEqual([409, 'NUMBER_NOT_AVAILABLE']);
    const list = await fixture.call('GET', '/dialer/numbers', as);
    expect(list.body.data.pagination).toEqual({ page: 1, limit: 20, total: 2, pages: 1 });

    const released = await fixture.call('DELETE', `/dialer/numbers/${encodeURIComponent(numbers[1])}`, as);
    expect([released.status, released.body.data]).toEqual([
      200,
      { e164: numbers[1], status: 'released', released_at: fixture.now.current.toISOString() },
    ]);
    const gone = await fixture.call('DELETE', `/dialer/numbers/${encodeURIComponent(numbers[1])}`, as);
    expect([gone.status, gone.body.code]).toEqual([404, 'NUMBER_NOT_FOUND']);
  });

  it('cannot be released during a call', async () => {
    const { member, numbers } = await provisioned();
    await seedCall(fixture, { by: member });
    const { status, body } = await fixture.call('DELETE', `/dialer/numbers/%2B${numbers[0].slice(1)}`, { as: member });
    expect([status, body.code]).toEqual([409, 'NUMBER_IN_USE']);
  });

  it.each([
    [{}, 'VALIDATION_FAILED'],
    [{ e164: 5 }, 'VALIDATION_FAILED'],
    [{ e164: '12' }, 'INVALID_NUMBER'],
    [{ e164: '+912249999999', extra: 1 }, 'VALIDATION_FAILED'],
  ])('are not rented by %j', async (sent, code) => {
    const { member } = await provisioned();
    const { status, body } = await fixture.call('POST', '/dialer/numbers', { as: member, body: sent });
    expect([status, body.code]).toEqual([400, code]);
  });

  it('that no trunk carries are not found', async () => {
    const { member } = await provisioned();
    const { body } = await fixture.call('POST', '/dialer/numbers', { as: member, body: { e164: '+912249999999' } });
    expect(body.code).toBe('NUMBER_NOT_FOUND');
    expect((await fixture.call('DELETE', '/dialer/numbers/nonsense', { as: member })).body.code).toBe(
      'NUMBER_NOT_FOUND',
    );
  });

  it('need a trunk', async () => {
    for (const [method, url, body] of [
      ['POST', '/dialer/numbers', { e164: '+912240000001' }],
      ['DELETE', '/dialer/numbers/%2B912240000001', undefined],
      ['PUT', '/dialer/caller-id', { caller_id: '+912240000001' }],
    ] as const) {
      const answer = await fixture.call(method, url, { body });
      expect([answer.status, answer.body.code]).toEqual([409, 'DIALER_NOT_PROVISIONED']);
    }
  });
});

describe('the caller ID', () => {
  it('is a number the workspace has rented', async () => {
    const { member, numbers } = await provisioned();
    const saved = await fixture.call('PUT', '/dialer/caller-id', { as: member, body: { caller_id: numbers[0] } });
    expect([saved.status, saved.body]).toEqual([200, { success: true, data: { default_caller_id: numbers[0] } }]);
    const notRented = await fixture.call('PUT', '/dialer/caller-id', { as: member, body: { caller_id: numbers[1] } });
    expect([notRented.status, notRented.body.code]).toEqual([403, 'CALLER_ID_NOT_OWNED']);
    const malformed = await fixture.call('PUT', '/dialer/caller-id', { as: member, body: { caller_id: 'me' } });
    expect([malformed.status, malformed.body.code]).toEqual([400, 'INVALID_NUMBER']);
  });
});

describe('trunks', () => {
  const NEW = { name: 'Carrier', sip_uri: 'sip:carrier.example:5060' };

  it('are created with defaults, and their password is never shown again', async () => {
    const body = { ...NEW, username: 'tandem', password: 'hunter2-hunter2', price_per_minute_usd: 0.012345678 };
    const created = await fixture.call('POST', '/dialer/trunks', { body });
    expect(created.status).toBe(201);
    const trunk = created.body.data;
    expect(trunk).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Carrier',
      sip_uri: 'sip:carrier.example:5060',
      transport: 'udp',
      username: 'tandem',
      register: false,
      codecs: ['PCMU', 'PCMA'],
      media_encryption: 'none',
      channels: 10,
      allowed_prefixes: [],
      numbers: [],
      status: 'active',
      default_caller_id: null,
      price_per_minute_usd: 0.012345678,
      created_at: fixture.now.current.toISOString(),
    });
    const row = await getTrunk(fixture.sql, { id: trunk.id, workspaceId: fixture.owner.workspaceId });
    expect(fixture.secrets.open(row!.passwordEncrypted!, trunkPasswordContext(trunk.id))).toBe('hunter2-hunter2');
    expect(row!.pricePerMinuteNano).toBe(12_345_678n);

    const shown = await fixture.call('GET', `/dialer/trunks/${trunk.id}`);
    expect(shown.body.data).toEqual(trunk);
    expect(shown.raw.includes('hunter2')).toBe(false);
    const list = await fixture.call('GET', '/dialer/trunks');
    expect(list.body.data.pagination.total).toBe(1);

    const patch = {
      channels: 30,
      media_encryption: 'required',
      password: null,
      numbers: ['+91 22 4123 4567'],
      status: 'disabled',
    };
    const changed = await fixture.call('PATCH', `/dialer/trunks/${trunk.id}`, { body: patch });
    expect(changed.body.data).toMatchObject({
      ...trunk,
      channels: 30,
      media_encryption: 'required',
      numbers: ['+912241234567'],
      status: 'disabled',
    });
    const after = await getTrunk(fixture.sql, { id: trunk.id, workspaceId: fixture.owner.workspaceId });
    expect(after!.passwordEncrypted).toBeNull();

    const deleted = await fixture.call('DELETE', `/dialer/trunks/${trunk.id}`);
    expect(deleted.body.data).toEqual({ id: trunk.id, deleted: true });
    expect((await fixture.call('GET', `/dialer/trunks/${trunk.id}`)).body.code).toBe('TRUNK_NOT_FOUND');
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['no name', { sip_uri: NEW.sip_uri }, 'name'],
    ['an empty name', { ...NEW, name: '' }, 'name'],
    ['a name with NUL', { ...NEW, name: 'a\0' }, 'name'],
    ['a name with half a surrogate pair', { ...NEW, name: '\ud83d' }, 'name'],
    ['a password with half a surrogate pair', { ...NEW, password: '\ud83d' }, 'password'],
    ['an http URI', { ...NEW, sip_uri: 'http://carrier.example' }, 'sip_uri'],
    ['a URI with a user part', { ...NEW, sip_uri: 'sip:me@carrier.example' }, 'sip_uri'],
    ['a URI with a header', { ...NEW, sip_uri: 'sip:carrier.example\r\nX: 1' }, 'sip_uri'],
    ['a URI with port 0', { ...NEW, sip_uri: 'sip:carrier.example:0' }, 'sip_uri'],
    ['a URI with port 65536', { ...NEW, sip_uri: 'sip:carrier.example:65536' }, 'sip_uri'],
    ['another transport', { ...NEW, transport: 'tls' }, 'transport'],
    ['a username that breaks out of its quotes', { ...NEW, username: 'a", uri="b' }, 'username'],
    ['another codec', { ...NEW, codecs: ['opus'] }, 'codecs.0'],
    ['another media encryption', { ...NEW, media_encryption: 'dtls' }, 'media_encryption'],
    ['no codec', { ...NEW, codecs: [] }, 'codecs'],
    ['comfort noise alone', { ...NEW, codecs: ['CN'] }, 'codecs'],
    ['half a channel', { ...NEW, channels: 0.5 }, 'channels'],
    ['channels as text', { ...NEW, channels: '5' }, 'channels'],
    ['a prefix without plus', { ...NEW, allowed_prefixes: ['91'] }, 'allowed_prefixes.0'],
    ['a malformed number', { ...NEW, numbers: ['+912241234567', 'x'] }, 'numbers.1'],
    ['a negative price', { ...NEW, price_per_minute_usd: -0.01 }, 'price_per_minute_usd'],
    ['a price with ten decimals', { ...NEW, price_per_minute_usd: 0.0000000001 }, 'price_per_minute_usd'],
    ['an unknown field', { ...NEW, owner: 'me' }, 'owner'],
  ])('are not created with %s', async (_name, body, path) => {
    const answer = await fixture.call('POST', '/dialer/trunks', { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.details.map((detail: { path: string }) => detail.path)).toContain(path);
  });

  it.each<[Record<string, unknown>, string[]]>([
    [
      { ...NEW, sip_uri: 'http://carrier.example' },
      ['sip_uri is invalid. Expected: `sip:host` or `sip:host:port`. The dialed number becomes the user part.'],
    ],
    [
      { ...NEW, username: '"' },
      [
        'username is invalid. Expected: User name for Digest authentication. Printable ASCII, without quotation marks and backslashes.',
      ],
    ],
    [{ ...NEW, username: 5 }, ['username must be a string.']],
    [
      { ...NEW, password: 'a\nb' },
      ['password is invalid. Expected: Password for Digest authentication. No control characters.'],
    ],
    [
      { ...NEW, allowed_prefixes: ['91'] },
      ['allowed_prefixes.0 is invalid. Expected: Prefix in E.164 format, such as +91.'],
    ],
    [{ name: 5, sip_uri: 5 }, ['name must be a string.', 'sip_uri must be a string.']],
  ])('created from %j are refused in words for a person', async (body, messages) => {
    const answer = await fixture.call('POST', '/dialer/trunks', { body });
    expect(answer.body.message).toBe(messages[0]);
    const said = answer.body.details.map(
      ({ path, message }: { path: string; message: string }) => `${path} ${message}.`,
    );
    expect(said).toEqual(messages);
  });

  it('present by default one of their own numbers, or none', async () => {
    const { member, trunkId, numbers } = await provisioned();
    const change = (body: object) => fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body });
    expect((await change({ default_caller_id: numbers[1] })).body.data.default_caller_id).toBe(numbers[1]);
    expect((await change({ default_caller_id: null })).body.data.default_caller_id).toBeNull();
    const refused = [
      await change({ default_caller_id: '+912249999999' }),
      await change({ default_caller_id: numbers[1], numbers: [numbers[0]] }),
      await fixture.call('POST', '/dialer/trunks', { as: member, body: { ...NEW, default_caller_id: numbers[0] } }),
    ];
    for (const { status, body } of refused) {
      expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(body.details).toEqual([{ path: 'default_caller_id', message: "must be one of the trunk's numbers" }]);
    }
  });

  it('are changed by at least one field', async () => {
    const { member, trunkId } = await provisioned();
    const { body } = await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body: {} });
    expect(body.details).toEqual([{ path: 'body', message: 'must have at least one field' }]);
  });

  it('are seen and changed by admins and owners alone, and only their own', async () => {
    const { member, trunkId } = await provisioned();
    const developer = await fixture.addMemberWith('developer', member.workspaceId);
    const url = `/dialer/trunks/${trunkId}`;
    expect((await fixture.call('GET', '/dialer/trunks', { as: developer })).body.code).toBe('FORBIDDEN');
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { channels: 1 }],
      ['DELETE', undefined],
    ] as const) {
      expect((await fixture.call(method, url, { as: developer, body })).body.code).toBe('FORBIDDEN');
      expect((await fixture.call(method, url, { body })).body.code).toBe('TRUNK_NOT_FOUND');
    }
    expect((await fixture.call('PATCH', url, { as: member, body: {} })).body.code).toBe('VALIDATION_FAILED');
    await seedCall(fixture, { by: member });
    expect((await fixture.call('DELETE', url, { as: member })).body.code).toBe('TRUNK_IN_USE');
    for (const id of ['nothing', '%00', "'--"]) {
      expect((await fixture.call('GET', `/dialer/trunks/${id}`)).body.code).toBe('TRUNK_NOT_FOUND');
      expect((await fixture.call('DELETE', `/dialer/trunks/${id}`)).body.code).toBe('TRUNK_NOT_FOUND');
    }
  });
});
