import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect, openDatabase, type Sql } from '../../storage/database.ts';
import { startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { readMigrations } from '../../storage/migrate.ts';
import { askTestRun } from '../test-run.ts';
import { deleteRows, fingerprintOf } from './emptied-database.ts';

/** URL of the optional external server. */
export const EXTERNAL_URL = process.env.TANDEM_TEST_DATABASE_URL ?? 'postgres://root:test@127.0.0.1:5432/test';

/** An empty, migrated database. Drop it after the test, for example with `await using`. */
export interface TestDatabase extends AsyncDisposable {
  readonly sql: Sql;
  readonly url: string;
  drop(): Promise<void>;
}

export interface TestServer {
  readonly kind: 'embedded' | 'external';
  createDatabase(options?: { max?: number }): Promise<TestDatabase>;
  close(): Promise<void>;
}

export async function createTestDatabase(options: { max?: number } = {}): Promise<TestDatabase> {
  const server = await openEmbeddedServer();
  const database = await server.createDatabase(options);
  const drop = async () => {
    await database.drop();
    await server.close();
  };
  return { sql: database.sql, url: database.url, drop, [Symbol.asyncDispose]: drop };
}

let reachable: Promise<boolean> | null = null;

export function externalIsReachable(): Promise<boolean> {
  reachable ??= (async () => {
    const sql = connect({ url: EXTERNAL_URL, max: 1, connectTimeoutMs: 1_000 });
    try {
      await sql`select 1`;
      return true;
    } catch {
      return false;
    } finally {
      await sql.end({ timeout: 0 });
    }
  })();
  return reachable;
}

export function externalServer(): TestServer {
  return serverAt('external', EXTERNAL_URL);
}

/** The embedded Postgres shared by all test files (`test/global-setup.ts`), or a new one outside of a run. */
export async function openEmbeddedServer(): Promise<TestServer> {
  if (process.env.TANDEM_TEST_RUN !== undefined) {
    // Its connections end with the process and its cluster with the run.
    sharedServer ??= askTestRun('/postgres').then((url) => serverAt('embedded', url));
    return { ...(await sharedServer), close: async () => {} };
  }
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tandem-test-'));
  const { url, stop } = await startEmbeddedPostgres({ dataDir });
  const server = serverAt('embedded', url);
  const close = async () => {
    await server.close();
    await stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { ...server, close };
}

let sharedServer: Promise<TestServer> | null = null;

function serverAt(kind: TestServer['kind'], url: string): TestServer {
  const admin = connect({ url, max: 2 });
  const emptied: string[] = [];
  let template: Promise<string> | null = null;
  let pristine: Promise<string | null> | null = null;

  async function newDatabase(): Promise<string> {
    template ??= migratedTemplate(admin, url);
    const name = `tandem_test_${randomBytes(6).toString('hex')}`;
    // Copying files takes a third of the CPU time of logging, but flushes unless fsync is disabled.
    const strategy = kind === 'embedded' ? 'file_copy' : 'wal_log';
    await admin.unsafe(`create database ${name} template ${await template} strategy ${strategy}`);
    return name;
  }

  const dropDatabase = (name: string) => admin.unsafe(`drop database if exists ${name} with (force)`);

  async function inside<T>(name: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    const sql = connect({ url: withDatabase(url, name), max: 1 });
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  /** Empties the database for reuse, or drops it if a test changed the schema. */
  async function recycle(name: string): Promise<void> {
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    const isSame = await inside(name, async (sql) => {
      if ((await fingerprintOf(sql)) !== (await pristine)) return false;
      await deleteRows(sql);
      return true;
    });
    if (isSame) emptied.push(name);
    else await dropDatabase(name);
  }

  return {
    kind,
    async createDatabase({ max = 10 } = {}) {
      const name = emptied.pop() ?? (await newDatabase());
      pristine ??= inside(name, fingerprintOf);
      const isRecyclable = (await pristine) !== null;
      const databaseUrl = withDatabase(url, name);
      const sql = connect({ url: databaseUrl, max });
      const drop = async () => {
        await sql.end({ timeout: 1 });
        await (isRecyclable ? recycle(name) : dropDatabase(name));
      };
      return { sql, url: databaseUrl, drop, [Symbol.asyncDispose]: drop };
    },
    async close() {
      for (const name of emptied.splice(0)) await dropDatabase(name);
      await admin.end({ timeout: 1 });
    },
  };
}

/** One template per set of migrations; concurrent test processes wait for the first. */
async function migratedTemplate(admin: Sql, url: string): Promise<string> {
  const checksums = (await readMigrations()).map((migration) => migration.checksum).join();
  const name = `tandem_template_${createHash('sha256').update(checksums).digest('hex').slice(0, 12)}`;
  const connection = await admin.reserve();
  try {
    await connection`select pg_advisory_lock(hashtext(${name}))`;
    const [existing] = await connection`select 1 from pg_database where datname = ${name}`;
    if (existing) return name;
    await connection.unsafe(`drop database if exists ${name}_draft with (force)`);
    await connection.unsafe(`create database ${name}_draft`);
    await (await openDatabase({ url: withDatabase(url, `${name}_draft`), max: 1 })).close();
    await connection.unsafe(`alter database ${name}_draft rename to ${name}`);
    return name;
  } finally {
    await connection`select pg_advisory_unlock(hashtext(${name}))`;
    connection.release();
  }
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
