import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { topUp, walletOf } from '../ledger.ts';
import { recordAudit } from './audit.ts';
import { isUuid } from './identifiers.ts';
import { settleReversals, storeReversals } from './payment-reversals.ts';
import type { PaymentNews, PaymentRow, PaymentStatus, ReportedPayment } from './payments.ts';

/** `ignored`: outdated, or the payment has already succeeded. */
export type PaymentOutcome = 'replayed' | 'ignored' | 'recorded' | 'credited' | 'debited';

const WALLET_CURRENCY = 'USD';

/**
 * Processes an event of a payment provider once, in any order of events. Credits or debits the wallet in the same
 * transaction. A payment in another currency than the wallet's is stored as failed.
 * @throws TandemError `WORKSPACE_NOT_FOUND`; nothing is stored then, so the provider repeats the event
 */
export async function takePaymentNews(sql: SqlOrTx, news: PaymentNews): Promise<PaymentOutcome> {
  if (news.payment !== null && !isUuid(news.payment.workspaceId))
    throw new TandemError('WORKSPACE_NOT_FOUND', 'Workspace not found.');
  return await inTransaction(sql, async (tx) => {
    // Otherwise a payment and its refund that arrive together would not see each other.
    await tx`select pg_advisory_xact_lock(hashtextextended(${`payments:${news.provider}`}, 0))`;
    const event = {
      provider: news.provider,
      eventId: news.eventId,
      type: news.eventType,
      receivedAt: news.receivedAt,
    };
    const first = await tx`insert into payment_events ${tx(event)} on conflict do nothing returning 1`;
    if (first.length === 0) return 'replayed';
    await storeReversals(tx, news);
    const outcome = news.payment === null ? 'recorded' : await takePayment(tx, news, news.payment);
    return (await settleReversals(tx, news)) ?? outcome;
  });
}

async function takePayment(tx: Tx, news: PaymentNews, reported: ReportedPayment): Promise<PaymentOutcome> {
  const payment = await lockPayment(tx, news, reported);
  if (!isNews(payment, { status: reported.status, eventTime: news.eventTime })) return 'ignored';
  if (reported.status === 'succeeded' && reported.currency === WALLET_CURRENCY) {
    await credit(tx, payment, { news, reported });
    return 'credited';
  }
  await tx`update payments set ${tx(storedOf(reported))}, provider_time = ${news.eventTime} where id = ${payment.id}`;
  return 'recorded';
}

async function credit(
  tx: Tx,
  payment: PaymentRow,
  { news, reported }: { news: PaymentNews; reported: ReportedPayment },
): Promise<void> {
  await topUp(tx, {
    workspaceId: payment.workspaceId,
    amountNano: reported.amountNano,
    paymentType: reported.paymentType,
    operationKey: `${news.provider}:${reported.providerPaymentId}`,
    description: reported.description,
    paymentId: payment.id,
    at: news.receivedAt,
  });
  await recordAudit(tx, {
    workspaceId: payment.workspaceId,
    actor: null,
    action: 'wallet.topped_up',
    target: { type: 'transaction', id: payment.id },
    details: { by: news.provider, amount_usd: nanoToUsd(reported.amountNano) },
    now: news.receivedAt,
  });
  await tx`update payments set provider_time = ${news.eventTime} where id = ${payment.id}`;
}

/** Locks the payment's row. Creates it for the first event. */
async function lockPayment(
  tx: Tx,
  { provider, receivedAt }: PaymentNews,
  reported: ReportedPayment,
): Promise<PaymentRow> {
  const { providerPaymentId, workspaceId } = reported;
  const { balanceNano } = await walletOf(tx, workspaceId);
  const row = {
    ...storedOf(reported),
    id: randomUUID(),
    status: 'pending',
    provider,
    providerPaymentId,
    workspaceId,
    balanceBeforeNano: balanceNano,
    balanceAfterNano: balanceNano,
    createdAt: receivedAt,
  };
  await tx`insert into payments ${tx(row)} on conflict (provider, provider_payment_id) do nothing`;
  const [payment] = await tx<PaymentRow[]>`
    select * from payments where provider = ${provider} and provider_payment_id = ${providerPaymentId} for update`;
  return payment!;
}

/** A payment in another currency is always rejected. */
function storedOf({ status, currency, ...reported }: ReportedPayment) {
  const refused = currency !== WALLET_CURRENCY;
  return {
    status: refused ? 'failed' : status,
    paymentType: reported.paymentType,
    amountNano: reported.amountNano,
    currency,
    description: refused
      ? `Refused: the wallet takes ${WALLET_CURRENCY} only. ${reported.description}`.trim()
      : reported.description,
  };
}

/** Order of events with equal times, which are in seconds. */
const PROGRESS: Readonly<Record<PaymentStatus, number>> = { pending: 0, failed: 1, succeeded: 2 };

/** Whether the event is newer. Success is final and applies even if reported late. */
function isNews(payment: PaymentRow, { status, eventTime }: { status: PaymentStatus; eventTime: Date }): boolean {
  if (payment.status === 'succeeded') return false;
  if (payment.providerTime === null || status === 'succeeded') return true;
  const laterMs = eventTime.getTime() - payment.providerTime.getTime();
  return laterMs > 0 || (laterMs === 0 && PROGRESS[status] > PROGRESS[payment.status]);
}
