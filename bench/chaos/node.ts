import { spawnSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import type { NetConnectOpts } from 'node:net';
import { join } from 'node:path';
import { environment } from '../../test/process/ready-server.ts';
import { type ServerProcess, startServerProcess } from '../../test/process/server-process.ts';
import { addressOf, throughPort } from '../../test/storage/database-address.ts';
import { type CuttableProxy, openCuttableProxy } from './cuttable-proxy.ts';
import type { ChaosPostgres, ChaosRedis, ChaosSipServer } from './services.ts';

const RTP_PORTS = { first: 28_000, each: 400 };
const SMALL_DISK_BYTES = 16_000_000;

/** A server process with its own data folder and its own proxies to Postgres, Redis and the SIP server. */
export interface ChaosNode extends AsyncDisposable {
  readonly name: string;
  readonly recordingsDir: string;
  /** Recordings are on a small disk of their own, which can be filled. */
  readonly hasSmallDisk: boolean;
  readonly postgres: CuttableProxy;
  readonly redis: CuttableProxy | null;
  /** Null: it has an embedded SIP server. */
  readonly sip: CuttableProxy | null;
  /** Shifts its clock by seconds relative to ours. Null: impossible here. */
  readonly setClock: ((differenceS: number) => Promise<void>) | null;
  server: ServerProcess;
  url: string;
  isUp: boolean;
  start(): Promise<void>;
}

export interface ChaosNodeOptions {
  index: number;
  folder: string;
  /** Shared folder in place of S3. */
  objectsDir: string;
  postgres: ChaosPostgres;
  redis: ChaosRedis | null;
  /** Null: each node has an embedded one. */
  sip: ChaosSipServer | null;
  /** Library of Debian's package `libfaketime`; null: the clock cannot be set. */
  clockLibrary: string | null;
  /** More settings. */
  env: Record<string, string>;
}

/** Prepares a node; `start` starts its process. */
export async function openNode(options: ChaosNodeOptions): Promise<ChaosNode> {
  const { index, folder, objectsDir, postgres, redis, sip, clockLibrary } = options;
  await using opening = new AsyncDisposableStack();
  const name = `node-${index}`;
  const dataDir = join(folder, name);
  const recordingsDir = join(dataDir, 'recordings');
  await mkdir(recordingsDir, { recursive: true });
  await symlink(objectsDir, join(dataDir, 'objects'));
  const mount = ['-t', 'tmpfs', '-o', `size=${SMALL_DISK_BYTES}`, 'tmpfs', recordingsDir];
  const hasSmallDisk = spawnSync('mount', mount).status === 0;
  if (hasSmallDisk) opening.defer(() => void spawnSync('umount', [recordingsDir]));
  const proxyTo = async (address: () => NetConnectOpts) => {
    const proxy = await openCuttableProxy(address);
    opening.defer(() => proxy.close());
    return proxy;
  };
  const toPostgres = await proxyTo(() => addressOf(postgres.url));
  const toRedis = redis && (await proxyTo(() => ({ host: '127.0.0.1', port: redis.port })));
  const toSip = sip && (await proxyTo(() => ({ host: '127.0.0.1', port: sip.port })));
  const clockFile = join(folder, `${name}.clock`);
  const setClock = clockLibrary === null ? null : (differenceS: number) => setDifference(clockFile, differenceS);
  await setClock?.(0);
  const firstRtpPort = RTP_PORTS.first + index * RTP_PORTS.each;
  const env = {
    ...environment(dataDir),
    DATABASE_URL: throughPort(postgres.url, toPostgres.port),
    ...(toRedis && { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` }),
    ...(toSip && sip && { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(toSip.port), DRACHTIO_SECRET: sip.secret }),
    ...(clockLibrary !== null && {
      LD_PRELOAD: clockLibrary,
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }),
    TANDEM_SECRET_KEY: Buffer.alloc(32, 5).toString('base64'),
    RTP_PORT_MIN: String(firstRtpPort),
    RTP_PORT_MAX: String(firstRtpPort + RTP_PORTS.each - 1),
    ...options.env,
  };
  opening.defer(async () => {
    node.server?.child.kill('SIGCONT');
    node.server?.child.kill('SIGKILL');
    await node.server?.exited;
  });
  const opened = opening.move();
  const node: ChaosNode = {
    ...{ name, recordingsDir, hasSmallDisk, setClock, postgres: toPostgres, redis: toRedis, sip: toSip },
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
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return node;
}

async function setDifference(clockFile: string, differenceS: number): Promise<void> {
  await writeFile(clockFile, `${differenceS < 0 ? '' : '+'}${differenceS}\n`);
}
