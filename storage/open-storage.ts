import { type Bootstrapped, bootstrap } from './bootstrap.ts';
import { type DataFolder, openDataFolder } from './data-folder.ts';
import { openDatabase, POOL_SIZE, type Sql, type StorageLogger } from './database.ts';
import { startEmbeddedPostgres } from './embedded/postgres.ts';
import { type Jobs, openJobs } from './jobs.ts';
import type { Limits } from './limits/limits.ts';
import { openLimits } from './limits/open-limits.ts';
import { type NodeDirectory, openNodeDirectory } from './nodes/node-directory.ts';
import { type NodeRelay, openNodeRelay } from './nodes/node-relay.ts';
import type { ObjectStore } from './objects.ts';
import { openObjects } from './open-objects.ts';
import { resealSecrets, warnOfUnknownKeys } from './reseal-secrets.ts';
import type { S3Config } from './s3/bucket-settings.ts';
import { createSecretBox, type SecretBox } from './secrets.ts';

/** The settings that storage needs; documented in `settings.ts`. */
export interface StorageSettings extends S3Config {
  readonly dataDir: string;
  readonly secretKey: Buffer | null;
  readonly previousSecretKeys: readonly Buffer[];
  readonly databaseUrl: string | null;
  readonly redisUrl: string | null;
  readonly enterprisePerMinute: number;
  readonly enterprisePerDay: number;
  readonly ownerEmail: string | null;
  readonly ownerPassword: string | null;
  readonly apiKey: string | null;
}

export interface OpenStorageOptions {
  /** Program version for the node directory. Default: unknown. */
  version?: string;
  logger: StorageLogger;
  /** Called if the embedded Postgres ends unexpectedly, or another node takes over this one. */
  onLost: (reason: string) => void;
}

export interface Storage extends AsyncDisposable {
  readonly folder: DataFolder;
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly objects: ObjectStore;
  readonly secrets: SecretBox;
  readonly jobs: Jobs;
  readonly limits: Limits;
  readonly nodes: NodeDirectory;
  /** Opens the relay of messages between nodes. */
  openRelay(): Promise<NodeRelay>;
  /** First workspace, created on the first start. */
  readonly owner: Bootstrapped;
}

/**
 * Opens the data folder, the database (embedded Postgres unless `databaseUrl` is set), objects, jobs and limits.
 * Migrates the database, reseals secrets after a key rotation and creates the first workspace.
 * @throws TandemError `STORAGE_UNAVAILABLE`
 */
export async function openStorage(settings: StorageSettings, options: OpenStorageOptions): Promise<Storage> {
  const { version = null, logger, onLost } = options;
  await using opening = new AsyncDisposableStack();
  const folder = await openDataFolder(settings.dataDir, settings.secretKey ?? undefined);
  opening.defer(() => folder.close());
  const databaseUrl = settings.databaseUrl ?? (await startDatabase());
  const database = await openDatabase({ url: databaseUrl, max: POOL_SIZE, logger });
  opening.defer(() => database.close());
  const { sql } = database;
  const objects = await openObjects(settings, { folder: folder.objectsDir, logger });
  opening.defer(() => objects.close());
  const secrets = createSecretBox(folder.masterKey, settings.previousSecretKeys);
  if (settings.previousSecretKeys.length > 0) await resealSecrets(sql, secrets, { logger });
  await warnOfUnknownKeys(sql, [folder.masterKey, ...settings.previousSecretKeys], { logger });
  const { redisUrl } = settings;
  const jobs = await openJobs({ databaseUrl, logger, ...(redisUrl && { redisUrl }) });
  opening.defer(() => jobs.close());
  const enterprise = { perMinute: settings.enterprisePerMinute, perDay: settings.enterprisePerDay };
  const limits = await openLimits({ redisUrl, plans: { enterprise }, logger });
  opening.defer(() => limits.close());
  const owner = await bootstrap(sql, settings);
  const nodes = await openNodeDirectory({ ...folder, version, sql, logger, onExpelled: onLost });
  opening.defer(() => nodes.close());
  const openRelay = () => openNodeRelay({ databaseUrl, redisUrl, boot: folder.boot, logger });
  const opened = opening.move();
  return {
    folder,
    databaseUrl,
    sql,
    objects,
    secrets,
    jobs,
    limits,
    nodes,
    openRelay,
    owner,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };

  async function startDatabase(): Promise<string> {
    const postgres = await startEmbeddedPostgres({ dataDir: folder.path, logger, onExit: onLost });
    opening.defer(() => postgres.stop());
    return postgres.url;
  }
}
