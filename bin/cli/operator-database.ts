import { resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { TandemError } from '../../machines/errors.ts';
import { openDatabase, type Sql, type SqlOrTx, type Tx } from '../../storage/database.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { type AuditInput, recordAudit } from '../../storage/queries/audit.ts';
import { getFirstWorkspace, getWorkspace, type WorkspaceRow } from '../../storage/queries/workspaces.ts';
import { CommandError, type Options } from './command.ts';
import type { CommandHost } from './host.ts';
import { readSettings } from './settings.ts';

/**
 * Opens the server's database as its operator: the one at DATABASE_URL, or the embedded one of a running server.
 * @throws CommandError NO_SERVER, TandemError STORAGE_UNAVAILABLE
 */
export async function withDatabase<T>(host: CommandHost, work: (sql: Sql, settings: Config) => Promise<T>): Promise<T> {
  const settings = readSettings(host);
  const { sql, close } = await open(settings);
  try {
    return await work(sql, settings);
  } finally {
    await close();
  }
}

export const WORKSPACE_OPTION = {
  workspace: { value: 'ID|NAME', about: 'the workspace (default: the first one)' },
} as const satisfies Options;

/** @throws CommandError WORKSPACE_NOT_FOUND, AMBIGUOUS_WORKSPACE */
export async function workspaceOf(sql: SqlOrTx, idOrName: string | undefined): Promise<WorkspaceRow> {
  if (idOrName === undefined) {
    return (
      (await getFirstWorkspace(sql)) ??
      notFound('there is no workspace yet: start the server once, or run tandem workspaces create.')
    );
  }
  const byId = await getWorkspace(sql, idOrName);
  if (byId !== null) return byId;
  const named = await sql<
    WorkspaceRow[]
  >`select * from workspaces where name = ${idOrName} order by created_at limit 2`;
  if (named.length > 1) {
    const message = `several workspaces are called ${JSON.stringify(idOrName)}: name one by its id (tandem workspaces list).`;
    throw new CommandError('AMBIGUOUS_WORKSPACE', message);
  }
  return named[0] ?? notFound(`there is no workspace ${JSON.stringify(idOrName)}: tandem workspaces list shows all.`);
}

/** Records the operator's action in the audit log. The actor is null, because the operator is not a member. */
export async function auditOperator(tx: Tx, entry: Omit<AuditInput, 'actor'>): Promise<void> {
  await recordAudit(tx, { ...entry, details: { ...entry.details, by: 'operator' }, actor: null });
}

async function open(settings: Config): ReturnType<typeof openDatabase> {
  if (settings.databaseUrl !== null) return await openDatabase({ url: settings.databaseUrl, max: 2 });
  const url = await runningDatabaseUrl(settings.dataDir);
  if (url === null) throw noServer(settings.dataDir);
  try {
    return await openDatabase({ url, max: 2 });
  } catch (error) {
    // A killed server leaves a file with a port where nothing listens any more.
    if (error instanceof TandemError && (error.cause as { code?: string } | undefined)?.code === 'ECONNREFUSED') {
      throw noServer(settings.dataDir);
    }
    throw error;
  }
}

function noServer(dataDir: string): CommandError {
  const message = `no server runs on ${resolve(dataDir)}: start it with tandem serve, or set TANDEM_DATA_DIR or DATABASE_URL.`;
  return new CommandError('NO_SERVER', message);
}

function notFound(message: string): never {
  throw new CommandError('WORKSPACE_NOT_FOUND', message);
}
