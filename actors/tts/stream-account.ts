import { inTransaction, type Sql, type SqlOrTx } from '../../storage/database.ts';
import { type Charge, charge, chargeOf, refund } from '../../storage/ledger.ts';
import { lockAccounts } from '../../storage/ledger-entries.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import {
  endTtsStream,
  insertTtsStream,
  type NewTtsStream,
  type TtsStreamRow,
} from '../../storage/queries/tts-streams.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { WebhookEventData } from '../../storage/queries/webhook-events.ts';
import { hasWebhookFor } from '../../storage/queries/webhooks.ts';

/** Charges for a text and stores its request in one transaction. @throws TandemError `INSUFFICIENT_CREDITS` */
export async function openStream(
  sql: Sql,
  { audioKey, ...stream }: Omit<NewTtsStream, 'audioKey'> & { audioKey: string },
): Promise<{ charge: Charge; keepsAudio: boolean }> {
  const { id, workspaceId, userId, apiKeyId, characters, createdAt } = stream;
  return await inTransaction(sql, async (tx) => {
    const prices = await priceBookOf(tx, workspaceId);
    const charged = await charge(tx, {
      ...costOf(prices, { service: 'tts', count: characters }),
      workspaceId,
      userId,
      apiKeyId,
      operation: 'synthesize',
      resourceId: id,
      operationKey: chargeKey(id),
      at: createdAt,
    });
    const keepsAudio = await hasWebhookFor(tx, { workspaceId, event: 'tts.completed' });
    await insertTtsStream(tx, { ...stream, audioKey: keepsAudio ? audioKey : null });
    return { charge: charged, keepsAudio };
  });
}

export type StreamEnding =
  | { outcome: 'completed'; durationMs: number; webhookData: WebhookEventData['tts.completed']; audioExpiresAt: Date }
  /** Notifies webhooks and refunds the whole charge or the undelivered part. */
  | { outcome: 'failed'; error: string; refunds: 'all' | 'undelivered' }
  /** The client left. Webhooks get no event. */
  | { outcome: 'abandoned'; owes: boolean };

/**
 * Stores the end of a request with its refund and webhook events, in one transaction. Changes nothing if the end is
 * already stored or the charge was never made. Returns the deliveries to enqueue.
 */
export async function closeStream(
  sql: SqlOrTx,
  { id, workspaceId, voiceId }: Pick<TtsStreamRow, 'id' | 'workspaceId' | 'voiceId'>,
  { ending, now }: { ending: StreamEnding; now: Date },
): Promise<string[]> {
  const isCompleted = ending.outcome === 'completed';
  return await inTransaction(sql, async (tx) => {
    // If the response to a charge was lost, its transaction may still be running; it holds this lock until its end.
    await lockAccounts(tx, workspaceId);
    const ended = await endTtsStream(tx, {
      id,
      state: ending.outcome,
      error: ending.outcome === 'failed' ? ending.error : null,
      durationMs: isCompleted ? Math.round(ending.durationMs) : null,
      audioExpiresAt: isCompleted ? ending.audioExpiresAt : now,
      now,
    });
    if (ended === null) return [];
    if (isCompleted)
      return await emitWebhookEvent(tx, { workspaceId, event: 'tts.completed', data: ending.webhookData, now });
    if (ending.outcome === 'abandoned' && ending.owes) return [];
    const isPartial = ending.outcome === 'failed' && ending.refunds === 'undelivered';
    const { chargedNano } = (await chargeOf(tx, chargeKey(id)))!;
    const amountNano = isPartial ? shareOf(chargedNano, ended) : chargedNano;
    if (amountNano > 0n || !isPartial) {
      const operation = { operationKey: `${chargeKey(id)}:refund`, at: now };
      await refund(tx, { workspaceId, reversesOperationKey: chargeKey(id), amountNano, ...operation });
    }
    if (ending.outcome === 'abandoned') return [];
    const data = { id, voice_id: voiceId, error: ending.error };
    return await emitWebhookEvent(tx, { workspaceId, event: 'tts.failed', data, now });
  });
}

/** Price of the undelivered characters, rounded up. */
function shareOf(chargedNano: bigint, { characters, deliveredCharacters }: TtsStreamRow): bigint {
  const undelivered = BigInt(characters - deliveredCharacters);
  return (chargedNano * undelivered + BigInt(characters) - 1n) / BigInt(characters);
}

function chargeKey(streamId: string): string {
  return `tts:${streamId}`;
}
