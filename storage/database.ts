import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { TandemError } from '../machines/errors.ts';
import { parseExactJson } from './exact-json.ts';
import { migrate } from './migrate.ts';

/** The types our connections read and write beyond the library's own: Postgres bigint is a JavaScript bigint. */
type Types = { bigint: bigint };

/** The pool. Rows come with camelCase keys, bigint as bigint, timestamptz as Date (milliseconds). */
export type Sql = postgres.Sql<Types>;
/** One transaction on one connection. */
export type Tx = postgres.TransactionSql<Types>;
/** What every query takes first: the pool, or the transaction it has to be part of. */
export type SqlOrTx = postgres.ISql<Types>;

export interface Database {
  readonly sql: Sql;
  /** Waits for running queries, at most 5 s, then closes every connection. Idempotent. */
  close(): Promise<void>;
}

export interface StorageLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface OpenDatabaseOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Connections in the pool. Default 10. */
  max?: number;
  /** How long to wait for the first connection. Default 5 000 ms. */
  connectTimeoutMs?: number;
  /**
   * How long a transaction may wait for its process. Then the server rolls it back, so that a process that is frozen or cut
   * off does not keep the locks that others need to settle its calls. Default 5 000 ms.
   */
  idleInTransactionMs?: number;
  logger?: StorageLogger;
}

/** Most connections of the pool of a server. */
export const POOL_SIZE = 16;

/**
 * Connects, brings the schema up to date and returns the pool.
 * @throws TandemError `STORAGE_UNAVAILABLE` with a one-line reason when the server cannot be reached, refuses the
 * login, is older than Postgres 15, or carries a schema this version does not know.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<Database> {
  const sql = connect(options);
  try {
    await requireSupportedServer(sql);
    await migrate(sql, { logger: options.logger });
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw error instanceof TandemError ? error : unavailable(options.url, error);
  }
  return { sql, close: () => sql.end({ timeout: 5 }) };
}

/**
 * A pool without looking at the schema: for tests and the tools that create databases.
 *
 * A connection of the library that was cut may keep half of what it was writing and wait for ever after it has
 * connected again (postgres 3.4.9 neither empties its buffer nor forgets its timer). So the first connection that is
 * lost retires the whole pool: new queries go to a fresh one, those under way may end within 5 s.
 */
export function connect(options: OpenDatabaseOptions): Sql {
  // Its own, so that the connections of this pool can be counted.
  const name = `tandem-${randomBytes(4).toString('hex')}`;
  const open = () => openPool(options, { name, onLost: retire });
  let current = open();
  let ended = false;

  function retire(pool: Sql): void {
    if (pool !== current || ended) return;
    current = open();
    void pool.end({ timeout: 5 });
  }

  async function end(when?: { timeout?: number }): Promise<void> {
    ended = true;
    await current.end(when);
  }

  return new Proxy(current, {
    apply: (_, self, args) => Reflect.apply(current as never, self, args),
    get: (_, key) => (key === 'end' ? end : Reflect.get(current, key)),
  });
}

/** Of type json, which keeps a document as it was written (metadata); jsonb does not, and is read as usual. */
const EXACT_JSON = {
  to: 114,
  from: [114],
  serialize: (value: unknown) => JSON.stringify(value),
  parse: parseExactJson,
};

function openPool(
  { url, max = 10, connectTimeoutMs = 5_000, idleInTransactionMs = 5_000, logger }: OpenDatabaseOptions,
  { name, onLost }: { name: string; onLost: (pool: Sql) => void },
): Sql {
  try {
    const pool: Sql = postgres(url, {
      max,
      connect_timeout: Math.max(1, Math.ceil(connectTimeoutMs / 1000)),
      // No connection is closed but by us, or because it was lost.
      max_lifetime: null,
      idle_timeout: 0,
      onclose: () => onLost(pool),
      types: { bigint: postgres.BigInt, exactJson: EXACT_JSON },
      // Column names only: the keys inside metadata are the client's and stay as they are.
      transform: { column: { from: postgres.toCamel, to: postgres.fromCamel }, undefined: null },
      onnotice: (notice) => logger?.info({ notice: notice.message }, 'postgres notice'),
      connection: {
        application_name: name,
        TimeZone: 'UTC',
        client_min_messages: 'warning',
        idle_in_transaction_session_timeout: idleInTransactionMs,
      },
    });
    return pool;
  } catch (error) {
    throw unavailable(url, error);
  }
}

