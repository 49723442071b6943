import { TandemError } from '../../machines/errors.ts';
import type { DecodedAudio, RecognisedFile, RefinedFile, Settlement } from '../../machines/transcription.machine.ts';
import { decibels, seconds } from '../../machines/utterances.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { inTransaction, type Sql, type SqlOrTx } from '../../storage/database.ts';
import { type Charge, charge, chargeOf, walletOf } from '../../storage/ledger.ts';
import { lockAccounts } from '../../storage/ledger-entries.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { TranscribeRequest } from './transcriber.ts';

/** The transcription and its workspace, for charges and webhooks. */
export interface TranscriptionAccount {
  transcriptionId: string;
  requestId: string;
  request: TranscribeRequest;
}

export interface AccountOptions {
  sql: Sql;
  deliverer: Pick<Deliverer, 'enqueue'>;
  now: Date;
}

/**
 * Checks that the wallet covers the duration or, if that is unknown, is not empty.
 * @throws TandemError `ZERO_BALANCE`, `INSUFFICIENT_CREDITS`
 */
export async function requireFunds(
  sql: Sql,
  { workspaceId, diarize }: TranscribeRequest,
  durationMs: number | null,
): Promise<void> {
  const { availableNano } = await walletOf(sql, workspaceId);
  const { amountNano, unitPriceNano } = await priceOf(sql, { workspaceId, diarize, durationMs: durationMs ?? 0 });
  if (unitPriceNano === 0n) return;
  if (availableNano <= 0n) throw new TandemError('ZERO_BALANCE', 'The wallet is empty. Top up the wallet.');
  if (availableNano >= amountNano) return;
  throw new TandemError(
    'INSUFFICIENT_CREDITS',
    'The wallet balance does not cover audio of this length. Top up the wallet.',
    {
      details: {
        required: nanoToUsd(amountNano),
        available: nanoToUsd(availableNano),
        shortfall: nanoToUsd(amountNano - availableNano),
      },
    },
  );
}

/**
 * Charges once for the file's duration, silence included, unless noise covered all speech. Stores the webhook event in
 * the same transaction. If the response to its commit is lost, looks for the charge: with it, everything is stored.
 * @throws TandemError `INSUFFICIENT_CREDITS` if other work has spent the money
 */
export async function settleTranscription(
  { transcriptionId, requestId, request }: TranscriptionAccount,
  { audio, file, refined }: { audio: DecodedAudio; file: RecognisedFile; refined: RefinedFile | null },
  { sql, deliverer, now }: AccountOptions,
): Promise<Settlement> {
  const { workspaceId, userId, apiKeyId, diarize } = request;
  const operationKey = `transcription:${transcriptionId}`;
  const { deliveries, charged } = await inTransaction(sql, async (tx) => {
    const { durationMs } = audio;
    const charged =
      file.text === '' && file.unusable.includes('low_snr_dropped')
        ? null
        : await charge(tx, {
            ...(await priceOf(tx, { workspaceId, diarize, durationMs })),
            workspaceId,
            userId,
            apiKeyId,
            operation: 'transcription',
            resourceId: requestId,
            operationKey,
            at: now,
          });
    const data = {
      id: requestId,
      text: refined?.text ?? file.text,
      // Undetermined (ISO 639-2).
      language: file.language ?? 'und',
      duration: seconds(durationMs),
      snr_db: decibels(file.snrDb),
      source: 'rest' as const,
    };
    return { charged, deliveries: await emitWebhookEvent(tx, { workspaceId, event: 'stt.completed', data, now }) };
  }).catch(async (error: unknown) => {
    if (error instanceof TandemError) throw error;
    const earlier = await storedCharge(sql, { workspaceId, operationKey }).catch(() => null);
    if (earlier === null) throw error;
    // The sweeper sends webhook deliveries.
    return { charged: earlier, deliveries: [] };
  });
  for (const id of deliveries) void deliverer.enqueue(id);
  if (charged === null) return { charge: null };
  const { entryId, chargedNano, balanceAfterNano } = charged;
  return { charge: { entryId, chargedNano, balanceAfterNano } };
}

/** Waits for a transaction that may still be running; it locks the accounts until its end. */
async function storedCharge(
  sql: Sql,
  { workspaceId, operationKey }: { workspaceId: string; operationKey: string },
): Promise<Charge | null> {
  return await inTransaction(sql, async (tx) => {
    await lockAccounts(tx, workspaceId);
    return await chargeOf(tx, operationKey);
  });
}

export async function reportFailure(
  { requestId, request: { workspaceId } }: TranscriptionAccount,
  code: string,
  { sql, deliverer, now }: AccountOptions,
): Promise<void> {
  const data = { id: requestId, error: code };
  const deliveries = await inTransaction(sql, (tx) =>
    emitWebhookEvent(tx, { workspaceId, event: 'stt.failed', data, now }),
  );
  for (const id of deliveries) void deliverer.enqueue(id);
}

async function priceOf(
  sql: SqlOrTx,
  { workspaceId, diarize, durationMs }: { workspaceId: string; diarize: boolean; durationMs: number },
) {
  return costOf(await priceBookOf(sql, workspaceId), { service: 'stt', count: durationMs, diarized: diarize });
}
