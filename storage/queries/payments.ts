import type { SqlOrTx } from '../database.ts';
import type { PaymentType } from '../ledger.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export type PaymentStatus = 'succeeded' | 'pending' | 'failed';

/** A top-up or a subscription payment: money that came in, is on its way, did not arrive, or was taken back. */
export interface PaymentRow {
  id: string;
  position: bigint;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`; below zero where it takes back money of an earlier payment. */
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
  /** The payment whose money was taken back, or came again. */
  reversesPaymentId: string | null;
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

/** An event of a payment provider, as far as it concerns wallets. */
export interface PaymentNews {
  provider: 'stripe';
  eventId: string;
  eventType: string;
  /** When it happened, to the provider's second. */
  eventTime: Date;
  receivedAt: Date;
  /** How far a payment has come. */
  payment: PaymentTold | null;
  names: readonly PaymentName[];
  reversals: readonly ReversalTold[];
}

/** What a payment provider says about a payment. */
export interface PaymentTold {
  /** The provider's name for the payment, the same in all its events. */
  providerPaymentId: string;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`. */
  amountNano: bigint;
  currency: string;
  description: string;
}

/** What a payment provider says about a refund or a dispute of a payment. */
export interface ReversalTold {
  /** The provider's id: of a refund, of a dispute, or of the charge for all its refunds together. */
  id: string;
  kind: 'refund' | 'refunded_in_all' | 'dispute';
  /** What it calls the payment. */
  paymentName: string;
  /** Billionths of `currency`. */
  amountNano: bigint;
  currency: string;
  /** The refund failed, or the money of the dispute came back. */
  isUndone: boolean;
}

/** Another name of a payment, which the provider uses in events about it. */
export interface PaymentName {
  name: string;
  providerPaymentId: string;
}

function matching(sql: SqlOrTx, { workspaceId, paymentType, status, from, to }: PaymentFilters) {
  return sql`
    where workspace_id = ${workspaceId}
    ${paymentType === undefined ? sql`` : sql`and payment_type = ${paymentType}`}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${from === undefined ? sql`` : sql`and created_at >= ${from}`}
    ${to === undefined ? sql`` : sql`and created_at < ${to}`}`;
}
