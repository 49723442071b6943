import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyNumber } from '../../storage/queries/number-claims.ts';
import { recordTrunkHealth } from '../../storage/queries/trunk-health.ts';
import { leaseRegistrations, recordRegistration } from '../../storage/queries/trunk-registrations.ts';
import { getTrunk } from '../../storage/queries/trunks.ts';
import { trunkInboundPasswordContext, trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { callWith, sessionOf } from './identity-fixture.ts';
import { seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

let series = 0;
/** A funded workspace with a trunk of three numbers, the first one rented. */
async function provisioned(): Promise<{ member: Member; trunkId: string; numbers: [string, string, string] }> {
  const { workspace } = await seedWorkspace(fixture.sql);
  const member = await fixture.addMemberWith('admin', workspace.id);
  const stem = `+91224${String(++series).padStart(5, '0')}`;
  const numbers: [string, string, string] = [`${stem}01`, `${stem}02`, `${stem}03`];
  const { id } = await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers });
  return { member, trunkId: id, numbers };
}

describe('GET /dialer/pool', () => {
  it('returns an empty, unprovisioned pool to a workspace without trunk', async () => {
    const { body } = await fixture.call('GET', '/dialer/pool');
    expect(body.data).toEqual({
      provisioned: false,
      counts: { available: 0, assigned: 0, reserved: 0 },
      available: [],
      allocated: [],
    });
  });

  it('returns available and rented numbers', async () => {
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
  it('can be searched, rented, listed and released', async () => {
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
      inbound: null,
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
  ])('reject a rent with %j', async (sent, code) => {
    const { member } = await provisioned();
    const { status, body } = await fixture.call('POST', '/dialer/numbers', { as: member, body: sent });
    expect([status, body.code]).toEqual([400, code]);
  });

  it('answer 404 when no trunk carries them', async () => {
    const { member } = await provisioned();
    const { body } = await fixture.call('POST', '/dialer/numbers', { as: member, body: { e164: '+912249999999' } });
    expect(body.code).toBe('NUMBER_NOT_FOUND');
    expect((await fixture.call('DELETE', '/dialer/numbers/nonsense', { as: member })).body.code).toBe(
      'NUMBER_NOT_FOUND',
    );
  });

  it('require a trunk', async () => {
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

describe('claimed numbers of a trunk', () => {
  const CLAIMED = '+912249100001';
  const listing = (as: Member | undefined, numbers: string[]) =>
    fixture.call('POST', '/dialer/trunks', {
      ...(as && { as }),
      body: { name: 'Claims', sip_uri: 'sip:carrier.example', numbers },
    });

  it('stay unavailable until verified, and open to other claims', async () => {
    const first = await fixture.addWorkspace();
    const second = await fixture.addWorkspace();
    const claims = [await listing(first, [CLAIMED]), await listing(second, [CLAIMED])];
    for (const { status, body } of claims) {
      expect(status).toBe(201);
      expect(body.data).toMatchObject({ numbers: [CLAIMED], unverified_numbers: [CLAIMED] });
    }
    const { body: pool } = await fixture.call('GET', '/dialer/pool', { as: first });
    expect(pool.data).toMatchObject({ counts: { available: 0 }, available: [] });
    const refused = await fixture.call('POST', '/dialer/numbers', { as: first, body: { e164: CLAIMED } });
    expect([refused.status, refused.body.code]).toEqual([409, 'NUMBER_NOT_VERIFIED']);

    const trunkId = claims[1]!.body.data.id;
    await verifyNumber(fixture.sql, { e164: CLAIMED, trunkId, by: 'operator', now: fixture.now.current });
    const rented = await fixture.call('POST', '/dialer/numbers', { as: second, body: { e164: CLAIMED } });
    expect([rented.status, rented.body.data.outbound_trunk_id]).toEqual([201, trunkId]);
    const beaten = await fixture.call('POST', '/dialer/numbers', { as: first, body: { e164: CLAIMED } });
    expect([beaten.status, beaten.body.code]).toEqual([409, 'NUMBER_NOT_VERIFIED']);
    const late = await listing(await fixture.addWorkspace(), [CLAIMED]);
    expect([late.status, late.body.code]).toEqual([409, 'NUMBER_NOT_AVAILABLE']);
  });

  it('verify at once on a trunk of the first workspace, despite earlier claims', async () => {
    const tenant = await fixture.addWorkspace();
    const e164 = '+912249100002';
    const { data: claim } = (await listing(tenant, [e164])).body;
    const { data: trunk } = (await listing(undefined, [e164])).body;
    expect(trunk).toMatchObject({ numbers: [e164], unverified_numbers: [] });
    const late = verifyNumber(fixture.sql, { e164, trunkId: claim.id, by: 'operator', now: fixture.now.current });
    await expect(late).rejects.toMatchObject({ code: 'NUMBER_NOT_AVAILABLE' });
    expect((await fixture.call('POST', '/dialer/numbers', { body: { e164 } })).status).toBe(201);
    // The tenant's claim does not block the owner's changes.
    const kept = await fixture.call('PATCH', `/dialer/trunks/${trunk.id}`, { body: { numbers: [e164] } });
    expect(kept.status).toBe(200);
    await fixture.call('DELETE', `/dialer/trunks/${trunk.id}`);
  });
});

describe('default caller ID', () => {
  it('must be a number that the workspace rents', async () => {
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

  it.each([
    ['the transport tls', { ...NEW, transport: 'tls' }],
    ['a sips URI', { ...NEW, sip_uri: 'sips:carrier.example' }],
  ])('use TLS with %s', async (_what, body) => {
    const { status, body: answer } = await fixture.call('POST', '/dialer/trunks', { body });
    expect(status).toBe(201);
    expect(answer.data).toMatchObject({ sip_uri: body.sip_uri, transport: 'tls' });
    const url = `/dialer/trunks/${answer.data.id}`;
    expect((await fixture.call('GET', url)).body.data.transport).toBe('tls');
    await fixture.call('DELETE', url);
  });

  it('reject another transport with a sips URI', async () => {
    const refused = { path: 'transport', message: 'must be tls, because sip_uri is a sips: URI' };
    const sips = { ...NEW, sip_uri: 'sips:carrier.example' };
    const created = await fixture.call('POST', '/dialer/trunks', { body: { ...sips, transport: 'udp' } });
    expect([created.status, created.body.details]).toEqual([400, [refused]]);
    const url = `/dialer/trunks/${(await fixture.call('POST', '/dialer/trunks', { body: sips })).body.data.id}`;
    const patched = await fixture.call('PATCH', url, { body: { transport: 'udp' } });
    expect([patched.status, patched.body.details]).toEqual([400, [refused]]);
    const moved = await fixture.call('PATCH', url, { body: { sip_uri: 'sip:carrier.example', transport: 'udp' } });
    expect(moved.body.data.transport).toBe('udp');
    await fixture.call('DELETE', url);
  });

  it('store the inbound account encrypted, replace it as a whole, and remove it with null', async () => {
    const trunk = { name: 'Office', sip_uri: 'sip:203.0.113.7' };
    const inbound_auth = { username: 'pbx', password: 'correct horse battery' };
    const added = await fixture.call('POST', '/dialer/trunks', { body: { ...trunk, inbound_auth } });
    expect(added.body.data.inbound_auth).toEqual({ username: 'pbx' });
    expect(added.raw.includes('correct horse')).toBe(false);
    const { id } = added.body.data;
    const stored = () => getTrunk(fixture.sql, { id, workspaceId: fixture.owner.workspaceId });
    const sealed = (await stored())!.inboundPasswordEncrypted!;
    expect(fixture.secrets.open(sealed, trunkInboundPasswordContext(id))).toBe('correct horse battery');

    for (const wrong of [
      { username: 'pbx' },
      { ...inbound_auth, password: 'too short' },
      { ...inbound_auth, username: '' },
    ]) {
      const refused = await fixture.call('PATCH', `/dialer/trunks/${id}`, { body: { inbound_auth: wrong } });
      expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
    const removed = await fixture.call('PATCH', `/dialer/trunks/${id}`, { body: { inbound_auth: null } });
    expect(removed.body.data.inbound_auth).toBeNull();
    expect((await stored())!.inboundPasswordEncrypted).toBeNull();
    await fixture.call('DELETE', `/dialer/trunks/${id}`);
  });

  it('get passwords that decrypt when the request has their id in capitals', async () => {
    const { id } = (await fixture.call('POST', '/dialer/trunks', { body: NEW })).body.data;
    const body = { password: 'hunter2-hunter2', inbound_auth: { username: 'pbx', password: 'correct horse battery' } };
    const changed = await fixture.call('PATCH', `/dialer/trunks/${id.toUpperCase()}`, { body });
    expect([changed.status, changed.body.data.id]).toEqual([200, id]);
    const [row] = await fixture.sql<{ passwordEncrypted: Buffer; inboundPasswordEncrypted: Buffer }[]>`
      select password_encrypted, inbound_password_encrypted from trunks where id = ${id}`;
    const opened = [
      fixture.secrets.open(row!.passwordEncrypted, trunkPasswordContext(id)),
      fixture.secrets.open(row!.inboundPasswordEncrypted, trunkInboundPasswordContext(id)),
    ];
    expect(opened).toEqual([body.password, body.inbound_auth.password]);
    await fixture.call('DELETE', `/dialer/trunks/${id}`);
  });

  it('get defaults, and never return their password', async () => {
    const body = { ...NEW, username: 'tandem', password: 'hunter2-hunter2', price_per_minute_usd: 0.012345678 };
    const created = await fixture.call('POST', '/dialer/trunks', { body });
    expect(created.status).toBe(201);
    const trunk = created.body.data;
    expect(trunk).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Carrier',
      sip_uri: 'sip:carrier.example:5060',
      transport: 'udp',
      gateways: [
        {
          sip_uri: 'sip:carrier.example:5060',
          transport: 'udp',
          priority: 0,
          weight: 1,
          reachability: { state: 'unknown', since: null, reason: 'not_checked' },
        },
      ],
      username: 'tandem',
      register: false,
      registration: null,
      codecs: ['PCMU', 'PCMA'],
      media_encryption: 'none',
      channels: 10,
      health: { mode: 'options', interval_seconds: 30 },
      refer: 'none',
      inbound_auth: null,
      reachability: { state: 'unknown', since: null, reason: 'not_checked' },
      ...{ reachable: null, reachable_since: null, last_error: null, registered_at: null },
      allowed_prefixes: [],
      numbers: [],
      unverified_numbers: [],
      status: 'active',
      default_caller_id: null,
      price_per_minute_usd: 0.012345678,
      created_at: fixture.now.current.toISOString(),
    });
    const row = await getTrunk(fixture.sql, { id: trunk.id, workspaceId: fixture.owner.workspaceId });
    expect(fixture.secrets.open(row!.passwordEncrypted!, trunkPasswordContext(trunk.id))).toBe('hunter2-hunter2');
    expect(row!.pricePerMinuteNano).toBe(12_345_678n);

    const shown = await fixture.call('GET', `/dialer/trunks/${trunk.id}`);
    expect(shown.body.data).toEqual({ ...trunk, recent_probes: [] });
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
    ['another transport', { ...NEW, transport: 'sctp' }, 'transport'],
    ['a username that breaks out of its quotes', { ...NEW, username: 'a", uri="b' }, 'username'],
    ['another codec', { ...NEW, codecs: ['opus'] }, 'codecs.0'],
    ['another media encryption', { ...NEW, media_encryption: 'dtls' }, 'media_encryption'],
    ['no codec', { ...NEW, codecs: [] }, 'codecs'],
    ['comfort noise alone', { ...NEW, codecs: ['CN'] }, 'codecs'],
    ['a registration without account', { ...NEW, register: true }, 'username'],
    ['a gateway that is not sip_uri first', { ...NEW, gateways: [{ sip_uri: 'sip:b.example' }] }, 'gateways.0.sip_uri'],
    [
      'a first gateway over another transport',
      { ...NEW, transport: 'udp', gateways: [{ sip_uri: NEW.sip_uri, transport: 'tcp' }] },
      'gateways.0.transport',
    ],
    ['a gateway twice', { ...NEW, gateways: [{ sip_uri: NEW.sip_uri }, { sip_uri: NEW.sip_uri }] }, 'gateways.1'],
    [
      'a gateway with port 0',
      { ...NEW, gateways: [{ sip_uri: NEW.sip_uri }, { sip_uri: 'sip:b.example:0' }] },
      'gateways.1.sip_uri',
    ],
    ['a gateway of negative weight', { ...NEW, gateways: [{ sip_uri: NEW.sip_uri, weight: -1 }] }, 'gateways.0.weight'],
    ['health of no kind', { ...NEW, health: {} }, 'health'],
    ['another health mode', { ...NEW, health: { mode: 'ping' } }, 'health.mode'],
    ['another health word', { ...NEW, health: 'ping' }, 'health'],
    ['probes twice a second', { ...NEW, health: { interval_seconds: 0.5 } }, 'health.interval_seconds'],
    ['probes every nine seconds', { ...NEW, health: { interval_seconds: 9 } }, 'health.interval_seconds'],
    ['half a channel', { ...NEW, channels: 0.5 }, 'channels'],
    ['channels as text', { ...NEW, channels: '5' }, 'channels'],
    ['a prefix without plus', { ...NEW, allowed_prefixes: ['91'] }, 'allowed_prefixes.0'],
    ['a malformed number', { ...NEW, numbers: ['+912241234567', 'x'] }, 'numbers.1'],
    ['a negative price', { ...NEW, price_per_minute_usd: -0.01 }, 'price_per_minute_usd'],
    ['a price with ten decimals', { ...NEW, price_per_minute_usd: 0.0000000001 }, 'price_per_minute_usd'],
    ['an unknown field', { ...NEW, owner: 'me' }, 'owner'],
  ])('reject %s on creation', async (_name, body, path) => {
    const answer = await fixture.call('POST', '/dialer/trunks', { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.details.map((detail: { path: string }) => detail.path)).toContain(path);
  });

  it.each<[Record<string, unknown>, string[]]>([
    [
      { ...NEW, sip_uri: 'http://carrier.example' },
      [
        'sip_uri is invalid. Expected: `sip:host` or `sip:host:port`. The dialed number becomes the user part. `sips:` means the transport `tls`.',
      ],
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
  ])('reject %j with a readable message', async (body, messages) => {
    const answer = await fixture.call('POST', '/dialer/trunks', { body });
    expect(answer.body.message).toBe(messages[0]);
    const said = answer.body.details.map(
      ({ path, message }: { path: string; message: string }) => `${path} ${message}.`,
    );
    expect(said).toEqual(messages);
  });

  it('reach a private network only from the first workspace', async () => {
    const body = { ...NEW, name: 'Office', sip_uri: 'sip:10.0.0.1' };
    expect((await fixture.call('POST', '/dialer/trunks', { body })).status).toBe(201);
    const { member, trunkId } = await provisioned();
    const refused = [
      await fixture.call('POST', '/dialer/trunks', { as: member, body }),
      await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body: { sip_uri: 'sip:127.0.0.1:22' } }),
      await fixture.call('POST', '/dialer/trunks', { body: { ...body, sip_uri: 'sip:169.254.169.254' } }),
    ];
    for (const answer of refused) {
      expect([answer.status, answer.body.code]).toEqual([403, 'TRUNK_HOST_NOT_ALLOWED']);
    }
    const kept = await fixture.call('GET', `/dialer/trunks/${trunkId}`, { as: member });
    expect(kept.body.data.sip_uri).toBe('sip:127.0.0.1:5070');
  });

  it('count with their numbers against quotas, except in the first workspace', async () => {
    const quotas = { workspacesPerUser: 1, trunksPerWorkspace: 2, numbersPerWorkspace: 3 };
    await using limited = await createHttpFixture({ quotas });
    const as = await limited.addWorkspace();
    const create = (numbers: string[], by = as) =>
      limited.call('POST', '/dialer/trunks', { as: by, body: { ...NEW, numbers } });
    const first = await create(['+912241000001', '+912241000002']);
    expect(first.status).toBe(201);
    const tooMany = await create(['+912241000003', '+912241000004']);
    expect([tooMany.status, tooMany.body.code, tooMany.body.details]).toEqual([409, 'QUOTA_EXCEEDED', { limit: 3 }]);
    const url = `/dialer/trunks/${first.body.data.id}`;
    const change = (numbers: string[]) => limited.call('PATCH', url, { as, body: { numbers } });
    expect((await change(['1', '2', '3'].map((n) => `+91224100000${n}`))).status).toBe(200);
    expect((await change(['1', '2', '3', '4'].map((n) => `+91224100000${n}`))).body.code).toBe('QUOTA_EXCEEDED');
    const together = await Promise.all([create([]), create([]), create([])]);
    expect(together.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
    expect(together.find(({ status }) => status === 409)?.body.message).toContain('allows 2');
    for (let i = 0; i < 4; i++) expect((await create([], limited.owner)).status).toBe(201);

    const token = await sessionOf(limited, as);
    const another = await callWith(limited, token, ['POST', '/workspaces', { name: 'Second' }]);
    expect([another.status, another.body.code]).toEqual([409, 'QUOTA_EXCEEDED']);
  });

  it('exchange their numbers for as many others at the quota', async () => {
    await using limited = await createHttpFixture({
      quotas: { workspacesPerUser: 1, trunksPerWorkspace: 2, numbersPerWorkspace: 3 },
    });
    const as = await limited.addWorkspace();
    const create = (numbers: string[]) => limited.call('POST', '/dialer/trunks', { as, body: { ...NEW, numbers } });
    const trunk = await create(['+912241000001', '+912241000002']);
    expect((await create(['+912241000003'])).status).toBe(201);
    const url = `/dialer/trunks/${trunk.body.data.id}`;
    const change = (numbers: string[]) => limited.call('PATCH', url, { as, body: { numbers } });
    const exchanged = await change(['+912241000002', '+912241000004']);
    expect([exchanged.status, exchanged.body.data?.numbers]).toEqual([200, ['+912241000002', '+912241000004']]);
    const tooMany = await change(['+912241000004', '+912241000005', '+912241000006']);
    expect(tooMany.body.code).toBe('QUOTA_EXCEEDED');
  });

  it('accept one of their own numbers as default caller ID, or none', async () => {
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

  it("change one probing field at a time, and keep the carrier's health", async () => {
    const { member, trunkId } = await provisioned();
    const since = new Date('2026-01-31T09:30:00.000Z');
    const health = { state: 'up', reason: 'options_answered', gateways: [] } as const;
    const address = { sipUri: 'sip:127.0.0.1:5070', transport: 'udp' as const, gateways: [] };
    await recordTrunkHealth(fixture.sql, { trunkId, address, health, now: since });
    const change = async (body: object) =>
      (await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body })).body.data;
    expect(await change({ health: { interval_seconds: 60 } })).toMatchObject({
      health: { mode: 'options', interval_seconds: 60 },
    });
    expect(await change({ health: { mode: 'none' } })).toMatchObject({
      health: { mode: 'none', interval_seconds: 60 },
      reachability: { state: 'up', since: since.toISOString(), reason: 'options_answered' },
      ...{ reachable: true, reachable_since: since.toISOString(), last_error: null },
    });
    const down = { state: 'down', reason: 'no_response', gateways: [] } as const;
    await recordTrunkHealth(fixture.sql, { trunkId, address, health: down, now: since });
    expect(await change({ name: 'Silent' })).toMatchObject({ reachable: false, last_error: 'no_response' });
    expect(await change({ health: 'options' })).toMatchObject({ health: { mode: 'options', interval_seconds: 60 } });
    expect(await change({ transport: 'tcp' })).toMatchObject({
      reachability: { state: 'unknown', since: null, reason: 'not_checked' },
    });
  });

  it('accept gateways, with sip_uri as the first', async () => {
    const { member, trunkId } = await provisioned();
    const change = async (body: object) =>
      (await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body })).body.data;
    const unknown = { state: 'unknown', since: null, reason: 'not_checked' };
    const two = { sip_uri: 'sip:93.184.216.35', transport: 'udp', priority: 5, weight: 0, reachability: unknown };
    expect(
      await change({
        gateways: [
          { sip_uri: 'sip:93.184.216.34', transport: 'tcp' },
          { ...two, reachability: undefined },
        ],
      }),
    ).toMatchObject({
      sip_uri: 'sip:93.184.216.34',
      transport: 'tcp',
      gateways: [
        { sip_uri: 'sip:93.184.216.34', transport: 'tcp', priority: 0, weight: 1, reachability: unknown },
        two,
      ],
    });
    const moved = await change({ sip_uri: 'sip:93.184.216.36' });
    expect(moved.gateways.map(({ sip_uri }: { sip_uri: string }) => sip_uri)).toEqual([
      'sip:93.184.216.36',
      'sip:93.184.216.35',
    ]);
    expect((await change({ gateways: [] })).gateways).toHaveLength(1);
  });

  it('reach no private network through any gateway', async () => {
    const { member, trunkId } = await provisioned();
    const body = { gateways: [{ sip_uri: 'sip:93.184.216.34' }, { sip_uri: 'sip:169.254.169.254' }] };
    const answer = await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body });
    expect(answer.body.code).toBe('TRUNK_HOST_NOT_ALLOWED');
  });

  it('show their registration, and register only with a username', async () => {
    const { member, trunkId } = await provisioned();
    const url = `/dialer/trunks/${trunkId}`;
    const refused = await fixture.call('PATCH', url, { as: member, body: { register: true } });
    expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(refused.body.details).toEqual([{ path: 'username', message: 'must be set to register with the carrier' }]);
    const changed = await fixture.call('PATCH', url, { as: member, body: { register: true, username: 'tandem' } });
    expect(changed.body.data.registration).toEqual({
      ...{ state: 'registering', registered_at: null, expires_at: null, last_error: null },
    });
    const now = new Date('2026-01-31T09:30:00.000Z');
    await leaseRegistrations(fixture.sql, 'boot-1');
    const status = { state: 'registered', registeredAt: now, expiresAt: now, lastError: '503 Busy' } as const;
    await recordRegistration(fixture.sql, { trunkId, server: 'boot-1', status });
    expect((await fixture.call('GET', url, { as: member })).body.data).toMatchObject({
      register: true,
      registration: {
        state: 'registered',
        registered_at: now.toISOString(),
        expires_at: now.toISOString(),
        last_error: '503 Busy',
      },
      ...{ registered_at: now.toISOString(), last_error: '503 Busy' },
    });
    expect((await fixture.call('PATCH', url, { as: member, body: { username: null } })).status).toBe(400);
  });

  it('require at least one field in a change', async () => {
    const { member, trunkId } = await provisioned();
    const { body } = await fixture.call('PATCH', `/dialer/trunks/${trunkId}`, { as: member, body: {} });
    expect(body.details).toEqual([{ path: 'body', message: 'must have at least one field' }]);
  });

  it('admit only admins and owners of their workspace', async () => {
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
