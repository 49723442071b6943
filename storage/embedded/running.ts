import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { databaseUrl } from './server-address.ts';

/**
 * Returns the URL of a data folder's running embedded Postgres, for command-line tools. Null if none is running or the
 * folder is not readable. Lines 4 and 5 of `postmaster.pid` are the port and the folder of the socket (PostgreSQL
 * manual, Database File Layout).
 */
export async function runningDatabaseUrl(dataDir: string): Promise<string | null> {
  try {
    const pidFile = await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8');
    const password = (await readFile(path.join(dataDir, 'postgres.password'), 'utf8')).trim();
    const [port, socketFolder] = pidFile.split('\n').slice(3, 5);
    if (!(Number(port) > 0)) return null;
    return databaseUrl({ socketFolder: socketFolder || null, port: Number(port) }, { user: 'tandem', password });
  } catch {
    return null;
  }
}
