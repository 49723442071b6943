import { inTransaction, type SqlOrTx } from '../database.ts';
import { jsonb } from './json-columns.ts';
import type { ReachabilityReason, ReachabilityState } from './reachability.ts';
import type { GatewayAddresses, GatewayHealth } from './trunk-gateways.ts';
import { emitWebhookEvent } from './webhook-deliveries.ts';

/** Health of a whole trunk: up when one gateway is up, down when all are down. */
export interface TrunkState {
  state: ReachabilityState;
  reason: ReachabilityReason;
  gateways: readonly GatewayHealth[];
}

/** For a trunk that was never checked, or has changed its address. */
export const UNKNOWN_HEALTH = {
  reachability: 'unknown',
  reachabilitySince: null,
  reachabilityReason: 'not_checked',
} as const;

/**
 * Stores a trunk's health with the webhook events `trunk.down` and `trunk.up`. If several servers report the same, only
 * the one that changes the row emits an event. Returns delivery ids to enqueue after the commit.
 */
export async function recordTrunkHealth(
  sql: SqlOrTx,
  { trunkId, address, health, now }: { trunkId: string; address: GatewayAddresses; health: TrunkState; now: Date },
): Promise<string[]> {
  const { state, reason, gateways } = health;
  return await inTransaction(sql, async (tx) => {
    const [before] = await tx<{ name: string; reachability: ReachabilityState }[]>`
      select name, reachability from trunks
      where id = ${trunkId} and status = 'active' and deleted_at is null
        and sip_uri = ${address.sipUri} and transport = ${address.transport}
        and gateways = ${jsonb(tx, address.gateways)}
      for no key update`;
    if (before === undefined) return [];
    await tx`update trunks set gateway_health = ${jsonb(tx, gateways)} where id = ${trunkId}`;
    if (before.reachability === state && state !== 'unknown') return [];
    const since = state === 'unknown' ? null : now;
    await tx`
      update trunks set reachability = ${state}, reachability_since = ${since}, reachability_reason = ${reason}
      where id = ${trunkId}`;
    const isUpAgain = before.reachability === 'down' && state === 'up';
    if (state !== 'down' && !isUpAgain) return [];
    const event = isUpAgain ? 'trunk.up' : 'trunk.down';
    const data = { trunk_id: trunkId, name: before.name, reason, since: now.toISOString() };
    const users = await tx<{ workspaceId: string }[]>`
      select workspace_id from trunk_workspaces where trunk_id = ${trunkId} order by workspace_id`;
    const deliveryIds: string[] = [];
    for (const { workspaceId } of users)
      deliveryIds.push(...(await emitWebhookEvent(tx, { workspaceId, event, data, now })));
    return deliveryIds;
  });
}
