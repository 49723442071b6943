import { readFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Where the embedded Postgres of a data folder listens while its server runs: for command-line tools beside it. Null
 * when none runs, or the folder is not readable. The port is the fourth line of `postmaster.pid` (PostgreSQL manual,
 * Database File Layout).
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
