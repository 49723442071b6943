import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { lockAccounts } from '../../storage/ledger-entries.ts';
import { recordAudit } from '../../storage/queries/audit.ts';
import { deleteMemory, findMemory } from '../../storage/queries/memories.ts';
import { memoryUsage } from '../../storage/queries/memory-charges.ts';
import {
  createMemoryCollection,
  deleteMemoryCollection,
  findMemoryCollection,
  listMemoryCollections,
} from '../../storage/queries/memory-collections.ts';
import { factsOfMemory } from '../../storage/queries/memory-facts.ts';
import { conditionsOfEntities, parseMetadataFilter } from '../../storage/queries/memory-filter.ts';
import { findMemoryHead, listMemoryHeads } from '../../storage/queries/memory-heads.ts';
import { retryMemory } from '../../storage/queries/memory-processing.ts';
import { offsetOf } from '../../storage/queries/paging.ts';
import { collectionNotFound, memoryNotFound, requireAdmin, requireMayWrite, requireWriter } from './memory-access.ts';
import { chargeMemory, totalOf } from './memory-account.ts';
import type { CreateCollectionRequest, MemoryCaller, MemoryDesk, MemoryKey, MemoryView } from './memory-desk.ts';
import { collectionView, memoryView, wholeMemoryView } from './memory-views.ts';

export type MemoryLibrary = Pick<
  MemoryDesk,
  'list' | 'status' | 'get' | 'retry' | 'remove' | 'collections' | 'createCollection' | 'removeCollection' | 'usage'
>;

export interface MemoryLibraryOptions {
  sql: Sql;
  clock: Clock;
  /** Stops the work for deleted memories. */
  drop: (memoryIds: readonly string[]) => void;
  /** Queues memories that are pending again, free of charge. Never rejects. */
  revive: (memoryIds: readonly string[]) => Promise<void>;
}

export function createMemoryLibrary({ sql, clock, drop, revive }: MemoryLibraryOptions): MemoryLibrary {
  const now = () => new Date(clock.now());

  return {
    async list({ by, collectionId, status, type, filters, entities, page }) {
      const conditions = [...conditionsOfEntities(entities), ...parseMetadataFilter(filters ?? {})];
      const where = { collectionId: collectionId ?? undefined, status: status ?? undefined, type: type ?? undefined };
      const query = { ...where, conditions };
      const { rows, total } = await listMemoryHeads(sql, by, { ...query, ...page });
      return { rows: rows.map((row) => memoryView(row)), total };
    },

    status,

    async get({ memoryId, by }) {
      const row = await findMemory(sql, by, memoryId);
      if (row === null) throw memoryNotFound();
      return wholeMemoryView(row, await factsOfMemory(sql, by, memoryId));
    },

    async retry({ memoryId, by }) {
      const charge = await inTransaction(sql, async (tx) => {
        await lockAccounts(tx, by.workspaceId);
        const row = await findMemory(tx, by, memoryId);
        if (row === null) throw memoryNotFound();
        requireMayWrite(by, row);
        const { attempts, characters, status } = row;
        if (status !== 'failed') throw notFailed(status);
        const charged = await chargeMemory(tx, { memoryId, attempts, characters, operation: 'retry', by, now: now() });
        if ((await retryMemory(tx, { id: memoryId, now: now() })) === null) throw memoryNotFound();
        return charged;
      });
      return { memory: await status({ memoryId, by }), charge: totalOf([charge])! };
    },

    async remove({ memoryId, by }: MemoryKey) {
      const row = await findMemory(sql, by, memoryId);
      if (row === null) throw memoryNotFound();
      requireMayWrite(by, row);
      const deleted = await deleteMemory(sql, by, { id: memoryId, now: now() });
      if (deleted === null) throw memoryNotFound();
      drop([memoryId]);
      await revive(deleted.revived);
    },

    async collections({ by, page, type }) {
      const all = await listMemoryCollections(sql, by, { type: type ?? undefined });
      const from = offsetOf(page);
      return { rows: all.slice(from, from + page.limit).map(collectionView), total: all.length };
    },

    async createCollection({ name, type, memberIds, by }: CreateCollectionRequest) {
      requireWriter(by);
      if (type !== 'team') requireAdmin(by, type);
      if (type !== 'team' && memberIds.length > 0) throw membersOfOthers(type);
      const created = { workspaceId: by.workspaceId, createdByUserId: by.userId, name, type, memberUserIds: memberIds };
      return await inTransaction(sql, async (tx) => {
        const row = await createMemoryCollection(tx, { ...created, now: now() });
        await recordAudit(tx, auditOf(by, { action: 'memory_collection.created', id: row.id, details: { type } }));
        return collectionView({ ...row, memoryCount: 0 });
      });
    },

    async removeCollection({ collectionId, by }) {
      const memoryIds = await inTransaction(sql, async (tx) => {
        const collection = await findMemoryCollection(tx, by, collectionId);
        if (collection === null) throw collectionNotFound();
        requireMayWrite(by, collection);
        if (collection.type === 'user') throw new TandemError('POLICY_DENY', PERSONAL_STAYS);
        const isCreator = collection.type === 'team' && collection.createdByUserId === by.userId;
        if (!isCreator) requireAdmin(by, collection.type);
        const deleted = await deleteMemoryCollection(tx, by, { id: collectionId, now: now() });
        if (deleted === null) throw collectionNotFound();
        const details = { type: collection.type, memories: deleted.memoryIds.length };
        await recordAudit(tx, auditOf(by, { action: 'memory_collection.deleted', id: collectionId, details }));
        return deleted.memoryIds;
      });
      drop(memoryIds);
      return { memories: memoryIds.length };
    },

    async usage({ by, month }) {
      const { workspaceId, userId, role } = by;
      const span = monthOf(month, now());
      const isOwner = role === 'owner';
      const breakdown = await memoryUsage(sql, { workspaceId, userId: isOwner ? null : userId, ...span });
      const totalNano = breakdown.reduce((sum, { amountNano }) => sum + amountNano, 0n);
      const walletNano = isOwner ? (await walletOf(sql, workspaceId)).balanceNano : null;
      return { ...span, totalNano, breakdown, walletNano };
    },
  };

  async function status({ memoryId, by }: MemoryKey): Promise<MemoryView> {
    const row = await findMemoryHead(sql, by, memoryId);
    if (row === null) throw memoryNotFound();
    return memoryView(row);
  }

  function auditOf(
    by: MemoryCaller,
    {
      action,
      id,
      details,
    }: { action: 'memory_collection.created' | 'memory_collection.deleted'; id: string; details: object },
  ) {
    const { workspaceId, requestId } = by;
    const target = { type: 'memory_collection', id };
    return { workspaceId, actor: by, action, target, details: { ...details }, requestId, now: now() };
  }
}

const PERSONAL_STAYS = 'A personal collection stays. Delete the memories in it instead.';

/** In UTC. */
function monthOf(month: string | null, now: Date): { from: Date; to: Date } {
  const first = month ?? now.toISOString().slice(0, 7);
  const from = new Date(`${first}-01T00:00:00.000Z`);
  return { from, to: new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, 1)) };
}

function notFailed(status: string): TandemError {
  return new TandemError('MEMORY_NOT_FAILED', `Only failed memories can be retried. This one is ${status}.`, {
    details: { status },
  });
}

function membersOfOthers(type: string): TandemError {
  const message = `applies to team collections only: the whole workspace reads a ${type} collection`;
  return new TandemError('VALIDATION_FAILED', `member_ids ${message}.`, { details: [{ path: 'member_ids', message }] });
}
