import { nanoToUsd } from '../../runtime/money.ts';
import type { Tx } from '../database.ts';
import { reverseTopUp, topUp } from '../ledger.ts';
import { recordAudit } from './audit.ts';
import type { PaymentNews, PaymentRow } from './payments.ts';

/** Stores reversals independent of their order: a failed refund stays failed, and a dispute keeps its latest state. */
export async function storeReversals(tx: Tx, { provider, eventTime, names, reversals }: PaymentNews): Promise<void> {
  for (const name of names) {
    await tx`insert into payment_names ${tx({ provider, ...name })} on conflict do nothing`;
  }
  for (const reversal of reversals) {
    await tx`
      insert into payment_reversals ${tx({ provider, ...reversal, providerTime: eventTime })}
      on conflict (provider, id) do update set
        amount_nano = greatest(payment_reversals.amount_nano, excluded.amount_nano),
        is_undone = case
          when excluded.kind <> 'dispute' or excluded.provider_time = payment_reversals.provider_time
            then payment_reversals.is_undone or excluded.is_undone
          when excluded.provider_time > payment_reversals.provider_time then excluded.is_undone
          else payment_reversals.is_undone end,
        provider_time = greatest(payment_reversals.provider_time, excluded.provider_time)`;
  }
}

/**
 * Makes the wallet match the known refunds and disputes of the event's payments: debits what is missing, or credits an
 * excess. Null if it already matched.
 */
export async function settleReversals(tx: Tx, news: PaymentNews): Promise<'debited' | 'credited' | null> {
  let outcome: 'debited' | 'credited' | null = null;
  for (const payment of await affectedPayments(tx, news)) {
    const missingNano = (await reversedNano(tx, payment)) - (await takenNano(tx, payment));
    if (missingNano === 0n) continue;
    outcome = missingNano > 0n ? 'debited' : 'credited';
    await move(tx, payment, { news, missingNano });
  }
  return outcome;
}

async function affectedPayments(tx: Tx, { provider, payment, names, reversals }: PaymentNews): Promise<PaymentRow[]> {
  const ids = [
    ...(payment === null ? [] : [payment.providerPaymentId]),
    ...names.map(({ providerPaymentId }) => providerPaymentId),
    ...reversals.map(({ paymentName }) => paymentName),
  ];
  return await tx<PaymentRow[]>`
    select * from payments
    where provider = ${provider} and status = 'succeeded' and (
      provider_payment_id in ${tx(ids)} or provider_payment_id in (
        select provider_payment_id from payment_names where provider = ${provider} and name in ${tx(ids)}))
    order by id for update`;
}

/**
 * Amount that the provider has taken back from a payment, at most its credit. Counts refunds one by one, plus the rest
 * of the charge's total refunds.
 */
async function reversedNano(tx: Tx, { provider, providerPaymentId, amountNano }: PaymentRow): Promise<bigint> {
  const [row] = await tx<{ reversedNano: bigint }[]>`
    select (
      coalesce(sum(amount_nano) filter (where kind <> 'refunded_in_all' and not is_undone), 0)
      + greatest(0, coalesce(sum(amount_nano) filter (where kind = 'refunded_in_all'), 0)
        - coalesce(sum(amount_nano) filter (where kind = 'refund'), 0))
    )::bigint as reversed_nano
    from payment_reversals
    where provider = ${provider} and currency = 'USD' and (payment_name = ${providerPaymentId} or payment_name in (
      select name from payment_names where provider = ${provider} and provider_payment_id = ${providerPaymentId}))`;
  const reversedNano = row!.reversedNano;
  return reversedNano < amountNano ? reversedNano : amountNano;
}

async function takenNano(tx: Tx, { id }: PaymentRow): Promise<bigint> {
  const [row] = await tx<{ takenNano: bigint }[]>`
    select coalesce(-sum(amount_nano), 0)::bigint as taken_nano from payments where reverses_payment_id = ${id}`;
  return row!.takenNano;
}

async function move(
  tx: Tx,
  { id, workspaceId, paymentType, description }: PaymentRow,
  { news, missingNano }: { news: PaymentNews; missingNano: bigint },
): Promise<void> {
  const isTaken = missingNano > 0n;
  const amountNano = isTaken ? missingNano : -missingNano;
  const { entryId } = await (isTaken ? reverseTopUp : topUp)(tx, {
    workspaceId,
    amountNano,
    paymentType,
    operationKey: `${news.provider}:${news.eventId}:${isTaken ? 'reversal' : 'return'}:${id}`,
    description: `${reasonOf(news, isTaken)}: ${description}`,
    reversesPaymentId: id,
    at: news.receivedAt,
  });
  await recordAudit(tx, {
    workspaceId,
    actor: null,
    action: isTaken ? 'wallet.debited' : 'wallet.topped_up',
    target: { type: 'transaction', id: entryId },
    details: { by: news.provider, amount_usd: nanoToUsd(amountNano), payment: id },
    now: news.receivedAt,
  });
}

function reasonOf({ reversals: [first] }: PaymentNews, isTaken: boolean): string {
  // The refund arrived before its payment.
  if (first === undefined) return 'Refunded or disputed';
  if (first.kind === 'dispute') return isTaken ? 'Disputed' : 'Dispute won';
  return isTaken ? 'Refunded' : 'Refund failed';
}
