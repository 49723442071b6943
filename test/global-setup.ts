import { once } from 'node:events';
import { access, chmod, constants, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isAlive } from '../storage/embedded/owner-lock.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../storage/embedded/postgres.ts';

/**
 * Provides one embedded Postgres to all test files of a run. It starts when the first test file asks for its URL, so
 * that runs without a database do not pay for it. Test files find us at `TANDEM_TEST_POSTGRES`. The temporary files
 * of all tests are in one folder, which is deleted when the run ends.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  const folder = await openRunFolder();
  process.env.TMPDIR = folder;
  let postgres: Promise<EmbeddedPostgres> | null = null;
  const server = createServer((_, response) => {
    postgres ??= startEmbeddedPostgres({ dataDir: path.join(folder, 'shared-postgres'), settings: SETTINGS });
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
    await rm(folder, { recursive: true, force: true });
  };
}

const FOLDER_PREFIX = 'tandem-test-run-';
const MEMORY_FOLDER = '/dev/shm';
/** Databases of 11 MB for the tests that run at the same time, the write-ahead log, and what tests record. */
const NEEDED_BYTES = 2 * 2 ** 30;

/**
 * In memory rather than on a disk, where that has room: a database is some 600 files, and creating so many took 25 times
 * the CPU time on an ext4 disk. Containers often have 64 MB there, and other systems have no such folder.
 */
async function openRunFolder(): Promise<string> {
  const space = await statfs(MEMORY_FOLDER).catch(() => null);
  if (space === null || space.bavail * space.bsize < NEEDED_BYTES) return await newRunFolder(tmpdir());
  await deleteAbandoned(MEMORY_FOLDER);
  const folder = await newRunFolder(MEMORY_FOLDER);
  if (await canExecuteIn(folder)) return folder;
  await rm(folder, { recursive: true });
  return await newRunFolder(tmpdir());
}

async function newRunFolder(parent: string): Promise<string> {
  const folder = await mkdtemp(path.join(parent, `${FOLDER_PREFIX}${process.pid}-`));
  // As for any folder of temporary files: everyone may write, and delete only their own.
  await chmod(folder, 0o1777);
  return folder;
}

/** Frees the memory that runs which were killed still hold. */
async function deleteAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = Number(name.startsWith(FOLDER_PREFIX) ? name.slice(FOLDER_PREFIX.length).split('-')[0] : Number.NaN);
    // Processes of that run may still write there.
    if (pid > 0 && !isAlive(pid)) await rm(path.join(parent, name), { recursive: true, force: true }).catch(() => {});
  }
}

/** Some tests write programs and run them, which a file system may forbid. */
async function canExecuteIn(folder: string): Promise<boolean> {
  const file = path.join(folder, 'program');
  await writeFile(file, '', { mode: 0o755 });
  const isAllowed = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  await rm(file);
  return isAllowed;
}

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
