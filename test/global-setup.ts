import { once } from 'node:events';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../storage/embedded/postgres.ts';

/**
 * Provides one embedded Postgres to all test files of a run. It starts when the first test file asks for its URL, so
 * that runs without a database do not pay for it. Test files find us at `TANDEM_TEST_POSTGRES`.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(path.join(await clusterFolder(), 'tandem-test-run-'));
  let postgres: Promise<EmbeddedPostgres> | null = null;
  const server = createServer((_, response) => {
    postgres ??= startEmbeddedPostgres({ dataDir, settings: SETTINGS });
    postgres.then(
      ({ url }) => response.end(url),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.env.TANDEM_TEST_POSTGRES = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // Threads and child processes load the same TypeScript hundreds of times; compiling it is most of their start.
  process.env.NODE_COMPILE_CACHE ??= path.resolve('node_modules/.cache/test-compilations');
  return async () => {
    server.closeAllConnections();
    server.close();
    await (await postgres?.catch(() => null))?.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
}

/**
 * Memory rather than a disk, where there is enough of it: a database is some 600 files, and creating so many took 25
 * times the CPU time on an ext4 disk. Containers often have 64 MB there, and other systems have no such folder.
 */
async function clusterFolder(): Promise<string> {
  const memory = await statfs(MEMORY_FOLDER).catch(() => null);
  return memory !== null && memory.bavail * memory.bsize > CLUSTER_BYTES ? MEMORY_FOLDER : tmpdir();
}

const MEMORY_FOLDER = '/dev/shm';
/** Databases of 11 MB for the tests that run at the same time, and the write-ahead log. */
const CLUSTER_BYTES = 2 ** 30;

/** Fast rather than durable, because nothing in it outlives the run. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  checkpoint_timeout: '1h',
  // A worker of it in a database keeps its owner, who is no superuser, from dropping it.
  autovacuum: 'off',
  max_wal_size: '256MB',
  // Several test files at once, each with some pools of 10 to 20 connections.
  max_connections: 400,
  // Logging in costs a key derivation for each connection.
  scram_iterations: 1,
};
