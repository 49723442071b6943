import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { connect } from '../../storage/database.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { type ServerProcess, startServerProcess } from '../process/server-process.ts';
import { type CommandLineOptions, tandem, tandemProcess } from './command-line.ts';

/** A real server on its embedded database, and the command line with the data folder only. */
let dataDir: string;
let server: ServerProcess;
let url: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tandem-operator-'));
  server = startServerProcess({ TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0' });
  ({ url } = (await server.logged('Tandem is ready')) as { url: string });
});

afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.exited;
  await rm(dataDir, { recursive: true, force: true });
});

const options = (): CommandLineOptions => ({ cwd: dataDir, env: { TANDEM_DATA_DIR: dataDir } });
const run = (...argv: string[]) => tandem(argv, options());

async function dataOf<T>(...argv: string[]): Promise<T> {
  const { exitCode, stderr, document } = await run(...argv, '--json');
  expect({ exitCode, stderr, success: document.success }).toEqual({ exitCode: 0, stderr: '', success: true });
  return document.data;
}

interface Key {
  id: number;
  name: string;
  key: string;
  expires_at: string | null;
}

describe('tandem keys', () => {
  it('creates a key that works at once, prints it once, and revokes it', async () => {
    const { stdout } = await tandemProcess(['keys', 'create', 'Billing robot'], options());
    const apiKey = /^key +(sk_\S+)$/m.exec(stdout)?.[1] ?? '';
    const id = /^id +(\d+)$/m.exec(stdout)?.[1] ?? '';
    const api = apiClient({ url, apiKey });
    expect(await api.get('/dialer/pool')).toMatchObject({ provisioned: false });

    const { keys } = await dataOf<{ keys: Key[] }>('keys', 'list');
    expect(keys.map(({ name }) => name)).toEqual(['Billing robot', 'Owner']);
    expect(keys[0]?.key).toBe(`${apiKey.slice(0, 7)}...${apiKey.slice(-4)}`);
    expect((await run('keys', 'list')).stdout).not.toContain(apiKey);

    expect(await dataOf('keys', 'revoke', id)).toEqual({ id: Number(id), revoked: true });
    await expect(api.get('/dialer/pool')).rejects.toMatchObject({ code: 'UNAUTHORIZED', status: 401 });
    const again = await run('keys', 'revoke', id, '--json');
    expect(again.exitCode).toBe(1);
    expect(again.document).toMatchObject({ code: 'KEY_NOT_FOUND', message: expect.stringContaining('keys list') });
    expect((await dataOf<{ keys: Key[] }>('keys', 'list')).keys.map(({ name }) => name)).toEqual(['Owner']);
  });

  it('creates a key that expires', async () => {
    const before = Date.now();
    const key = await dataOf<Key>('keys', 'create', 'For a week', '--expires-in-days', '7');
    expect(Date.parse(key.expires_at ?? '') - before).toBeGreaterThanOrEqual(7 * 86_400_000);
  });

  it('creates keys only for members', async () => {
    const { exitCode, document } = await run('keys', 'create', 'x', '--user', 'nobody@example.com', '--json');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ code: 'NOT_A_MEMBER' });
    expect((await run('keys', 'create', 'x', '--user', 'owner@localhost')).exitCode).toBe(0);
  });
});

