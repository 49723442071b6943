import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { checkDispatcher } from '../peers/dispatcher.ts';
import { pathOf, peerAvailable, runPeer } from '../peers/programs.ts';
import { ROOT } from '../root.ts';
import { composition } from './composition.ts';

/** Runs the command lines of the composition with locally installed programs. */

const run = promisify(execFile);
const { dispatcher, redis, postgres, caddy } = composition({
  ...{ SIP_PORT: '5062', TANDEM_DOMAIN: 'voice.example.com', CADDY_NODES: 'tandem:8080 tandem-2:8080' },
}).services;

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-programs-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe('programs of docker-compose.yml', () => {
  it.skipIf(!peerAvailable('kamailio'))('kamailio accepts its configuration', async () => {
    const { exitCode, output } = await checkDispatcher(dispatcher?.environment ?? {});
    expect(output).toContain('config file ok');
    expect(output).toContain('udp: 10.213.0.10 [10.213.0.10]:5060 advertise 203.0.113.7:5060');
    expect(exitCode).toBe(0);
  });

  it.skipIf(!peerAvailable('kamailio'))('kamailio requires the address of the carriers', async () => {
    const { SIP_HOST, ...environment } = dispatcher?.environment ?? {};
    expect(SIP_HOST).toBeDefined();
    expect((await checkDispatcher(environment)).exitCode).not.toBe(0);
  });

  it.skipIf(pathOf('redis-server') === null)(
    'redis-server accepts its arguments and passes its health check',
    async () => {
      const folder = await temporaryFolder();
      const socket = join(folder, 'redis.sock');
      const [, ...args] = redis?.command ?? [];
      const server = runPeer('redis-server', { cwd: folder, args: [...args, '--port', '0', '--unixsocket', socket] });
      onTestFinished(() => server.stop());
      const ask = async (...words: string[]) => (await run('redis-cli', ['-s', socket, ...words])).stdout.trim();
      await eventually(async () => expect(await ask('ping')).toBe('PONG'));
      expect(await ask('config', 'get', 'appendonly')).toBe('appendonly\nyes');
      expect(await ask('config', 'get', 'maxmemory-policy')).toBe('maxmemory-policy\nnoeviction');
      const check = redis?.healthcheck?.test[1]?.replace('redis-cli', `redis-cli -s ${socket}`) ?? 'false';
      await run('sh', ['-c', check]);
    },
  );

  it.skipIf(pathOf('pg_isready') === null)(
    "pg_isready accepts the arguments of PostgreSQL's health check",
    async () => {
      const [, program = '', ...args] = postgres?.healthcheck?.test ?? [];
      // Nothing listens there: 2 means that no response came, 3 would mean wrong arguments.
      const refused = await run(program, [...args, '--port=1']).catch((error: { code: number }) => error);
      expect(refused).toMatchObject({ code: 2 });
    },
  );

  it.skipIf(pathOf('caddy') === null)('caddy accepts its configuration', async () => {
    const folder = await temporaryFolder();
    const args = ['validate', '--adapter', 'caddyfile', '--config', join(ROOT, 'ops/caddy/Caddyfile')];
    const env = { ...process.env, HOME: folder, ...caddy?.environment };
    expect((await run('caddy', args, { env })).stdout).toContain('Valid configuration');
  });
});
