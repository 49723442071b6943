import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { canonicalJson } from '../../runtime/canonical-json.ts';
import { inTransaction, type Sql, type Tx } from '../../storage/database.ts';
import { type Charge, requireCredits, walletOf } from '../../storage/ledger.ts';
import { lockAccounts, walletFrom } from '../../storage/ledger-entries.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import { insertMemories } from '../../storage/queries/memories.ts';
import { type MemoryCollectionRow, nextRevision } from '../../storage/queries/memory-collections.ts';
import { findSameMemory } from '../../storage/queries/memory-repeats.ts';
import { storableJson, storableText } from '../../storage/queries/memory-text.ts';
import { collectionNotFound, requireWriter, writableCollection } from './memory-access.ts';
import { chargeMemory, totalOf } from './memory-account.ts';
import type { Ingested, IngestedMemory, MemoryCaller, NewMemoryText } from './memory-desk.ts';

export interface GivenText extends NewMemoryText {
  source: Readonly<Record<string, unknown>> | null;
}

export interface StoreRequest {
  texts: readonly GivenText[];
  operation: 'ingest' | 'ingest_batch' | 'ingest_document';
  by: MemoryCaller;
  now: Date;
}

type Plan =
  | { outcome: 'store'; id: string; text: GivenText; collection: MemoryCollectionRow; characters: number }
  /** Same as an earlier text of the request. */
  | { outcome: 'repeat'; of: string; collection: MemoryCollectionRow }
  | Extract<IngestedMemory, { outcome: 'deduplicated' | 'refused' }>;

/**
 * Stores the texts and charges for them in one transaction. It locks their collections, so that no other request stores
 * the same text. It locks the wallet only at the end, because all charges of the workspace wait for that.
 * @throws TandemError as `MemoryDesk.ingest`, except for errors of the queue
 */
export async function storeTexts(sql: Sql, { texts, operation, by, now }: StoreRequest): Promise<Ingested> {
  requireWriter(by);
  return await inTransaction(sql, async (tx) => {
    const prices = await priceBookOf(tx, by.workspaceId);
    const { plans, first } = await planned(tx, { texts, by, now });
    const stored = plans.filter((plan) => plan.outcome === 'store');
    const totalNano = stored.reduce(
      (sum, { characters }) => sum + costOf(prices, { service: 'memory', count: characters }).amountNano,
      0n,
    );
    // Check early to save the work; the locked check below is decisive.
    requireCredits(totalNano, await walletOf(tx, by.workspaceId));
    await insertMemories(
      tx,
      stored.map((plan) => rowOf(plan, { by, now })),
    );
    requireCredits(totalNano, walletFrom(await lockAccounts(tx, by.workspaceId)));
    const charges: Charge[] = [];
    for (const { id: memoryId, characters } of stored) {
      charges.push(await chargeMemory(tx, { memoryId, attempts: 0, characters, operation, by, now, prices }));
    }
    const { id, label, type } = first;
    const results = plans.map(resultOf);
    return { collectionId: id, collectionLabel: label, memoryType: type, results, charge: totalOf(charges) };
  });
}

/** @throws the first rejection if nothing may be stored */
async function planned(
  tx: Tx,
  { texts, by, now }: Pick<StoreRequest, 'texts' | 'by' | 'now'>,
): Promise<{ plans: Plan[]; first: MemoryCollectionRow }> {
  const collections = await heldCollections(tx, { texts, by, now });
  const ofRequest = new Map<string, string>();
  const plans: Plan[] = [];
  let first: MemoryCollectionRow | null = null;
  for (const text of texts) {
    const collection = collections.get(placeOf(text))!;
    if (collection instanceof TandemError) plans.push({ outcome: 'refused', refusal: collection });
    else {
      plans.push(await planOf(text, collection));
      first ??= collection;
    }
  }
  if (first === null) throw plans.map((plan) => (plan.outcome === 'refused' ? plan.refusal : null))[0]!;
  return { plans, first };

  async function planOf(text: GivenText, collection: MemoryCollectionRow): Promise<Plan> {
    const { title, metadata, text: content } = text;
    // As stored, because `findSameMemory` compares with what is stored.
    const stored = [title && storableText(title), storableText(content), storableJson(metadata)];
    const key = canonicalJson([collection.id, ...stored]);
    const earlier = ofRequest.get(key);
    if (earlier !== undefined) return { outcome: 'repeat', of: earlier, collection };
    const same = await findSameMemory(tx, { collectionId: collection.id, title, content, metadata });
    if (same !== null) return { outcome: 'deduplicated', ...same, collectionId: collection.id };
    const id = randomUUID();
    ofRequest.set(key, id);
    return { outcome: 'store', id, text, collection, characters: charactersOf(content) };
  }
}

/** Locks the target collections in a fixed order. Maps each `placeOf` to its collection or rejection. */
async function heldCollections(
  tx: Tx,
  { texts, by, now }: Pick<StoreRequest, 'texts' | 'by' | 'now'>,
): Promise<Map<string, MemoryCollectionRow | TandemError>> {
  const collections = new Map<string, MemoryCollectionRow | TandemError>();
  const places = new Map(texts.map((text) => [placeOf(text), text]));
  for (const [place, { type, collectionId }] of [...places].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const collection = await writableCollection(tx, { type, collectionId, by, now }).catch((error: unknown) => {
      if (error instanceof TandemError) return error;
      throw error;
    });
    collections.set(place, collection);
  }
  const held = new Map<string, boolean>();
  const ids = [...collections.values()].flatMap((each) => (each instanceof TandemError ? [] : [each.id]));
  for (const id of [...new Set(ids)].sort()) held.set(id, (await nextRevision(tx, id)) !== null);
  for (const [place, collection] of collections) {
    if (!(collection instanceof TandemError) && !held.get(collection.id)) collections.set(place, collectionNotFound());
  }
  return collections;
}

function placeOf({ type, collectionId }: GivenText): string {
  return `${collectionId} ${type}`;
}

function rowOf(
  { id, text, collection, characters }: Extract<Plan, { outcome: 'store' }>,
  { by, now }: { by: MemoryCaller; now: Date },
) {
  const { workspaceId, userId, apiKeyId } = by;
  const { title, text: content, metadata, infer, source } = text;
  const owner = { workspaceId, userId, apiKeyId, collectionId: collection.id };
  return {
    ...owner,
    id,
    title,
    content,
    metadata: { ...metadata },
    infer,
    source: source && { ...source },
    characters,
    now,
  };
}

function resultOf(plan: Plan): IngestedMemory {
  switch (plan.outcome) {
    case 'store': {
      const { id, collection, characters } = plan;
      return { outcome: 'queued', id, collectionId: collection.id, characters };
    }
    case 'repeat':
      return { outcome: 'deduplicated', id: plan.of, status: 'pending', collectionId: plan.collection.id };
    default:
      return plan;
  }
}

/** Counts code points. */
export function charactersOf(text: string): number {
  // Fast path: most texts have no surrogates.
  if (!/[\ud800-\udbff]/.test(text)) return text.length;
  let characters = text.length;
  for (let i = 0; i < text.length; i += 1) {
    if (text.charCodeAt(i) < 0xd800 || text.charCodeAt(i) > 0xdbff) continue;
    const next = text.charCodeAt(i + 1);
    if (next >= 0xdc00 && next <= 0xdfff) characters -= 1;
  }
  return characters;
}