/**
 * Runs `work` in one transaction, joining the one it is given if it already is in one.
 *
 * The library answers every failure of `work` with a rollback and its end with a commit, also on a connection that is
 * gone, and a write to that throws where nobody can catch it: the whole process ends (postgres 3.4.9, `nextWrite` on a
 * null socket). So once the connection is lost `work` never seems to end; the transaction is rejected all the same.
 */
export async function inTransaction<T>(sql: SqlOrTx, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (!isPool(sql)) return await work(sql as Tx);
  const lost = Promise.withResolvers<never>();
  let over = false;
  const refuseWhenOver = () => {
    if (over) throw Object.assign(new Error('the transaction is over'), { code: 'CONNECTION_CLOSED' });
  };
  const committed = sql
    .begin(async (tx) => {
      try {
        const result = await work(guarded(tx, refuseWhenOver));
        refuseWhenOver();
        return result;
      } catch (error) {
        if (!over && !isConnectionLoss(error)) throw error;
        lost.reject(error);
        return await new Promise<never>(() => {});
      }
    })
    .finally(() => {
      over = true;
    });
  return (await Promise.race([committed, lost.promise])) as T;
}

/** Asks `check` before every statement. */
function guarded(tx: Tx, check: () => void): Tx {
  return new Proxy(tx, {
    apply(target, self, args) {
      check();
      return Reflect.apply(target as never, self, args);
    },
    get(target, key, receiver) {
      check();
      return Reflect.get(target, key, receiver);
    },
  });
}

/** The library's own codes, the system's, and what the server says before it hangs up. */
function isConnectionLoss(error: unknown): boolean {
  const { code, severity, errno } = (error ?? {}) as { code?: unknown; severity?: unknown; errno?: unknown };
  if (severity === 'FATAL' || severity === 'PANIC') return true;
  return typeof code === 'string' && (/^CONNECT(ION)?_/.test(code) || typeof errno === 'number' || code === 'EPIPE');
}

/** Whether an error means that the database cannot be used now: the same request may succeed later. */
export function isStorageOutage(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null)?.code ?? '');
  return (
    /^(CONNECTION_|CONNECT_TIMEOUT)/.test(code) ||
    /^(ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)/.test(code) ||
    // 08: connection; 53: resources; 57P: shutting down or starting; 40: serialisation, deadlock; 55P03: lock timeout;
    // 25P03: a transaction that was idle for too long.
    /^(08|53|40)[0-9A-Z]{3}$|^57P0[0-9]$|^57014$|^55P03$|^25P03$/.test(code)
  );
}

function isPool(sql: SqlOrTx): sql is Sql {
  return 'begin' in sql;
}

const OLDEST_SERVER_VERSION = 150_000;

async function requireSupportedServer(sql: Sql): Promise<void> {
  const [row] = await sql<{ version: number; name: string }[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as name`;
  if (row && row.version < OLDEST_SERVER_VERSION) {
    throw new TandemError('STORAGE_UNAVAILABLE', `Postgres 15 or newer is needed; this server is ${row.name}.`);
  }
}

function unavailable(url: string, cause: unknown): TandemError {
  const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : String(cause);
  return new TandemError('STORAGE_UNAVAILABLE', `Cannot use the database at ${withoutPassword(url)}: ${reason}`, {
    cause,
  });
}

function withoutPassword(url: string): string {
  try {
    const parsed = new URL(url);
    return `${parsed.hostname}:${parsed.port || '5432'}${parsed.pathname}`;
  } catch {
    return 'DATABASE_URL (it is not a URL)';
  }
}
