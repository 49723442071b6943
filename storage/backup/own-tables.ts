import type { SqlOrTx } from '../database.ts';
import { readMigrations } from '../migrate.ts';

/** Tables and functions created by our migrations. Others in the database are left alone. */

export interface OwnTable {
  name: string;
  /** In table order, without generated columns. */
  columns: string[];
}

/** Returns our tables by name, including those of newer migrations, without the record of migrations. */
export async function ownTables(sql: SqlOrTx): Promise<OwnTable[]> {
  const { tables } = await ownNames();
  return await sql<OwnTable[]>`
    select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attgenerated = ''
      and c.relname = any(${tables})
    group by c.relname order by c.relname`;
}

/** Returns the id sequences of our tables by name, with the last value; null if it is unused. */
export async function ownSequences(sql: SqlOrTx): Promise<{ name: string; lastValue: bigint | null }[]> {
  const { tables } = await ownNames();
  return await sql<{ name: string; lastValue: bigint | null }[]>`
    select s.sequencename::text as name, s.last_value from pg_sequences s
    join pg_depend d on d.objid = to_regclass(format('%I.%I', s.schemaname, s.sequencename))
      and d.classid = 'pg_class'::regclass and d.refobjsubid > 0
    join pg_class c on c.oid = d.refobjid and c.relname = any(${tables})
    where s.schemaname = 'public' order by 1`;
}

/** Drops everything that migrations created, and the vector tables, which are copies of memories. */
export async function dropOwnTables(tx: SqlOrTx): Promise<void> {
  const { tables, functions } = await ownNames();
  const rows = await tx<{ statement: string }[]>`
    select format('drop table if exists public.%I cascade', relname) as statement from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r'
      and (relname = any(${[...tables, 'schema_migrations']}) or relname like 'memory\\_vector%')
    union all
    select format('drop function %s cascade', oid::regprocedure) from pg_proc p
    where pronamespace = 'public'::regnamespace and proname = any(${functions})
      and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')`;
  for (const { statement } of rows) await tx.unsafe(statement);
}

async function ownNames(): Promise<{ tables: string[]; functions: string[] }> {
  const text = (await readMigrations()).map((migration) => migration.text).join('\n');
  const named = (kind: RegExp) => [...new Set([...text.matchAll(kind)].map((match) => match[1]!))];
  return {
    tables: named(/^create table (?:if not exists )?(\w+)/gm),
    functions: named(/^create (?:or replace )?function (\w+)/gm),
  };
}
