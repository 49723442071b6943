import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import { charge, requireCredits, walletOf } from '../../storage/ledger.ts';
import { type Cost, costOf, priceBookOf } from '../../storage/price-book.ts';
import { totalOf } from './memory-account.ts';
import type { MemoryCaller, MemoryCharge } from './memory-desk.ts';

/** Charges for texts that are not stored, at the price of memory. Before the work it only checks the wallet. */
export interface TextCharges {
  /** @throws TandemError `INSUFFICIENT_CREDITS` */
  affordable(by: Pick<MemoryCaller, 'workspaceId'>, characters: number): Promise<Cost>;
  /** @throws TandemError `INSUFFICIENT_CREDITS` if other requests have spent the money meanwhile */
  pay(
    by: Pick<MemoryCaller, 'workspaceId' | 'userId' | 'apiKeyId' | 'operationId'>,
    charged: { operation: 'search' | 'context' | 'embed'; cost: Cost },
  ): Promise<MemoryCharge>;
}

export function createTextCharges({ sql, clock }: { sql: Sql; clock: Clock }): TextCharges {
  return {
    async affordable({ workspaceId }, characters) {
      const cost = costOf(await priceBookOf(sql, workspaceId), { service: 'memory', count: characters });
      requireCredits(cost.amountNano, await walletOf(sql, workspaceId));
      return cost;
    },

    async pay({ workspaceId, userId, apiKeyId, operationId }, { operation, cost }) {
      const id = operationId ?? randomUUID();
      const by = { workspaceId, userId, apiKeyId };
      const operationKey = `memory_${operation}:${id}`;
      const at = new Date(clock.now());
      const input = { ...cost, ...by, operation, resourceId: id, operationKey, at };
      const charged = await charge(sql, input).catch(async (error: unknown) => {
        if (error instanceof TandemError) throw error;
        // It may be stored although the response was lost. The key charges once.
        return await charge(sql, input);
      });
      return totalOf([charged])!;
    },
  };
}
