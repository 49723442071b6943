import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { type PaymentType, topUp, walletOf } from '../ledger.ts';
import { recordAudit } from './audit.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export type PaymentStatus = 'succeeded' | 'pending' | 'failed';

/** A top-up or a subscription payment: money that came in, is on its way, or did not arrive. */
export interface PaymentRow {
  id: string;
  position: bigint;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`. */
  amountNano: bigint;
  /** ISO 4217, upper case. */
  currency: string;
  /** Of one that succeeded. */
  entryId: string | null;
  /** Around the entry; without one both are what the balance was when the payment was first heard of. */
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
  description: string;
  provider: string | null;
  providerPaymentId: string | null;
  providerTime: Date | null;
  createdAt: Date;
}

export interface PaymentFilters {
  workspaceId: string;
  paymentType?: PaymentType;
  status?: PaymentStatus;
  /** created_at in [from, to). */
  from?: Date;
  to?: Date;
}

/** Newest first. */
export async function listPayments(sql: SqlOrTx, filters: PaymentFilters, page: Page): Promise<PageOf<PaymentRow>> {
  const rows = await sql<PaymentRow[]>`
    select * from payments ${matching(sql, filters)}
    order by position desc limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from payments ${matching(sql, filters)}`;
  return { rows, total: count?.total ?? 0 };
}

/** Up to `limit` payments after a position, oldest first. */
export async function paymentsAfter(
  sql: SqlOrTx,
  filters: PaymentFilters,
  { position, limit }: { position: bigint; limit: number },
): Promise<PaymentRow[]> {
  return await sql<PaymentRow[]>`
    select * from payments ${matching(sql, filters)} and position > ${position} order by position limit ${limit}`;
}

/** What a payment provider tells of a payment. */
export interface PaymentNews {
  provider: 'stripe';
  eventId: string;
  eventType: string;
  /** When it happened, to the provider's second. */
  eventTime: Date;
  /** The provider's name for the payment, the same in all its events. */
  providerPaymentId: string;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`. */
  amountNano: bigint;
  currency: string;
  description: string;
  receivedAt: Date;
}

/** `ignored`: it is older than what is known, or the payment has succeeded already. */
export type PaymentOutcome = 'replayed' | 'ignored' | 'recorded' | 'credited';

const WALLET_CURRENCY = 'USD';

/**
 * Takes in an event of a payment provider: once, in whatever order events arrive, and with the wallet credited in the
 * same transaction. A payment in another currency than the wallet's is kept as failed.
 * @throws TandemError `WORKSPACE_NOT_FOUND`; nothing is kept then, so the provider tells it again.
 */
export async function takePaymentNews(sql: SqlOrTx, news: PaymentNews): Promise<PaymentOutcome> {
  if (!isUuid(news.workspaceId)) throw new TandemError('WORKSPACE_NOT_FOUND', 'There is no such workspace.');
  return await inTransaction(sql, async (tx) => {
    const event = {
      provider: news.provider,
      eventId: news.eventId,
      type: news.eventType,
      receivedAt: news.receivedAt,
    };
    const first = await tx`insert into payment_events ${tx(event)} on conflict do nothing returning 1`;
    if (first.length === 0) return 'replayed';
    const payment = await lockPayment(tx, news);
    if (!isNews(payment, news)) return 'ignored';
    if (news.status === 'succeeded' && news.currency === WALLET_CURRENCY) {
      await credit(tx, payment, news);
      return 'credited';
    }
    await tx`
      update payments set ${tx(storedOf(news))}, provider_time = ${news.eventTime} where id = ${payment.id}`;
    return 'recorded';
  });
}

async function credit(tx: Tx, payment: PaymentRow, news: PaymentNews): Promise<void> {
  await topUp(tx, {
    workspaceId: payment.workspaceId,
    amountNano: news.amountNano,
    paymentType: news.paymentType,
    operationKey: `${news.provider}:${news.providerPaymentId}`,
    description: news.description,
    paymentId: payment.id,
    at: news.receivedAt,
  });
  await recordAudit(tx, {
    workspaceId: payment.workspaceId,
    actor: null,
    action: 'wallet.topped_up',
    target: { type: 'transaction', id: payment.id },
    details: { by: news.provider, amount_usd: Number(news.amountNano) / 1e9 },
    now: news.receivedAt,
  });
  await tx`update payments set provider_time = ${news.eventTime} where id = ${payment.id}`;
}

/** The payment's row, made when this is the first that is heard of it. */
async function lockPayment(tx: Tx, news: PaymentNews): Promise<PaymentRow> {
  const { provider, providerPaymentId, workspaceId } = news;
  const { balanceNano } = await walletOf(tx, workspaceId);
  const row = {
    ...storedOf(news),
    id: randomUUID(),
    status: 'pending',
    provider,
    providerPaymentId,
    workspaceId,
    balanceBeforeNano: balanceNano,
    balanceAfterNano: balanceNano,
    createdAt: news.receivedAt,
  };
  await tx`insert into payments ${tx(row)} on conflict (provider, provider_payment_id) do nothing`;
  const [payment] = await tx<PaymentRow[]>`
    select * from payments where provider = ${provider} and provider_payment_id = ${providerPaymentId} for update`;
  return payment!;
}

/** A refused currency is refused whatever becomes of the payment. */
function storedOf({ status, currency, ...news }: PaymentNews) {
  const refused = currency !== WALLET_CURRENCY;
  return {
    status: refused ? 'failed' : status,
    paymentType: news.paymentType,
    amountNano: news.amountNano,
    currency,
    description: refused
      ? `Refused: the wallet takes ${WALLET_CURRENCY} only. ${news.description}`.trim()
      : news.description,
  };
}

/** How far a payment has come, for events of one second, which have no order. */
const PROGRESS: Readonly<Record<PaymentStatus, number>> = { pending: 0, failed: 1, succeeded: 2 };

/** Success is final, and comes through however late it is told. Otherwise later news wins. */
function isNews(payment: PaymentRow, { status, eventTime }: PaymentNews): boolean {
  if (payment.status === 'succeeded') return false;
  if (payment.providerTime === null || status === 'succeeded') return true;
  const laterMs = eventTime.getTime() - payment.providerTime.getTime();
  return laterMs > 0 || (laterMs === 0 && PROGRESS[status] > PROGRESS[payment.status]);
}

function matching(sql: SqlOrTx, { workspaceId, paymentType, status, from, to }: PaymentFilters) {
  return sql`
    where workspace_id = ${workspaceId}
    ${paymentType === undefined ? sql`` : sql`and payment_type = ${paymentType}`}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${from === undefined ? sql`` : sql`and created_at >= ${from}`}
    ${to === undefined ? sql`` : sql`and created_at < ${to}`}`;
}
