import type { Tx } from '../../storage/database.ts';
import { type Charge, charge, refund } from '../../storage/ledger.ts';
import { costOf, type PriceBook, priceBookOf } from '../../storage/price-book.ts';
import { lastMemoryCharge, memoryChargeKey } from '../../storage/queries/memory-charges.ts';
import type { MemoryCaller, MemoryCharge } from './memory-desk.ts';

export interface MemoryChargeInput {
  memoryId: string;
  /** Attempts made before the charge. */
  attempts: number;
  /** Characters to charge. */
  characters: number;
  operation: 'ingest' | 'ingest_batch' | 'ingest_document' | 'retry' | 'update';
  by: Pick<MemoryCaller, 'workspaceId' | 'userId' | 'apiKeyId'>;
  now: Date;
  /** Default: the workspace's current prices. */
  prices?: PriceBook;
}

/** Charges for processing one memory. @throws TandemError `INSUFFICIENT_CREDITS` */
export async function chargeMemory(tx: Tx, input: MemoryChargeInput): Promise<Charge> {
  const { memoryId, attempts, characters, operation, by, now } = input;
  const prices = input.prices ?? (await priceBookOf(tx, by.workspaceId));
  return await charge(tx, {
    ...costOf(prices, { service: 'memory', count: characters }),
    workspaceId: by.workspaceId,
    userId: by.userId,
    apiKeyId: by.apiKeyId,
    operation,
    resourceId: memoryId,
    operationKey: memoryChargeKey(memoryId, attempts),
    at: now,
  });
}

/** At most once. */
export async function refundMemory(
  tx: Tx,
  { memoryId, attempts, workspaceId, now }: { memoryId: string; attempts: number; workspaceId: string; now: Date },
): Promise<void> {
  const last = await lastMemoryCharge(tx, { memoryId, attempts });
  if (last === null) return;
  const operationKey = `${last.operationKey}:refund`;
  await refund(tx, { workspaceId, reversesOperationKey: last.operationKey, operationKey, at: now });
}

/** Sums the charges of one request; null: none. */
export function totalOf(charges: readonly Charge[]): MemoryCharge | null {
  const [first] = charges;
  if (first === undefined) return null;
  const chargedNano = charges.reduce((sum, each) => sum + each.chargedNano, 0n);
  return { entryId: first.entryId, chargedNano, balanceAfterNano: charges.at(-1)!.balanceAfterNano };
}
