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
  /** Above zero. */
  amountNano: bigint;
  paymentType: PaymentType;
  operationKey: string;
  description?: string;
  at?: Date;
  /** The stored payment that this completes; default: a new one. */
  paymentId?: string;
  /** The payment whose money was taken back and comes again. */
  reversesPaymentId?: string;
}

/** Puts money into the wallet and lists it among the payments. */
export async function topUp(sql: SqlOrTx, input: TopUpInput): Promise<{ entryId: string; wallet: Wallet }> {
  return await pay(sql, { ...input, kind: 'top_up' });
}

export type ReversalInput = Omit<TopUpInput, 'paymentId' | 'reversesPaymentId'> & {
  /** The payment whose money is taken back. */
  reversesPaymentId: string;
};

/**
 * Takes money of a payment out of the wallet again and lists that among the payments, with an amount below zero. What
 * was spent meanwhile leaves the wallet below zero, and then nothing can be spent until it is topped up.
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
