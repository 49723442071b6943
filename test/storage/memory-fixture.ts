import { randomUUID } from 'node:crypto';
import { inTransaction, type Sql, type SqlOrTx, type Tx } from '../../storage/database.ts';
import { insertMemories, type MemoryRow, type NewMemory } from '../../storage/queries/memories.ts';
import {
  ensurePersonalCollection,
  type MemoryCollectionRow,
  type MemoryViewer,
} from '../../storage/queries/memory-collections.ts';
import { insertFacts, type NewFact } from '../../storage/queries/memory-facts.ts';
import { claimMemory, finishMemory, lockAttempt } from '../../storage/queries/memory-processing.ts';
import { addUnits, type NewUnit, removeUnitsOf } from '../../storage/queries/memory-units.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { NOW, seedWorkspace } from './seed.ts';

export async function seedMemories(sql: Sql) {
  const { workspace, user } = await seedWorkspace(sql);
  const viewer: MemoryViewer = { workspaceId: workspace.id, userId: user.id, role: 'owner' };
  const collection = await ensurePersonalCollection(sql, { ...viewer, now: NOW });
  return { sql, workspaceId: workspace.id, viewer, collection };
}

export async function seedColleague(sql: Sql, workspaceId: string, role: Role): Promise<MemoryViewer> {
  const [user] = await sql<{ id: number }[]>`
    insert into users (email, created_at) values (${`${randomUUID()}@example.com`}, ${NOW}) returning id`;
  await sql`insert into memberships ${sql({ workspaceId, userId: user!.id, role, createdAt: NOW })}`;
  return { workspaceId, userId: user!.id, role };
}

export function newMemory(
  { id, workspaceId, createdByUserId }: Pick<MemoryCollectionRow, 'id' | 'workspaceId' | 'createdByUserId'>,
  overrides: Partial<NewMemory> = {},
): NewMemory {
  return {
    id: randomUUID(),
    workspaceId,
    collectionId: id,
    userId: createdByUserId,
    apiKeyId: null,
    title: null,
    content: 'Asha lives in Mumbai.',
    metadata: {},
    infer: true,
    source: null,
    characters: 21,
    now: NOW,
    ...overrides,
  };
}

export async function remember(
  sql: Sql,
  collection: MemoryCollectionRow,
  overrides: Partial<NewMemory> = {},
): Promise<MemoryRow> {
  const memory = newMemory(collection, overrides);
  await inTransaction(sql, (tx) => insertMemories(tx, [memory]));
  return (await getMemory(sql, memory.id))!;
}

export interface Made {
  units?: readonly NewUnit[];
  facts?: readonly NewFact[];
  now?: Date;
}

/** Claims a memory and stores its units, as the worker does. */
export async function process(sql: Sql, { id }: Pick<MemoryRow, 'id'>, made: Made): Promise<boolean> {
  const claimed = await claimMemory(sql, { id, now: NOW, leaseMs: 60_000 });
  if (claimed === null) return false;
  return await inTransaction(sql, (tx) => conclude(tx, claimed, made));
}

export async function conclude(
  tx: Tx,
  claimed: MemoryRow,
  { units = [], facts = [], now = NOW }: Made,
): Promise<boolean> {
  const attempt = { id: claimed.id, attempt: claimed.attempts };
  const memory = await lockAttempt(tx, attempt);
  if (memory === null) return false;
  const { collectionId, revision } = memory;
  await removeUnitsOf(tx, { memoryId: memory.id, collectionId, revision, now: NOW });
  await addUnits(tx, { memory, units, revision });
  await insertFacts(tx, { memory, facts, revision, now });
  return await finishMemory(tx, attempt, { processedAs: facts.length > 0 ? 'facts' : 'chunks', now: NOW });
}

export function chunk(text: string, point: NewUnit['point'] = null): NewUnit {
  return { kind: 'chunk', text, heading: null, point };
}

export function fact(statement: string, overrides: Partial<NewFact> = {}): NewFact {
  const about = { subject: null, attribute: null, deduplicatedInto: null, supersedes: [], point: null };
  return { id: randomUUID(), category: 'fact', statement, ...about, ...overrides };
}

/** Finds a memory for processing, regardless of the viewer. Null: it is deleted or never existed. */
export async function getMemory(sql: SqlOrTx, id: string): Promise<MemoryRow | null> {
  const [row] = await sql<MemoryRow[]>`select * from memories where id = ${id} and deleted_at is null`;
  return row ?? null;
}
