import { readFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Returns the URL of a data folder's running embedded Postgres, for command-line tools. Null if none is running or the
 * folder is not readable. The port is line 4 of `postmaster.pid` (PostgreSQL manual, Database File Layout).
 */
export async function runningDatabaseUrl(dataDir: string): Promise<string | null> {
  try {
    const pidFile = await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8');
    const password = await readFile(path.join(dataDir, 'postgres.password'), 'utf8');
    const port = Number(pidFile.split('\n')[3]);
    return port > 0 ? `postgres://tandem:${password.trim()}@127.0.0.1:${port}/tandem` : null;
  } catch {
    return null;
  }
}
