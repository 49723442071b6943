import type { SqlOrTx } from '../database.ts';
import type { PaymentType } from '../ledger.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export type PaymentStatus = 'succeeded' | 'pending' | 'failed';

/** A top-up or subscription payment: succeeded, pending, failed or reversed. */
export interface PaymentRow {
  id: string;
  position: bigint;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`; negative for a reversal of an earlier payment. */
  amountNano: bigint;
  /** ISO 4217, upper case. */
  currency: string;
  /** Ledger entry; null unless the payment succeeded. */
  entryId: string | null;
  /** Before and after the entry; without one, both are the balance at the first event. */
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
  description: string;
  provider: string | null;
  providerPaymentId: string | null;
  providerTime: Date | null;
  /** Payment that was reversed or restored. */
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

/** Returns up to `limit` payments after a position, oldest first. */
export async function paymentsAfter(
  sql: SqlOrTx,
  filters: PaymentFilters,
  { position, limit }: { position: bigint; limit: number },
): Promise<PaymentRow[]> {
  return await sql<PaymentRow[]>`
    select * from payments ${matching(sql, filters)} and position > ${position} order by position limit ${limit}`;
}

/** An event of a payment provider that concerns wallets. */
export interface PaymentNews {
  provider: 'stripe';
  eventId: string;
  eventType: string;
  /** Provider's time, in seconds. */
  eventTime: Date;
  receivedAt: Date;
  payment: ReportedPayment | null;
  names: readonly PaymentName[];
  reversals: readonly ReportedReversal[];
}

/** A payment, as reported by the provider. */
export interface ReportedPayment {
  /** Provider's id of the payment, the same in all its events. */
  providerPaymentId: string;
  workspaceId: string;
  paymentType: PaymentType;
  status: PaymentStatus;
  /** Billionths of `currency`. */
  amountNano: bigint;
  currency: string;
  description: string;
}

/** A refund or dispute, as reported by the provider. */
export interface ReportedReversal {
  /** Provider's id: of a refund, of a dispute, or of the charge for all its refunds together. */
  id: string;
  kind: 'refund' | 'refunded_in_all' | 'dispute';
  /** Provider's name of the payment. */
  paymentName: string;
  /** Billionths of `currency`. */
  amountNano: bigint;
  currency: string;
  /** The refund failed, or the dispute's money returned. */
  isUndone: boolean;
}

/** Another provider name of a payment, used in some events. */
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
