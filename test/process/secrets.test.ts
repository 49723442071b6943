import { randomBytes } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { API_KEY, cleanUp, dataFolder, environment, startReady, withDatabase } from './ready-server.ts';
import { startServerProcess } from './server-process.ts';

const TRUNK_PASSWORD = randomBytes(24).toString('base64url');

afterEach(cleanUp);

it('a start with a new master key re-encrypts everything, accepts old links, and prints neither keys nor secrets', async () => {
  const dataDir = await dataFolder();
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
  const { server: before, api } = await startReady(dataDir, {
    LOG_LEVEL: 'trace',
    TANDEM_SECRET_KEY: oldKey.toString('base64'),
  });
  const trunk = { name: 'Carrier', sip_uri: 'sip:127.0.0.1:9', username: 'tandem', password: TRUNK_PASSWORD };
  await api.post('/dialer/trunks', trunk);
  const { unsubscribe_url: link } = await api.post<{ unsubscribe_url: string }>('/user/onboarding', {});
  before.child.kill('SIGTERM');
  expect(await before.exited).toBe(0);

  const { server: after, url } = await startReady(dataDir, {
    LOG_LEVEL: 'trace',
    TANDEM_SECRET_KEY: newKey.toString('base64'),
    TANDEM_SECRET_KEY_PREVIOUS: oldKey.toString('base64'),
  });
  expect(await after.logged('secrets re-encrypted with the current key')).toMatchObject({ unopened: 0 });
  // E-mails that were sent before have it.
  expect((await fetch(`${url}/unsubscribe${new URL(link).search}`, { method: 'POST' })).status).toBe(200);
  after.child.kill('SIGTERM');
  expect(await after.exited).toBe(0);

  // The new key is gone again, which encrypted the password of the trunk.
  const { server: tooEarly } = await startReady(dataDir, { TANDEM_SECRET_KEY: oldKey.toString('base64') });
  const warning = 'no key decrypts some stored secrets: tandem doctor says what to do';
  expect(await tooEarly.logged(warning)).toMatchObject({ level: 'warn', count: 1 });
  expect(before.output() + after.output()).not.toContain(warning);
  tooEarly.child.kill('SIGTERM');
  expect(await tooEarly.exited).toBe(0);

  const [row] = await withDatabase(
    dataDir,
    (sql) => sql<{ id: string; passwordEncrypted: Buffer }[]>`select * from trunks`,
  );
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
    const password = randomBytes(12).toString('hex');
    const scheme = name === 'REDIS_URL' ? 'redis' : 'postgres';
    const server = startServerProcess(
      environment(await dataFolder(), {
        [name]: `${scheme}://tandem:${password}@127.0.0.1:1/0`,
        LOG_LEVEL: 'trace',
      }),
    );
    expect(await server.exited).toBe(1);
    expect(server.output()).toContain('ECONNREFUSED');
    expect(server.output()).not.toContain(password);
  },
  60_000,
);
