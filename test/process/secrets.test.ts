import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { startServerProcess } from './server-process.ts';

const API_KEY = `sk_${randomBytes(24).toString('base64url')}`;
const TRUNK_PASSWORD = randomBytes(24).toString('base64url');

async function dataFolder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-secrets-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  return dataDir;
}

it('a start with a new master key re-encrypts everything, and prints neither keys nor secrets', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
  const env = {
    TANDEM_DATA_DIR: await dataFolder(),
    TANDEM_API_KEY: API_KEY,
    DATABASE_URL: database.url,
    LOG_LEVEL: 'trace',
    PORT: '0',
    SIP_PORT: '0',
  };

  const before = startServerProcess({ ...env, TANDEM_SECRET_KEY: oldKey.toString('base64') });
  onTestFinished(() => void before.child.kill('SIGKILL'));
  const { url } = (await before.logged('Tandem is ready')) as { url: string };
  const trunk = { name: 'Carrier', sip_uri: 'sip:127.0.0.1:9', username: 'tandem', password: TRUNK_PASSWORD };
  const made = await fetch(`${url}/dialer/trunks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(trunk),
  });
  expect(made.status).toBe(201);
  before.child.kill('SIGTERM');
  expect(await before.exited).toBe(0);

  const after = startServerProcess({
    ...env,
    TANDEM_SECRET_KEY: newKey.toString('base64'),
    TANDEM_SECRET_KEY_PREVIOUS: oldKey.toString('base64'),
  });
  onTestFinished(() => void after.child.kill('SIGKILL'));
  expect(await after.logged('secrets re-encrypted with the current key')).toMatchObject({ unopened: 0 });
  await after.logged('Tandem is ready');
  after.child.kill('SIGTERM');
  expect(await after.exited).toBe(0);

  const [row] = await database.sql<{ id: string; passwordEncrypted: Buffer }[]>`select * from trunks`;
  const box = createSecretBox(newKey);
  expect(box.open(row!.passwordEncrypted, trunkPasswordContext(row!.id))).toBe(TRUNK_PASSWORD);
  const printed = before.output() + after.output();
  for (const secret of [API_KEY, TRUNK_PASSWORD, oldKey.toString('base64'), newKey.toString('base64')]) {
    expect(printed).not.toContain(secret);
  }
});

it.each(['REDIS_URL', 'DATABASE_URL'])(
  'an unreachable server in %s appears without its password',
  async (name) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const password = randomBytes(12).toString('hex');
    const scheme = name === 'REDIS_URL' ? 'redis' : 'postgres';
    const server = startServerProcess({
      TANDEM_DATA_DIR: await dataFolder(),
      DATABASE_URL: database.url,
      [name]: `${scheme}://tandem:${password}@127.0.0.1:1/0`,
      LOG_LEVEL: 'trace',
      PORT: '0',
      SIP_PORT: '0',
    });
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain('ECONNREFUSED');
    expect(server.output()).not.toContain(password);
  },
  60_000,
);
