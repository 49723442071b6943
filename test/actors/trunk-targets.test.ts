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
  tenant = await open('tenant', new Date('2026-01-02T00:00:00Z'));
  operator = await open('operator', new Date('2026-01-01T00:00:00Z'));
});
afterAll(() => database.drop());

interface Case {
  addresses?: readonly string[];
  allow?: string[];
  by?: string | null;
}

async function check(sipUri: string, { addresses, allow = [], by = tenant }: Case = {}): Promise<string | null> {
  const resolve = async () => {
    if (addresses === undefined) throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
    return addresses;
  };
  const targets = createTrunkTargets({ sql: database.sql, allowCidrs: parseCidrs(allow), resolve });
  try {
    return await targets.check({ sipUri, ownerWorkspaceId: by });
  } catch (error) {
    expect(error).toMatchObject({ code: 'TRUNK_HOST_NOT_ALLOWED' });
    return 'refused';
  }
}

describe('a trunk of a workspace that is not the first', () => {
  it('leads to a public address, which is returned for names', async () => {
    expect(await check('sip:8.8.8.8:5060')).toBeNull();
    expect(await check('sip:[2606:4700::1111]')).toBeNull();
    expect(await check('sip:carrier.example', { addresses: ['2606:4700::1111', '8.8.8.8'] })).toBe('8.8.8.8');
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
  ])('does not lead to %s', async (host) => {
    expect(await check(`sip:${host}`, { addresses: ['8.8.8.8'] })).toBe('refused');
  });

  it('does not lead to a name with one private address, or with none at all', async () => {
    expect(await check('sip:carrier.example', { addresses: ['8.8.8.8', '10.0.0.1'] })).toBe('refused');
    expect(await check('sip:carrier.example', { addresses: [] })).toBe('refused');
    expect(await check('sip:carrier.example')).toBe('refused');
  });

  it('leads to a private network that TRUNK_ALLOW_CIDRS has', async () => {
    const allow = ['10.20.0.0/16', 'fd12::/16'];
    expect(await check('sip:10.20.3.4', { allow })).toBeNull();
    expect(await check('sip:pbx.example', { allow, addresses: ['10.20.3.4'] })).toBe('10.20.3.4');
    expect(await check('sip:[fd12::1]', { allow })).toBeNull();
    expect(await check('sip:10.21.0.1', { allow })).toBe('refused');
  });
});

describe('a trunk of the operator', () => {
  it('leads to private networks, and to names that only the SIP server resolves', async () => {
    for (const by of [operator, null]) {
      for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', 'localhost', '8.8.8.8']) {
        expect(await check(`sip:${host}`, { by })).toBeNull();
      }
      expect(await check('sip:srv.example', { by })).toBeNull();
      expect(await check('sip:pbx.internal', { by, addresses: ['10.0.0.1'] })).toBeNull();
    }
  });
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
])('no trunk leads to %s, whatever is allowed', async (host) => {
  const allow = ['0.0.0.0/0', '::/0'];
  for (const by of [tenant, operator, null]) {
    expect(await check(`sip:${host}`, { by, allow })).toBe('refused');
    const address = host.replace(/[[\]]/g, '');
    expect(await check('sip:rebound.example', { by, allow, addresses: ['8.8.8.8', address] })).toBe('refused');
  }
});
