import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type Sql, type Tx } from '../../storage/database.ts';
import type { Charge } from '../../storage/ledger.ts';
import { insufficientCredits } from '../../storage/ledger-charges.ts';
import { lockAccounts, walletFrom } from '../../storage/ledger-entries.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import { insertMemory } from '../../storage/queries/memories.ts';
import type { MemoryCollectionRow } from '../../storage/queries/memory-collections.ts';
import { findSameMemory } from '../../storage/queries/memory-repeats.ts';
import { requireWriter, writableCollection } from './memory-access.ts';
import { chargeMemory, totalOf } from './memory-account.ts';
import type { Ingested, IngestedMemory, MemoryCaller, NewMemoryText } from './memory-desk.ts';

/** A text that is to be stored, and where it comes from. */
export interface GivenText extends NewMemoryText {
  source: Readonly<Record<string, unknown>> | null;
}

export interface StoreRequest {
  texts: readonly GivenText[];
  operation: 'ingest' | 'ingest_batch' | 'ingest_document';
  by: MemoryCaller;
  now: Date;
}

/** What is to become of one of them, before anything is stored. */
type Plan =
  | { outcome: 'store'; id: string; text: GivenText; collection: MemoryCollectionRow; characters: number }
  /** One before it in the request says the same. */
  | { outcome: 'repeat'; of: string; collection: MemoryCollectionRow }
  | Extract<IngestedMemory, { outcome: 'deduplicated' | 'refused' }>;

/**
 * Charges for the texts and stores them, all in one transaction, in which the wallet is locked first: so nobody else
 * stores the same at the same time.
 * @throws TandemError as `MemoryDesk.ingest`, but for what concerns the queue
 */
export async function storeTexts(sql: Sql, { texts, operation, by, now }: StoreRequest): Promise<Ingested> {
  requireWriter(by);
  return await inTransaction(sql, async (tx) => {
    const wallet = walletFrom(await lockAccounts(tx, by.workspaceId));
    const prices = await priceBookOf(tx, by.workspaceId);
    const { plans, first } = await planned(tx, { texts, by, now });
    const costs = plans.map((plan) =>
      plan.outcome === 'store' ? costOf(prices, { service: 'memory', count: plan.characters }).amountNano : 0n,
    );
    const totalNano = costs.reduce((sum, each) => sum + each, 0n);
    if (totalNano > wallet.availableNano) throw insufficientCredits(totalNano, wallet.availableNano);

    const charges: Charge[] = [];
    const results: IngestedMemory[] = [];
    for (const plan of plans) {
      if (plan.outcome === 'store') {
        const { id, characters } = plan;
        charges.push(await chargeMemory(tx, { memoryId: id, attempts: 0, characters, operation, by, now, prices }));
        await insertMemory(tx, rowOf(plan, { by, now }));
      }
      results.push(resultOf(plan));
    }
    const { id, label, type } = first;
    return { collectionId: id, collectionLabel: label, memoryType: type, results, charge: totalOf(charges) };
  });
}

/** @throws the first refusal when nothing may be stored */
async function planned(
  tx: Tx,
  { texts, by, now }: Pick<StoreRequest, 'texts' | 'by' | 'now'>,
): Promise<{ plans: Plan[]; first: MemoryCollectionRow }> {
  const collections = new Map<string, Promise<MemoryCollectionRow>>();
  const ofRequest = new Map<string, string>();
  const plans: Plan[] = [];
  let first: MemoryCollectionRow | null = null;
  for (const text of texts) {
    try {
      const collection = await collectionOf(text);
      plans.push(await planOf(text, collection));
      first ??= collection;
    } catch (error) {
      if (!(error instanceof TandemError)) throw error;
      plans.push({ outcome: 'refused', refusal: error });
    }
  }
  if (first === null) throw plans.map((plan) => (plan.outcome === 'refused' ? plan.refusal : null))[0]!;
  return { plans, first };

  function collectionOf({ type, collectionId }: GivenText): Promise<MemoryCollectionRow> {
    const key = `${collectionId} ${type}`;
    let collection = collections.get(key);
    if (collection === undefined) {
      collection = writableCollection(tx, { type, collectionId, by, now });
      collections.set(key, collection);
    }
    return collection;
  }

  async function planOf(text: GivenText, collection: MemoryCollectionRow): Promise<Plan> {
    const { title, metadata, text: content } = text;
    const key = JSON.stringify([collection.id, title, metadata, content]);
    const earlier = ofRequest.get(key);
    if (earlier !== undefined) return { outcome: 'repeat', of: earlier, collection };
    const same = await findSameMemory(tx, { collectionId: collection.id, title, content, metadata });
    if (same !== null) return { outcome: 'deduplicated', ...same, collectionId: collection.id };
    const id = randomUUID();
    ofRequest.set(key, id);
    return { outcome: 'store', id, text, collection, characters: charactersOf(content) };
  }
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

/** As people count them: a pair of surrogates is one. */
export function charactersOf(text: string): number {
  // Most texts have none, which is quickly seen.
  if (!/[\ud800-\udbff]/.test(text)) return text.length;
  let characters = text.length;
  for (let i = 0; i < text.length; i += 1) {
    if (text.charCodeAt(i) < 0xd800 || text.charCodeAt(i) > 0xdbff) continue;
    const next = text.charCodeAt(i + 1);
    if (next >= 0xdc00 && next <= 0xdfff) characters -= 1;
  }
  return characters;
}
