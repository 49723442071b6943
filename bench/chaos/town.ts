import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { openDatabase, type Sql } from '../../storage/database.ts';
import { startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { topUp } from '../../storage/ledger.ts';
import { API_KEY, environment } from '../../test/process/ready-server.ts';
import { eventually, type ServerProcess, startServerProcess } from '../../test/process/server-process.ts';
import { startLoopbackCarrier } from '../../test/softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../../test/softphone/softphone.ts';
import { type CuttableProxy, openCuttableProxy } from './cuttable-proxy.ts';

export const CALLBACK_SECRET = 'the-secret-of-the-chaos-program';
const RTP_PORTS_EACH = 400;
const SMALL_DISK_BYTES = 16_000_000;

/** A server process with its own data folder and its own ways to Postgres and Redis. */
export interface ChaosNode {
  readonly name: string;
  readonly recordingsDir: string;
  /** Recordings are on a small disk of their own, which can be filled. */
  readonly hasSmallDisk: boolean;
  readonly postgres: CuttableProxy;
  readonly redis: CuttableProxy | null;
  server: ServerProcess;
  url: string;
  isUp: boolean;
  start(): Promise<void>;
}

export interface Town extends AsyncDisposable {
  readonly sql: Sql;
  readonly workspaceId: string;
  readonly nodes: ChaosNode[];
  readonly agent: Softphone;
  readonly customers: readonly Softphone[];
  readonly receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
  readonly redis: ChaosRedis | null;
}

export interface ChaosRedis {
  readonly port: number;
  flush(): void;
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Starts everything: Postgres, Redis if it is installed, the servers, a carrier, phones and a receiver of callbacks. */
export async function openTown({ nodes: count }: { nodes: number }): Promise<Town> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'tandem-chaos-'));
  opening.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database') });
  opening.defer(() => postgres.stop());
  const database = await openDatabase({ url: postgres.url, max: 4 });
  opening.defer(() => database.close());
  const redis = await openRedis();
  if (redis) opening.defer(() => redis.kill());
  // What S3 is to a real installation.
  const objects = join(folder, 'objects');
  await mkdir(objects);

  const nodes: ChaosNode[] = [];
  for (let index = 0; index < count; index += 1) {
    const dataDir = join(folder, `node-${index}`);
    const recordingsDir = join(dataDir, 'recordings');
    await mkdir(recordingsDir, { recursive: true });
    await symlink(objects, join(dataDir, 'objects'));
    const mount = ['-t', 'tmpfs', '-o', `size=${SMALL_DISK_BYTES}`, 'tmpfs', recordingsDir];
    const hasSmallDisk = spawnSync('mount', mount).status === 0;
    if (hasSmallDisk) opening.defer(() => void spawnSync('umount', [recordingsDir]));
    const { port: postgresPort } = new URL(postgres.url);
    const toPostgres = await openCuttableProxy({ host: '127.0.0.1', port: Number(postgresPort) });
    opening.defer(() => toPostgres.close());
    const toRedis = redis && (await openCuttableProxy({ host: '127.0.0.1', port: redis.port }));
    if (toRedis) opening.defer(() => toRedis.close());
    const env = {
      ...environment(dataDir),
      DATABASE_URL: Object.assign(new URL(postgres.url), { port: String(toPostgres.port) }).href,
      ...(toRedis && { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` }),
      TANDEM_SECRET_KEY: Buffer.alloc(32, 5).toString('base64'),
      LIMITS_ENTERPRISE_PER_MINUTE: '1000000',
      LIMITS_ENTERPRISE_PER_DAY: '100000000',
      RTP_PORT_MIN: String(38_000 + index * RTP_PORTS_EACH),
      RTP_PORT_MAX: String(38_000 + (index + 1) * RTP_PORTS_EACH - 1),
    };
    const node: ChaosNode = {
      ...{ name: `node-${index}`, recordingsDir, hasSmallDisk, postgres: toPostgres, redis: toRedis },
      ...{ server: null as unknown as ServerProcess, url: '', isUp: false },
      async start() {
        node.server = startServerProcess(env);
        const { server } = node;
        void server.exited.then(() => {
          if (node.server === server) node.isUp = false;
        });
        node.url = ((await server.logged('Tandem is ready')) as { url: string }).url;
        node.isUp = true;
      },
    };
    nodes.push(node);
    opening.defer(async () => {
      node.server?.child.kill('SIGCONT');
      node.server?.child.kill('SIGKILL');
      await node.server?.exited;
    });
    await node.start();
  }

  const { sql } = database;
  const agent = await startSoftphone({ name: 'agent', user: '+919811111111' });
  const customers = [
    await startSoftphone({ name: 'talks', user: '+919822222221' }),
    await startSoftphone({ name: 'hangs up', user: '+919822222222', autoHangupAfterMs: 3_000 }),
    await startSoftphone({ name: 'rings', user: '+919822222223', answer: 'manual' }),
    await startSoftphone({ name: 'is busy', user: '+919822222224', answer: { status: 486 } }),
    await startSoftphone({ name: 'answers late', user: '+919822222225', ringForMs: 2_000 }),
  ];
  const carrier = await startLoopbackCarrier({
    routes: new Map([agent, ...customers].map((phone) => [phone.user, phone.address])),
  });
  const receiver = await startCallbackReceiver(CALLBACK_SECRET);
  opening.defer(async () => {
    await Promise.all([agent, ...customers].map((phone) => phone.stop()));
    await Promise.all([carrier.stop(), receiver.stop()]);
  });
  const [workspace] = await sql<{ id: string }[]>`select id from workspaces order by created_at limit 1`;
  const workspaceId = workspace!.id;
  const url = nodes[0]!.url;
  await post(url, '/dialer/trunks', {
    ...{ name: 'Loopback', sip_uri: carrier.sipUri, numbers: ['+911140000001'], price_per_minute_usd: 0.6 },
    channels: 500,
  });
  await post(url, '/dialer/numbers', { e164: '+911140000001' });
  await topUp(sql, {
    ...{ workspaceId, amountNano: 500_000_000_000n, paymentType: 'one_time', operationKey: 'chaos', description: '' },
  });
  const opened = opening.move();
  return {
    ...{ sql, workspaceId, nodes, agent, customers, receiver, redis },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export async function post(url: string, path: string, body: object = {}): Promise<Response> {
  return await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
}

/** A Redis that keeps nothing on disk; null if it is not installed. */
async function openRedis(): Promise<ChaosRedis | null> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return null;
  const port = await freePort();
  let child: ChildProcess | null = null;
  const ask = (command: string) => spawnSync('redis-cli', ['-p', String(port), command], { encoding: 'utf8' }).stdout;
  const redis: ChaosRedis = {
    port,
    flush: () => void ask('flushall'),
    async kill() {
      const killed = child;
      if (killed === null || killed.exitCode !== null || killed.signalCode !== null) return;
      const exited = new Promise((resolve) => killed.once('exit', resolve));
      killed.kill('SIGKILL');
      await exited;
    },
    async start() {
      child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', tmpdir()], {
        stdio: 'ignore',
      });
      await eventually(() => ask('ping').includes('PONG'), 'Redis answers');
    },
  };
  await redis.start();
  return redis;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return port;
}
