import { inTransaction, type SqlOrTx, type Tx } from './database.ts';
import {
  earlierEntry,
  lockAccounts,
  type PaymentType,
  type PostedEntry,
  post,
  type Wallet,
  walletFrom,
} from './ledger-entries.ts';

export interface TopUpInput {
  workspaceId: string;
  /** Positive. */
  amountNano: bigint;
  paymentType: PaymentType;
  operationKey: string;
  description?: string;
  at?: Date;
  /** Stored payment to complete; default: a new one. */
  paymentId?: string;
  /** Earlier reversed payment whose money returns. */
  reversesPaymentId?: string;
}

export async function topUp(sql: SqlOrTx, input: TopUpInput): Promise<{ entryId: string; wallet: Wallet }> {
  return await pay(sql, { ...input, kind: 'top_up' });
}

export type ReversalInput = Omit<TopUpInput, 'paymentId' | 'reversesPaymentId'> & {
  reversesPaymentId: string;
};

/**
 * Takes a payment's money out of the wallet and lists that as a negative payment. The wallet may become negative; then
 * nothing can be spent until it is topped up.
 */
export async function reverseTopUp(sql: SqlOrTx, input: ReversalInput): Promise<{ entryId: string; wallet: Wallet }> {
  return await pay(sql, { ...input, kind: 'reversal' });
}

type PaymentInput = TopUpInput & { kind: 'top_up' | 'reversal' };

async function pay(sql: SqlOrTx, input: PaymentInput): Promise<{ entryId: string; wallet: Wallet }> {
  const { kind, workspaceId, amountNano } = input;
  if (amountNano <= 0n) throw new RangeError('a payment is above zero');
  return await inTransaction(sql, async (tx) => {
    const accounts = await lockAccounts(tx, workspaceId);
    const earlier = await earlierEntry(tx, input, kind, amountNano);
    if (earlier) return { entryId: earlier.id, wallet: walletFrom(accounts) };
    const movedNano = kind === 'top_up' ? amountNano : -amountNano;
    const posted = await post(tx, accounts, {
      ...input,
      requestedNano: amountNano,
      resultNano: amountNano,
      postings: { funding: -movedNano, wallet: movedNano },
    });
    await recordPayment(tx, { ...input, amountNano: movedNano }, posted);
    return { entryId: posted.id, wallet: walletFrom(await lockAccounts(tx, workspaceId)) };
  });
}

async function recordPayment(tx: Tx, input: PaymentInput, entry: PostedEntry): Promise<void> {
  const outcome = {
    status: 'succeeded',
    paymentType: input.paymentType,
    amountNano: input.amountNano,
    currency: 'USD',
    entryId: entry.id,
    balanceBeforeNano: entry.balanceBeforeNano,
    balanceAfterNano: entry.balanceAfterNano,
    description: input.description ?? '',
  };
  const { workspaceId, reversesPaymentId = null, at: createdAt = new Date() } = input;
  const row = { ...outcome, workspaceId, reversesPaymentId, createdAt };
  if (input.paymentId === undefined) await tx`insert into payments ${tx({ ...row, id: entry.id })}`;
  else await tx`update payments set ${tx(outcome)} where id = ${input.paymentId}`;
}
