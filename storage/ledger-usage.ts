import type { Tx } from './database.ts';
import type { PostedEntry } from './ledger-entries.ts';
import type { Cost } from './price-book.ts';

/** A row of the usage log, which commits with its entry. */
export interface Usage extends Omit<Cost, 'amountNano'> {
  /** Operation, such as `click2call`, `ingest` or `rent`. */
  operation: string;
  resourceId: string | null;
  apiKeyId: number | null;
  userId: number | null;
}

/** Logs the usage of an entry that the same transaction has stored or is storing. */
export async function logUsage(tx: Tx, entryId: string, usage: Usage): Promise<void> {
  const { service, operation, resourceId, quantity, unit, unitPriceNano, apiKeyId, userId } = usage;
  await tx`
    insert into usage_logs (entry_id, position, workspace_id, service, operation, resource_id, quantity, unit,
      unit_price_nano, api_key_id, user_id)
    select id, position, workspace_id, ${service}::text, ${operation}::text, ${resourceId}::text,
      ${quantity.toFixed(9)}::numeric, ${unit}::text, ${unitPriceNano}::bigint, ${apiKeyId}::bigint, ${userId}::bigint
    from entries where id = ${entryId}`;
}

/** Logs a refund with the usage of its charge. */
export async function logRefund(tx: Tx, { id, position }: PostedEntry, chargeId: string): Promise<void> {
  await tx`
    insert into usage_logs (entry_id, workspace_id, position, service, operation, resource_id, quantity, unit,
      unit_price_nano, api_key_id, user_id)
    select ${id}, workspace_id, ${position}, service, operation, resource_id, quantity, unit, unit_price_nano,
      api_key_id, user_id
    from usage_logs where entry_id = ${chargeId}`;
}
