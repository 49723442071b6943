import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { connect, type Sql } from '../storage/database.ts';
import { findBinaries } from '../storage/embedded/postgres.ts';
import { runningDatabaseUrl } from '../storage/embedded/running.ts';
import { readMigrations } from '../storage/migrate.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

const OLDEST_SERVER = 150_000;
const CONNECT_TIMEOUT_MS = 3_000;

export interface CheckedDatabase {
  findings: Finding[];
  /** Open if the database responds; the caller closes it. */
  sql: Sql | null;
}

/** Checks the database at DATABASE_URL, or the embedded one, which runs only while its server does. */
export async function checkDatabase(config: Config): Promise<CheckedDatabase> {
  if (config.databaseUrl !== null)
    return await ask(config.databaseUrl, 'Check DATABASE_URL, and that the server lets this machine in.');
  const running = await runningDatabaseUrl(config.dataDir);
  const cluster = await checkCluster(config.dataDir);
  if (running === null || cluster.status === 'fail') return { findings: [cluster], sql: null };
  const sql = connect({ url: running, max: 1, connectTimeoutMs: CONNECT_TIMEOUT_MS });
  try {
    return { findings: await describeServer(sql), sql };
  } catch {
    await sql.end({ timeout: 0 });
    const message = 'The embedded one was not shut down in order; the next start recovers it.';
    return { findings: [ok('database', message)], sql: null };
  }
}

async function ask(url: string, advice: string): Promise<CheckedDatabase> {
  const sql = connect({ url, max: 1, connectTimeoutMs: CONNECT_TIMEOUT_MS });
  try {
    return { findings: await describeServer(sql), sql };
  } catch (error) {
    await sql.end({ timeout: 0 });
    return { findings: [fail('database', `It cannot be used: ${reasonOf(error)}`, advice)], sql: null };
  }
}

/** Checks the server's version, and that its schema matches this program. */
export async function describeServer(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<{ version: number; name: string; hasMigrations: boolean }[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
      to_regclass('schema_migrations') is not null as has_migrations`;
  const { version, name, hasMigrations } = row!;
  if (version < OLDEST_SERVER) {
    return [fail('database', `PostgreSQL ${name} is too old.`, 'Upgrade it to 15 or newer.')];
  }
  const applied = hasMigrations
    ? await sql<{ name: string; checksum: string }[]>`select name, checksum from schema_migrations order by name`
    : [];
  return [ok('database', `PostgreSQL ${name}`), describeSchema(applied, await readMigrations())];
}

function describeSchema(
  applied: readonly { name: string; checksum: string }[],
  known: readonly { name: string; checksum: string }[],
): Finding {
  const stranger = applied.find(({ name }, index) => known[index]?.name !== name);
  if (stranger !== undefined) {
    const message = `It has migration ${stranger.name}, which this version does not know.`;
    return fail('schema', message, 'Run the newer version that made it, or restore a backup from before.');
  }
  const changed = applied.find(({ checksum }, index) => known[index]?.checksum !== checksum);
  if (changed !== undefined) {
    const message = `Migration ${changed.name} is not the one that was applied.`;
    return fail('schema', message, 'Check out the version that the database was made with, unchanged.');
  }
  const pending = known.length - applied.length;
  if (pending === 0) return ok('schema', `all ${known.length} migrations are applied`);
  return ok('schema', `${applied.length} of ${known.length} migrations are applied; the next start applies the rest`);
}

/** Checks the embedded server without starting it. */
async function checkCluster(dataDir: string): Promise<Finding> {
  const directory = join(resolve(dataDir), 'postgres');
  let major: string;
  try {
    ({ major } = await findBinaries());
  } catch (error) {
    return fail('database', reasonOf(error), 'Run npm ci with optional dependencies, or set DATABASE_URL.');
  }
  try {
    const version = (await readFile(join(directory, 'PG_VERSION'), 'utf8')).trim();
    if (version === major)
      return ok('database', `embedded PostgreSQL ${version} in ${directory}; it starts with the server`);
    const message = `${directory} was made by PostgreSQL ${version}, and this program brings ${major}.`;
    return fail('database', message, 'Dump it with the old version and restore it, or set DATABASE_URL.');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return ok('database', `embedded PostgreSQL ${major}; the first start makes it in ${directory}`);
    }
    const message = `${directory} cannot be read: ${reasonOf(error)}`;
    return warn('database', message, 'Run the doctor as the user that runs the server.');
  }
}

/** Null if Redis is not configured. */
export async function checkRedis({ redisUrl }: Config): Promise<Finding | null> {
  if (redisUrl === null) return null;
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The event has the reason; `connect` only reports that the connection is closed.
  let complaint: Error | null = null;
  redis.on('error', (error) => {
    complaint ??= error;
  });
  try {
    await redis.connect();
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'of an unknown version';
    const policy = /maxmemory_policy:(\S+)/.exec(await redis.info('memory'))?.[1];
    if (policy !== undefined && policy !== 'noeviction') {
      const message = `Redis ${version} may evict jobs when its memory is full (maxmemory-policy ${policy}).`;
      return warn('Redis', message, 'Start it with --maxmemory-policy noeviction.');
    }
    return ok('Redis', `Redis ${version}`);
  } catch (error) {
    return fail(
      'Redis',
      `Redis is not usable: ${reasonOf(complaint ?? error)}`,
      'Check REDIS_URL, or unset it to keep jobs in PostgreSQL.',
    );
  } finally {
    redis.disconnect();
  }
}
