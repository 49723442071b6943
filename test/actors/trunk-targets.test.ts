import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { createTrunkTargets } from '../../actors/trunk-targets.actor.ts';
import { createWorkspace } from '../../storage/queries/workspaces.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';

let database: TestDatabase;
let operator: string;
let tenant: string;
beforeAll(async () => {
  database = await createTestDatabase();
  const open = async (name: string, now: Date) => {
    const owner = { email: `${name}@example.com`, passwordHash: null };
    return (await createWorkspace(database.sql, { name, plan: 'free', owner, now })).workspace.id;
  };
  operator = await open('operator', new Date('2026-01-02T00:00:00Z'));
  // The clock was set back: the first workspace still belongs to the operator.
  tenant = await open('tenant', new Date('2026-01-01T00:00:00Z'));
});
afterAll(() => database.drop());

interface Case {
  addresses?: readonly string[];
  /** Ports and targets of SRV records. */
  srv?: readonly [port: number, target: string][];
  allow?: string[];
  by?: string | null;
}

/** `address`, `address:port` from an SRV record, or `refused`. */
async function check(sipUri: string, { addresses, srv = [], allow = [], by = tenant }: Case = {}): Promise<string> {
  const resolve = async () => {
    if (addresses === undefined) throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
    return addresses;
  };
  const services = {
    naptr: async () => [],
    srv: async () => srv.map(([port, name]) => ({ priority: 0, weight: 0, port, name })),
  };
  const targets = createTrunkTargets({ sql: database.sql, allowCidrs: parseCidrs(allow), resolve, services });
  try {
    const hops = await targets.locate({ sipUri, transport: 'udp', ownerWorkspaceId: by });
    return hops.map(({ address, port }) => (port === null ? address : `${address}:${port}`)).join(' ');
  } catch (error) {
    expect(error).toMatchObject({ code: 'TRUNK_HOST_NOT_ALLOWED' });
    return 'refused';
  }
}

describe('trunk target of a tenant workspace', () => {
  it('can be a public address, IPv4 first', async () => {
    expect(await check('sip:8.8.8.8:5060')).toBe('8.8.8.8');
    expect(await check('sip:[2606:4700::1111]')).toBe('2606:4700::1111');
    const both = await check('sip:carrier.example', { addresses: ['2606:4700::1111', '8.8.8.8'] });
    expect(both).toBe('8.8.8.8 2606:4700::1111');
    expect(await check('sip:carrier.example', { addresses: ['2606:4700::1111'] })).toBe('2606:4700::1111');
  });

  it.each([
    '127.0.0.1',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '0.0.0.0',
    '[::1]',
    '[fd00::1]',
    '[::ffff:127.0.0.1]',
    'localhost',
    '2130706433',
    '127.1',
    'x.0x7f',
    '999.999.999.999',
  ])('cannot be %s', async (host) => {
    expect(await check(`sip:${host}`, { addresses: ['8.8.8.8'] })).toBe('refused');
  });

  it('cannot be a name with a private address, or without addresses', async () => {
    expect(await check('sip:carrier.example', { addresses: ['8.8.8.8', '10.0.0.1'] })).toBe('refused');
    expect(await check('sip:carrier.example', { addresses: [] })).toBe('refused');
    expect(await check('sip:carrier.example')).toBe('refused');
  });

  it('cannot be a private address behind SRV records', async () => {
    const srv: [number, string][] = [[5070, 'a.example']];
    const asked = (addresses: string[]) => check('sip:carrier.example', { srv, addresses });
    expect(await asked(['8.8.8.8'])).toBe('8.8.8.8:5070');
    expect(await asked(['10.0.0.1'])).toBe('refused');
  });

  it('can be in a private network listed in TRUNK_ALLOW_CIDRS', async () => {
    const allow = ['10.20.0.0/16', 'fd12::/16'];
    expect(await check('sip:10.20.3.4', { allow })).toBe('10.20.3.4');
    expect(await check('sip:pbx.example', { allow, addresses: ['10.20.3.4'] })).toBe('10.20.3.4');
    expect(await check('sip:[fd12::1]', { allow })).toBe('fd12::1');
    expect(await check('sip:10.21.0.1', { allow })).toBe('refused');
  });
});

describe('trunk target of the operator', () => {
  it('can be in private networks, but not a name without addresses', async () => {
    for (const by of [operator, null]) {
      for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '8.8.8.8']) {
        expect(await check(`sip:${host}`, { by })).toBe(host.replace(/[[\]]/g, ''));
      }
      expect(await check('sip:localhost', { by })).toBe('127.0.0.1');
      expect(await check('sip:nowhere.invalid', { by })).toBe('');
      expect(await check('sip:pbx.internal', { by, addresses: ['10.0.0.1'] })).toBe('10.0.0.1');
    }
  });
});

it("the operator's local names work without a DNS server, and not for tenants", async () => {
  const refuse = async () => {
    throw Object.assign(new Error('querySrv ECONNREFUSED'), { code: 'ECONNREFUSED' });
  };
  const targets = createTrunkTargets({
    ...{ sql: database.sql, allowCidrs: [] },
    resolve: async (name) => (name === 'pbx.internal' ? ['10.0.0.1'] : await refuse()),
    services: { naptr: refuse, srv: refuse },
  });
  const locate = (sipUri: string, ownerWorkspaceId: string) =>
    targets.locate({ sipUri, transport: 'auto', ownerWorkspaceId });
  expect(await locate('sip:localhost', operator)).toMatchObject([{ address: '127.0.0.1', transport: 'udp' }]);
  expect(await locate('sip:pbx.internal', operator)).toMatchObject([{ address: '10.0.0.1' }]);
  const refused = { code: 'TRUNK_HOST_NOT_ALLOWED' };
  await expect(locate('sip:pbx.internal', tenant)).rejects.toMatchObject(refused);
});

it.each([
  '169.254.169.254',
  '169.254.1.1',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '[::ffff:169.254.169.254]',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  '0.0.0.0',
  '224.0.0.1',
])('no trunk may use %s, whatever is allowed', async (host) => {
  const allow = ['0.0.0.0/0', '::/0'];
  for (const by of [tenant, operator, null]) {
    expect(await check(`sip:${host}`, { by, allow })).toBe('refused');
    const address = host.replace(/[[\]]/g, '');
    expect(await check('sip:rebound.example', { by, allow, addresses: ['8.8.8.8', address] })).toBe('refused');
  }
});