describe('tandem wallet', () => {
  it('tops up exact amounts once per operation key, and lists transactions', async () => {
    expect(await dataOf('wallet', 'show')).toMatchObject({ balance_usd: 0, held_usd: 0, available_usd: 0 });
    const topUp = ['wallet', 'top-up', '2.500000001', '--key', 'invoice-1'];
    expect(await dataOf(...topUp)).toMatchObject({ added: true, balance_usd: 2.500000001 });
    expect(await dataOf(...topUp)).toMatchObject({ added: false, balance_usd: 2.500000001 });
    const other = await run('wallet', 'top-up', '3', '--key', 'invoice-1');
    expect(other).toMatchObject({ exitCode: 1, stdout: '' });
    expect(other.stderr).toMatch(/^tandem: .*invoice-1.*\n$/);
    const text = (await run('wallet', 'top-up', '10', '--description', 'Cheque 17', '--type', 'admin_bonus')).stdout;
    expect(text).toBe('10.00 USD added: the wallet of Default has 12.500000001 USD.\n');

    const { transactions } = await dataOf<{ transactions: object[] }>('wallet', 'transactions');
    expect(transactions).toMatchObject([
      { kind: 'top_up', amount_usd: 10, balance_after_usd: 12.500000001, description: 'Cheque 17' },
      { kind: 'top_up', amount_usd: 2.500000001, balance_before_usd: 0 },
    ]);
    expect(
      (await dataOf<{ transactions: object[] }>('wallet', 'transactions', '--limit', '1')).transactions,
    ).toHaveLength(1);
  });

  it('counts simultaneous repetitions once', async () => {
    const before = await dataOf<{ balance_usd: number }>('wallet', 'show');
    const runs = await Promise.all(
      [1, 2, 3].map(() => dataOf<{ added: boolean }>('wallet', 'top-up', '1', '--key', 'at-once')),
    );
    expect(runs.map(({ added }) => added).sort()).toEqual([false, false, true]);
    const after = await dataOf<{ balance_usd: number }>('wallet', 'show');
    expect(after.balance_usd - before.balance_usd).toBeCloseTo(1, 9);
  });
});

