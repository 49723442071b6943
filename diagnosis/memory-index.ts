import type { Config } from '../config.ts';
import type { Sql } from '../storage/database.ts';
import { findPgvector } from '../storage/queries/memory-vectors.ts';
import { type Finding, ok, reasonOf, warn } from './finding.ts';

const CHECK = 'memory index';

/** Checks the search index for large memory collections. Null without a database. */
export async function checkMemoryIndex({ memoryIndex }: Config, sql: Sql | null): Promise<Finding | null> {
  if (memoryIndex === 'exact') return ok(CHECK, 'every point is compared, as MEMORY_INDEX says');
  if (sql === null) return null;
  try {
    const found = await findPgvector(sql);
    if ('missing' in found) return without(memoryIndex, found.missing, 'Install pgvector on the database server');
    if (!found.isInstalled && !(await mayCreateExtensions(sql))) {
      const reason = 'the extension vector is not created, and the role may not';
      return without(memoryIndex, reason, 'Have an administrator run "create extension vector;" in this database');
    }
    return ok(CHECK, `pgvector ${found.version} looks large collections up`);
  } catch (error) {
    return warn(CHECK, `Unknown: ${reasonOf(error)}`, 'Look at the database first.');
  }
}

function without(choice: Config['memoryIndex'], reason: string, remedy: string): Finding {
  const message = `every point is compared: ${reason}`;
  if (choice === 'auto') return ok(CHECK, message);
  return warn(CHECK, message, `${remedy}, or leave MEMORY_INDEX out.`);
}

async function mayCreateExtensions(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ may: boolean }[]>`
    select bool_or((select rolsuper from pg_roles where rolname = current_user)
      or trusted and has_database_privilege(current_database(), 'create')) as may
    from pg_available_extension_versions where name = 'vector'`;
  return row?.may ?? false;
}
