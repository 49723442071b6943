import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { TandemError } from '../machines/errors.ts';
import { ARRAY_TYPES } from './array-types.ts';
import { parseExactJson } from './exact-json.ts';
import { migrate } from './migrate.ts';

/** Types beyond the library's own: Postgres bigint becomes a JavaScript bigint. */
type Types = { bigint: bigint };

/** The connection pool. Rows have camelCase keys, bigint as bigint, timestamptz as Date (milliseconds). */
export type Sql = postgres.Sql<Types>;
/** One transaction on one connection. */
export type Tx = postgres.TransactionSql<Types>;
/** First argument of every query: the pool or a transaction. */
export type SqlOrTx = postgres.ISql<Types>;

export interface Database {
  readonly sql: Sql;
  /** Waits up to 5 s for running queries, then closes every connection. Idempotent. */
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
  /** Timeout of the first connection. Default 5 000 ms. */
  connectTimeoutMs?: number;
  /**
   * Longest that a transaction may be idle before the server rolls it back. Otherwise a frozen or disconnected process
   * would keep locks that others need to settle its calls. Default 5 000 ms.
   */
  idleInTransactionMs?: number;
  logger?: StorageLogger;
}

/** Begins the application name of every pool's connections, by which tools recognise a running server. */
export const POOL_NAME = 'tandem-';

/** Maximum connections of a server's pool. */
export const POOL_SIZE = 16;

/**
 * Connects, migrates the schema and returns the pool.
 * @throws TandemError `STORAGE_UNAVAILABLE` with one line if the server cannot be reached, rejects the login, is older
 * than Postgres 15, or has a schema of a newer version
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
 * Opens a pool without checking the schema, for tests and tools that create databases.
 *
 * The library (postgres 3.4.9) neither empties a lost connection's buffer nor clears its timer. After it has
 * reconnected, such a connection may wait for ever. So the first lost connection retires the whole pool: new queries
 * use a fresh pool, running ones get 5 s to finish.
 */
export function connect(options: OpenDatabaseOptions): Sql {
  // A unique name, so that this pool's connections can be counted.
  const name = `${POOL_NAME}${randomBytes(4).toString('hex')}`;
  const open = () => openPool(options, { name, onLost: retire });
  let current = open();
  // The query never runs, because nothing awaits it.
  speedUp(current`select`.constructor);
  let ended = false;

  function retire(pool: Sql): void {
    if (pool !== current || ended) return;
    current = open();
    void pool.end({ timeout: 5 });
  }

  /**
   * Opens a connection of its own, which `release` closes. The library's version (postgres 3.4.9) never resolves if it
   * opens one, because it only passes it on after reading types.
   */
  async function reserve(): Promise<postgres.ReservedSql<Types>> {
    const single = openPool({ ...options, max: 1 }, { name, onLost: () => {} });
    return Object.assign(single, { release: () => void single.end({ timeout: 5 }) });
  }

  async function end(when?: { timeout?: number }): Promise<void> {
    ended = true;
    await current.end(when);
  }

  const own = { reserve, end };
  return new Proxy(current, {
    apply: (_, self, args) => Reflect.apply(current, self, args),
    get: (_, key) => Reflect.get(own, key) ?? Reflect.get(current, key),
  });
}

/**
 * Makes a class of the library (postgres 3.4.9) fast: that of its queries or of its results. V8 (13.6) keeps a class with
 * a computed static getter as a dictionary until it is a superclass. Creating a query then took 11 times as long, and
 * each one stayed in memory, with its rows, until the next full garbage collection. Results cost a quarter of a query.
 */
function speedUp(libraryClass: unknown): void {
  class Subclass extends (libraryClass as ObjectConstructor) {}
  // V8 does it when a property is looked up through the subclass.
  Subclass.keys;
}

/** Type json keeps a document as written (metadata). jsonb does not, and is read as usual. */
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
    const { socketFolder, ...rest } = withoutSocket(url);
    const pool: Sql = postgres(rest.url, {
      ...(socketFolder !== null && { host: socketFolder }),
      max,
      connect_timeout: Math.max(1, Math.ceil(connectTimeoutMs / 1000)),
      // Connections close only if we close them or they are lost.
      max_lifetime: null,
      idle_timeout: 0,
      onclose: () => onLost(pool),
      types: { bigint: postgres.BigInt, exactJson: EXACT_JSON, ...ARRAY_TYPES },
      fetch_types: false,
      // Column names only, because keys inside metadata are the client's.
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

/** Splits `?host=/folder`, which the library (postgres 3.4.9) would send to the server as a setting. */
function withoutSocket(text: string): { url: string; socketFolder: string | null } {
  const url = new URL(text);
  const host = url.searchParams.get('host');
  if (!host?.startsWith('/')) return { url: text, socketFolder: null };
  url.searchParams.delete('host');
  return { url: url.href, socketFolder: host };
}

/**
 * Runs `work` in one transaction, or in the given one.
 *
 * After a lost connection the library (postgres 3.4.9) still sends the rollback or commit. That write throws where
 * nothing can catch it (`nextWrite` on a null socket), and the process ends. So once the connection is lost, `work`
 * appears never to end, and the returned promise rejects.
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

/** Calls `check` before every statement. */
function guarded(tx: Tx, check: () => void): Tx {
  return new Proxy(tx, {
    apply(target, self, args) {
      check();
      return Reflect.apply(target, self, args);
    },
    get(target, key, receiver) {
      check();
      return Reflect.get(target, key, receiver);
    },
  });
}

/** Checks the library's codes, the system's, and fatal errors of the server. */
function isConnectionLoss(error: unknown): boolean {
  const { code, severity, errno } = (error ?? {}) as { code?: unknown; severity?: unknown; errno?: unknown };
  if (severity === 'FATAL' || severity === 'PANIC') return true;
  return typeof code === 'string' && (/^CONNECT(ION)?_/.test(code) || typeof errno === 'number' || code === 'EPIPE');
}

/** Whether the database is currently unusable, so that the same request may succeed later. */
export function isStorageOutage(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null)?.code ?? '');
  return (
    /^(CONNECTION_|CONNECT_TIMEOUT)/.test(code) ||
    /^(ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)/.test(code) ||
    // 08: connection; 53: resources; 57P: shutting down or starting; 40: serialisation, deadlock; 55P03: lock timeout;
    // 25P03: transaction idle for too long.
    /^(08|53|40)[0-9A-Z]{3}$|^57P0[0-9]$|^57014$|^55P03$|^25P03$/.test(code)
  );
}

function isPool(sql: SqlOrTx): sql is Sql {
  return 'begin' in sql;
}

const OLDEST_SERVER_VERSION = 150_000;

async function requireSupportedServer(sql: Sql): Promise<void> {
  const rows = await sql<{ version: number; name: string }[]>`
    select current_setting('server_version_num')::int as version, current_setting('server_version') as name`;
  speedUp(rows.constructor);
  const [row] = rows;
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
    const host = parsed.searchParams.get('host') ?? parsed.hostname;
    return `${host}:${parsed.port || '5432'}${parsed.pathname}`;
  } catch {
    return 'DATABASE_URL (it is not a URL)';
  }
}
