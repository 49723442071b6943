import { TandemError } from '../machines/errors.ts';
import { nanoToUsd } from '../runtime/money.ts';
import { inTransaction, type SqlOrTx, type Tx } from './database.ts';
import {
  type Accounts,
  conflict,
  type EntryRow,
  earlierEntry,
  lockAccounts,
  type NewEntry,
  newEntry,
  type PostedEntry,
  post,
  storeEntries,
  type Wallet,
  walletFrom,
} from './ledger-entries.ts';
import { logRefund, logUsage, type Usage } from './ledger-usage.ts';

export interface ChargeInput extends Usage {
  workspaceId: string;
  /** Price from `costOf`. */
  amountNano: bigint;
  /** Price if only a part of it, `amountNano`, is charged. Default: `amountNano`. */
  owedNano?: bigint;
  operationKey: string;
  description?: string;
  at?: Date;
}

/** A charge, as reported by the three billing headers. */
export interface Charge {
  entryId: string;
  chargedNano: bigint;
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
}

/**
 * Charges the whole amount or nothing. A repeated key returns the first charge.
 * @throws TandemError `INSUFFICIENT_CREDITS` with `details` of `required`, `available` and `shortfall` in USD
 */
export async function charge(sql: SqlOrTx, input: ChargeInput): Promise<Charge> {
  const { amountNano, owedNano = amountNano } = input;
  if (amountNano < 0n) throw new RangeError('a charge is not negative');
  return await inTransaction(sql, async (tx) => {
    const [accounts, earlier] = await Promise.all([
      lockAccounts(tx, input.workspaceId),
      earlierEntry(tx, input, 'charge', owedNano),
    ]);
    if (earlier) return chargeFrom(earlier);
    requireCredits(amountNano, walletFrom(accounts));
    const made = newCharge(accounts, input);
    await storeCharges(tx, [made]);
    return chargeFrom(made.entry.entry);
  });
}

/** A charge that is not stored yet. */
export interface NewCharge {
  entry: NewEntry;
  usage: Usage;
}

/** As `charge`, for a new key when the accounts are already locked. Only `storeCharges` writes. */
export function newCharge(accounts: Accounts, input: ChargeInput): NewCharge {
  const { amountNano, owedNano = amountNano } = input;
  const entry = newEntry(accounts, {
    ...input,
    kind: 'charge',
    requestedNano: owedNano,
    resultNano: amountNano,
    postings: { wallet: -amountNano, revenue: amountNano },
  });
  return { entry, usage: input };
}

/** Stores charges of one workspace in order, each made with the accounts after the one before. One round trip. */
export async function storeCharges(tx: Tx, charges: readonly NewCharge[]): Promise<void> {
  if (charges.length === 0) return;
  await Promise.all([
    storeEntries(
      tx,
      charges.map(({ entry }) => entry),
    ),
    ...charges.map(({ entry, usage }) => logUsage(tx, entry.entry.id, usage)),
  ]);
}

export interface RefundInput {
  workspaceId: string;
  reversesOperationKey: string;
  /** Default: the whole charge. Never more. */
  amountNano?: bigint;
  operationKey: string;
  description?: string;
  at?: Date;
}

/** Refunds a charge once. A second refund, under any key, changes nothing and returns the first one's amount. */
export async function refund(sql: SqlOrTx, input: RefundInput): Promise<{ refundedNano: bigint }> {
  return await inTransaction(sql, async (tx) => {
    const accounts = await lockAccounts(tx, input.workspaceId);
    const [charged] = await tx<EntryRow[]>`
      select * from entries where operation_key = ${input.reversesOperationKey} and kind in ('settle', 'charge')
        and workspace_id = ${input.workspaceId}`;
    if (!charged) throw conflict(input.reversesOperationKey, 'no charge was made under it');
    const amountNano = input.amountNano ?? charged.resultNano;
    if (amountNano < 0n || amountNano > charged.resultNano) {
      throw new RangeError('a refund is between zero and what was charged');
    }
    const earlier = await earlierEntry(tx, input, 'refund', amountNano);
    if (earlier) return { refundedNano: earlier.resultNano };
    const [refunded] = await tx<EntryRow[]>`select * from entries where reverses_id = ${charged.id}`;
    if (refunded) return { refundedNano: refunded.resultNano };
    const posted = await post(tx, accounts, {
      ...input,
      callId: charged.callId,
      kind: 'refund',
      reversesId: charged.id,
      requestedNano: amountNano,
      resultNano: amountNano,
      postings: { revenue: -amountNano, wallet: amountNano },
    });
    await logRefund(tx, posted, charged.id);
    return { refundedNano: amountNano };
  });
}

/** Returns the charge or settle with this key; null if there is none. */
export async function chargeOf(sql: SqlOrTx, operationKey: string): Promise<Charge | null> {
  const [entry] = await sql<EntryRow[]>`
    select * from entries where operation_key = ${operationKey} and kind in ('settle', 'charge')`;
  return entry === undefined ? null : chargeFrom(entry);
}

function chargeFrom({ id, resultNano, balanceBeforeNano, balanceAfterNano }: Omit<PostedEntry, 'position'>): Charge {
  return { entryId: id, chargedNano: resultNano, balanceBeforeNano, balanceAfterNano };
}

/** Nothing to pay is covered by an overdrawn wallet, too. @throws TandemError `INSUFFICIENT_CREDITS` */
export function requireCredits(amountNano: bigint, { availableNano }: Pick<Wallet, 'availableNano'>): void {
  if (amountNano > 0n && availableNano < amountNano) throw insufficientCredits(amountNano, availableNano);
}

export function insufficientCredits(requiredNano: bigint, availableNano: bigint): TandemError {
  return new TandemError('INSUFFICIENT_CREDITS', 'Insufficient wallet balance. Top up the wallet.', {
    details: {
      required: nanoToUsd(requiredNano),
      available: nanoToUsd(availableNano),
      shortfall: nanoToUsd(requiredNano - availableNano),
    },
  });
}