describe('tandem workspaces', () => {
  it('creates a workspace with an owner, separate from the first one', async () => {
    const made = await dataOf<{ id: string }>(
      'workspaces',
      'create',
      'Sales',
      '--owner',
      'Ann@Example.com',
      '--plan',
      'pro',
    );
    const { workspaces } = await dataOf<{ workspaces: object[] }>('workspaces', 'list');
    expect(workspaces).toMatchObject([
      { name: 'Default', owner_email: 'owner@localhost', members: 1 },
      { id: made.id, name: 'Sales', plan: 'pro', owner_email: 'ann@example.com', members: 1, balance_usd: 0 },
    ]);
    expect(await dataOf('workspaces', 'members', 'Sales')).toMatchObject({
      workspace_id: made.id,
      members: [{ email: 'ann@example.com', role: 'owner' }],
    });
    expect((await run('workspaces', 'members')).stdout).toContain('owner@localhost');

    expect(await dataOf('wallet', 'top-up', '7', '--workspace', 'Sales')).toMatchObject({ balance_usd: 7 });
    const { api_key: apiKey } = await dataOf<{ api_key: string }>('keys', 'create', 'Ann', '--workspace', made.id);
    expect(await apiClient({ url, apiKey }).get('/dialer/pool')).toMatchObject({ provisioned: false });
    expect((await dataOf<{ keys: Key[] }>('keys', 'list')).keys.map(({ name }) => name)).not.toContain('Ann');
  });

  it('names an unknown workspace, and requires an id when two share a name', async () => {
    const unknown = await run('wallet', 'show', '--workspace', 'Nowhere', '--json');
    expect(unknown).toMatchObject({ exitCode: 1 });
    expect(unknown.document).toMatchObject({ code: 'WORKSPACE_NOT_FOUND' });
    for (const owner of ['a@example.com', 'b@example.com']) await run('workspaces', 'create', 'Twin', '--owner', owner);
    expect((await run('wallet', 'show', '--workspace', 'Twin', '--json')).document).toMatchObject({
      code: 'AMBIGUOUS_WORKSPACE',
    });
  });

  it('sets a price for a workspace or a plan, and resets it to the default', async () => {
    const workspace = await dataOf<{ id: string }>('workspaces', 'create', 'Priced', '--owner', 'p@example.com');
    const priceOf = async (item: string) => {
      const { prices } = await dataOf<{ prices: { item: string }[] }>('prices', 'list', '--workspace', workspace.id);
      return prices.find((price) => price.item === item);
    };
    expect(await priceOf('stt')).toEqual({ item: 'stt', price_usd: 0.006, unit: 'minute', set_for: 'default' });
    await dataOf('prices', 'set', 'stt', '0.005', '--plan', 'free');
    expect(await priceOf('stt')).toMatchObject({ price_usd: 0.005, set_for: 'plan' });
    await dataOf('prices', 'set', 'stt', '0', '--workspace', workspace.id);
    expect(await priceOf('stt')).toMatchObject({ price_usd: 0, set_for: 'workspace' });
    await dataOf('prices', 'set', 'stt', 'default', '--workspace', workspace.id);
    expect(await priceOf('stt')).toMatchObject({ price_usd: 0.005, set_for: 'plan' });
    await dataOf('prices', 'set', 'diarization', '45', '--workspace', workspace.id);
    expect(await priceOf('diarization')).toMatchObject({ percent: 45, set_for: 'workspace' });
    expect((await run('prices', 'list', '--workspace', 'Priced')).stdout).toMatch(
      /^diarization +45 % on top of stt +/m,
    );
  });

  it.each([
    [['prices', 'set', 'air', '1']],
    [['prices', 'set', 'stt', '1,50']],
    [['prices', 'set', 'diarization', '0.5']],
    [['prices', 'set', 'stt', '1', '--plan', 'gold']],
    [['prices', 'set', 'stt', '1', '--plan', 'pro', '--workspace', 'Sales']],
  ])('rejects %j and prints the correct usage', async (argv) => {
    const { exitCode, stderr } = await run(...argv);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/takes|number|together/) });
  });

  it('prints a link that resets a password', async () => {
    const { exitCode, document } = await run('users', 'reset-password', 'nobody@example.com', '--json');
    expect([exitCode, document.code]).toEqual([1, 'USER_NOT_FOUND']);
    type Link = { url: string; token: string };
    const { url: link, token } = await dataOf<Link>('users', 'reset-password', 'owner@localhost');
    const { pathname, searchParams } = new URL(link);
    expect([pathname, searchParams.get('token')]).toEqual(['/auth/password/reset', token]);
    const page = await fetch(`${url}${pathname}?token=${token}`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining(token)]);
    const body = new URLSearchParams({ token, new_password: 'four words nobody guesses' });
    const headers = { accept: 'text/html' };
    const done = await fetch(`${url}${pathname}`, { method: 'POST', body, headers });
    expect([done.status, await done.text()]).toEqual([200, expect.stringContaining('Your password is changed')]);
    const api = apiClient({ url, apiKey: 'none' });
    const login = { email: 'owner@localhost', password: 'four words nobody guesses' };
    expect(await api.post('/auth/login', login)).toMatchObject({ user: { email: 'owner@localhost' } });
    expect(server.output()).not.toContain(token);
  });

  it('prints a link that logs in once', async () => {
    const { exitCode, document } = await run('users', 'login-link', 'nobody@example.com', '--json');
    expect([exitCode, document.code]).toEqual([1, 'USER_NOT_FOUND']);
    type Link = { url: string; token: string };
    const { url: link, token } = await dataOf<Link>('users', 'login-link', 'owner@localhost');
    const { pathname, searchParams } = new URL(link);
    expect([pathname, searchParams.get('token')]).toEqual(['/console/login', token]);
    const api = apiClient({ url, apiKey: 'none' });
    expect(await api.post('/auth/login-link', { token })).toMatchObject({ user: { email: 'owner@localhost' } });
    await expect(api.post('/auth/login-link', { token })).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(server.output()).not.toContain(token);
  });

  it('lists and verifies numbers claimed by trunks of other workspaces', async () => {
    const { id: workspaceId } = await dataOf<{ id: string }>(
      'workspaces',
      'create',
      'Tenant',
      '--owner',
      't@example.com',
    );
    const { api_key: key } = await dataOf<{ api_key: string }>(
      'keys',
      'create',
      'Tenant robot',
      '--workspace',
      workspaceId,
    );
    const api = apiClient({ url, apiKey: key });
    const body = { name: 'Carrier', sip_uri: 'sip:192.0.2.1', numbers: ['+912249200001'] };
    await expect(api.post('/dialer/trunks', body)).rejects.toMatchObject({ code: 'TRUNK_HOST_NOT_ALLOWED' });
    const trunks: string[] = [];
    for (const sip_uri of ['sip:8.8.8.8', 'sip:8.8.4.4']) {
      trunks.push((await api.post<{ id: string }>('/dialer/trunks', { ...body, sip_uri })).id);
    }
    expect((await run('numbers', 'claims')).stdout).toContain('+912249200001');
    const ambiguous = await run('numbers', 'verify', '+912249200001', '--json');
    expect([ambiguous.exitCode, ambiguous.document.code]).toEqual([1, 'AMBIGUOUS_TRUNK']);
    const verified = await dataOf('numbers', 'verify', '+912249200001', '--trunk', trunks[1]!);
    expect(verified).toMatchObject({ outbound_trunk_id: trunks[1], workspace_id: workspaceId });
    const again = await run('numbers', 'verify', '+912249200001', '--json');
    expect([again.exitCode, again.document.code]).toEqual([1, 'NUMBER_NOT_AVAILABLE']);
    expect(await api.get('/dialer/pool')).toMatchObject({ available: ['+912249200001'] });
  });

  it('invites users, and warns that a closed server rejects them', async () => {
    const { stdout } = await run('users', 'invite', 'Ada@Example.com');
    expect(stdout).toMatch(/^token +inv_[\w-]{43}$/m);
    expect(stdout).toContain('set REGISTRATION=invite');
    type Invitation = { token: string; kind: string; role: string | null };
    const made = await dataOf<Invitation>('users', 'invite', 'grace@example.com');
    expect(made).toMatchObject({ kind: 'account', role: null, email: 'grace@example.com' });
    const joining = ['--workspace', 'Default', '--role', 'viewer', '--hours', '1'];
    const member = await dataOf<Invitation>('users', 'invite', 'grace@example.com', ...joining);
    expect(member).toMatchObject({ kind: 'member', role: 'viewer' });
    const body = { email: 'grace@example.com', password: 'four words nobody guesses', invitation: made.token };
    await expect(apiClient({ url, apiKey: 'none' }).post('/auth/register', body)).rejects.toMatchObject({
      code: 'REGISTRATION_CLOSED',
      status: 403,
    });
    expect(server.output()).not.toContain(made.token);
  });

  it.each([
    [['users', 'invite', 'nobody']],
    [['users', 'invite', 'a@example.com', '--role', 'viewer']],
    [['users', 'invite', 'a@example.com', '--workspace', 'Default', '--role', 'king']],
    [['users', 'invite', 'a@example.com', '--hours', '721']],
  ])('rejects %j and prints the correct usage', async (argv) => {
    const { exitCode, stderr } = await run(...argv);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/takes|needs/) });
  });

  it('leaves an audit entry for every operator action', async () => {
    const sql = connect({ url: (await runningDatabaseUrl(dataDir)) ?? '', max: 1 });
    try {
      const rows = await sql<{ action: string }[]>`
        select distinct action from audit_log where actor_user_id is null and details->>'by' = 'operator' order by 1`;
      expect(rows.map(({ action }) => action)).toEqual([
        'api_key.created',
        'api_key.revoked',
        'invitation.created',
        'number.verified',
        'price.changed',
        'user.login_link_created',
        'user.reset_link_created',
        'wallet.topped_up',
        'workspace.created',
      ]);
    } finally {
      await sql.end();
    }
  });
});
