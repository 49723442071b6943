import { randomUUID } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { TandemError } from '../../machines/errors.ts';
import { makeFolder } from '../../runtime/make-folder.ts';
import { BackupError } from '../../storage/backup/backup-error.ts';
import { type KeptObjects, openKeptObjects } from '../../storage/backup/kept-objects.ts';
import type { RestoreTarget } from '../../storage/backup/restore.ts';
import { readMasterKey, unusableFolder } from '../../storage/data-folder.ts';
import { connect, POOL_NAME, type Sql } from '../../storage/database.ts';
import { takeOwnership } from '../../storage/embedded/owner-lock.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { CommandError } from './command.ts';

/** Database and objects of a server, running or not. The schema stays unchanged. */
export interface PlatformStorage extends AsyncDisposable {
  sql: Sql;
  objects: KeptObjects;
  /** Id of the node; null without a data folder. */
  node: string | null;
  /** Null if unknown on this machine. */
  masterKey: Buffer | null;
}

/** Starts the embedded PostgreSQL if no server runs it. @throws CommandError NO_DATA, TandemError */
export async function openPlatformStorage(settings: Config): Promise<PlatformStorage> {
  const dataDir = resolve(settings.dataDir);
  await using opening = new AsyncDisposableStack();
  const url = settings.databaseUrl ?? (await embeddedUrl(dataDir, opening));
  const sql = openPool(url, opening);
  await requireReachable(sql);
  const objects = opening.use(await openKeptObjects(settings, { folder: join(dataDir, 'objects') }));
  const node = await readFile(join(dataDir, 'node-id'), 'utf8').catch(() => null);
  const masterKey = settings.secretKey ?? (await readMasterKey(dataDir));
  const opened = opening.move();
  return { sql, objects, node: node?.trim() ?? null, masterKey, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Locks the data folder, so that no server starts on it meanwhile. @throws BackupError TARGET_IN_USE, TandemError */
export async function openRestoreTarget(settings: Config): Promise<RestoreTarget> {
  const dataDir = resolve(settings.dataDir);
  await makeFolder(dataDir).catch((cause: Error) => {
    throw unusableFolder(dataDir, cause);
  });
  await using opening = new AsyncDisposableStack();
  const lock = await takeOwnership({ file: join(dataDir, 'owner'), what: `The data folder ${dataDir}` }).catch(
    (cause: unknown) => {
      if (!(cause instanceof TandemError)) throw cause;
      throw new BackupError('TARGET_IN_USE', `${cause.message} Stop the server before you restore.`, { cause });
    },
  );
  opening.defer(() => lock.release());
  const postgres = settings.databaseUrl === null ? await startPostgres(dataDir, opening) : null;
  const url = settings.databaseUrl ?? postgres!.url;
  const sql = openPool(url, opening);
  await requireReachable(sql);
  await requireUnused(sql);
  const objects = opening.use(await openKeptObjects(settings, { folder: join(dataDir, 'objects') }));
  const { secretKey: configuredKey, previousSecretKeys: previousKeys } = settings;
  const opened = opening.move();
  return {
    ...{ sql, objects, dataDir, configuredKey, previousKeys },
    async databaseCrash() {
      // Until it has stopped, its log may lag behind the loss of the connection.
      await postgres?.stop();
      return postgres?.crash ?? null;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export const newNodeId = randomUUID;

/** One connection: each command runs one statement at a time. */
function openPool(url: string, opening: AsyncDisposableStack): Sql {
  const sql = connect({ url, max: 1 });
  opening.defer(() => sql.end({ timeout: 5 }));
  return sql;
}

async function embeddedUrl(dataDir: string, opening: AsyncDisposableStack): Promise<string> {
  const running = await runningDatabaseUrl(dataDir);
  if (running !== null && (await isReachable(running))) return running;
  await access(join(dataDir, 'postgres', 'PG_VERSION')).catch((cause: unknown) => {
    const message = `${dataDir} has no database. Set TANDEM_DATA_DIR or DATABASE_URL.`;
    throw new CommandError('NO_DATA', message, { cause });
  });
  return (await startPostgres(dataDir, opening)).url;
}

async function startPostgres(dataDir: string, opening: AsyncDisposableStack): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir });
  opening.defer(() => postgres.stop());
  return postgres;
}

async function isReachable(url: string): Promise<boolean> {
  const sql = connect({ url, max: 1 });
  return await sql`select 1`
    .then(
      () => true,
      () => false,
    )
    .finally(() => sql.end({ timeout: 1 }));
}

async function requireReachable(sql: Sql): Promise<void> {
  await sql`select 1`.catch((cause: Error) => {
    throw new TandemError('STORAGE_UNAVAILABLE', `The database cannot be reached: ${cause.message}`, { cause });
  });
}

async function requireUnused(sql: Sql): Promise<void> {
  const [row] = await sql<{ connections: number }[]>`
    select count(*)::int as connections from pg_stat_activity
    where datname = current_database() and starts_with(application_name, ${POOL_NAME}) and pid <> pg_backend_pid()`;
  if (row!.connections === 0) return;
  throw new BackupError('TARGET_IN_USE', 'A server is connected to the database. Stop it before you restore.');
}
