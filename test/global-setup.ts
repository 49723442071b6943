import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, constants, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from '../storage/embedded/owner-lock.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../storage/embedded/postgres.ts';
import { type SwiftProcess, startSwift } from './storage/s3/swift-process.ts';

/**
 * Provides what test files share, each created on first use: one embedded Postgres (`GET /postgres` at `TANDEM_TEST_RUN`
 * returns its URL), one S3 server (`GET /s3` returns its port) and one build of the console (`GET /console` waits for
 * it). Temporary files of all tests are in one folder, deleted after the run.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  const folder = await openRunFolder();
  process.env.TMPDIR = folder;
  let postgres: Promise<EmbeddedPostgres> | null = null;
  let console: Promise<unknown> | null = null;
  let swift: Promise<SwiftProcess> | null = null;
  const postgresUrl = async () => {
    postgres ??= startEmbeddedPostgres({ dataDir: path.join(folder, 'shared-postgres'), settings: SETTINGS });
    return (await postgres).url;
  };
  const builtConsole = async () => {
    // A child process, because a build sets NODE_ENV.
    console ??= promisify(execFile)(process.execPath, [path.resolve('console/build.ts')]);
    await console;
    return 'built';
  };
  const s3Port = async () => {
    swift ??= startSwift(path.join(folder, 'swift'));
    return String((await swift).port);
  };
  const server = createServer(({ url }, response) => {
    const made = url === '/console' ? builtConsole() : url === '/s3' ? s3Port() : postgresUrl();
    made.then(
      (text) => response.end(text),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.env.TANDEM_TEST_RUN = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // Threads and child processes load the same TypeScript hundreds of times; compilation dominates their start.
  process.env.NODE_COMPILE_CACHE ??= path.resolve('node_modules/.cache/test-compilations');
  return async () => {
    server.closeAllConnections();
    server.close();
    await (await swift?.catch(() => null))?.stop();
    await (await postgres?.catch(() => null))?.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

const FOLDER_PREFIX = 'tandem-test-run-';
const MEMORY_FOLDER = '/dev/shm';
/** Concurrent test databases of 11 MB, the write-ahead log and test recordings. */
const NEEDED_BYTES = 2 * 2 ** 30;

/**
 * A memory file system if it has room: a database has 600 files, and creating them took 25 times the CPU time on ext4.
 * Containers often have only 64 MB there, and other systems no such folder.
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
  // As for any temporary folder: everyone may write, and delete only their own files.
  await chmod(folder, 0o1777);
  return folder;
}

/** Frees the memory of killed runs. */
async function deleteAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = Number(name.startsWith(FOLDER_PREFIX) ? name.slice(FOLDER_PREFIX.length).split('-')[0] : Number.NaN);
    // Processes of that run may still write there.
    if (pid > 0 && !isAlive(pid)) await rm(path.join(parent, name), { recursive: true, force: true }).catch(() => {});
  }
}

/** Some tests run programs that they write, which a file system may forbid. */
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

/** Fast rather than durable, since nothing outlives the run. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  checkpoint_timeout: '1h',
  // A worker in a database prevents its owner, no superuser, from dropping it.
  autovacuum: 'off',
  max_wal_size: '256MB',
  // For several concurrent test files with pools of 10 to 20 connections.
  max_connections: 400,
  // Backends are many and short.
  io_method: 'sync',
  jit: 'off',
  max_parallel_workers_per_gather: 0,
  // Each login costs a key derivation.
  scram_iterations: 1,
};
