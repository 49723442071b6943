import type { Tx } from '../database.ts';
import { charge, walletOf } from '../ledger.ts';
import { costOf, priceBookOf } from '../price-book.ts';
import type { CallRow } from './call-row.ts';

/**
 * Charges for a text that a call plays, or nothing if the wallet does not cover it, and adds it to the call's cost. Files
 * are free. Run it in the transaction of `playback.started`.
 */
export async function chargePlayback(
  tx: Tx,
  call: CallRow,
  { data, now }: { data: Readonly<Record<string, unknown>> | null; now: Date },
): Promise<void> {
  const { playback_id: playbackId, characters } = data ?? {};
  if (typeof characters !== 'number') return;
  const cost = costOf(await priceBookOf(tx, call.workspaceId), { service: 'tts', count: characters });
  const { availableNano } = await walletOf(tx, call.workspaceId);
  const amountNano = availableNano < cost.amountNano ? 0n : cost.amountNano;
  const { chargedNano } = await charge(tx, {
    ...cost,
    amountNano,
    owedNano: cost.amountNano,
    workspaceId: call.workspaceId,
    operation: 'call_play',
    operationKey: `call:${call.callId}:${playbackId}`,
    resourceId: call.callId,
    apiKeyId: call.apiKeyId,
    userId: call.createdByUserId,
    description: `Call ${call.callId}, text of ${characters} characters`,
    at: now,
  });
  await tx`
    update calls set speech_cost_nano = coalesce(speech_cost_nano, 0) + ${chargedNano.toString()}
    where call_id = ${call.callId}`;
}
