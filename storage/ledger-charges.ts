import { TandemError } from '../machines/errors.ts';
import { inTransaction, type SqlOrTx } from './database.ts';
import {
  conflict,
  type EntryRow,
  earlierEntry,
  lockAccounts,
  type PostedEntry,
  post,
  walletFrom,
} from './ledger-entries.ts';
import { logRefund, logUsage, type Usage } from './ledger-usage.ts';

export interface ChargeInput extends Usage {
  workspaceId: string;
  /** What it costs, from `costOf`. */
  amountNano: bigint;
  operationKey: string;
  description?: string;
  at?: Date;
}

/** What was charged, and what the three billing headers tell. */
export interface Charge {
  /** The audit row. */
  entryId: string;
  chargedNano: bigint;
  /** Available and held, around the charge. */
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
}

/**
 * Takes the whole amount at once, or nothing. A replay returns the first charge.
 * @throws TandemError `INSUFFICIENT_CREDITS` with `details` of `required`, `available` and `shortfall` in USD.
 */
export async function charge(sql: SqlOrTx, input: ChargeInput): Promise<Charge> {
  const { amountNano } = input;
  if (amountNano < 0n) throw new RangeError('a charge is not negative');
  return await inTransaction(sql, async (tx) => {
    const accounts = await lockAccounts(tx, input.workspaceId);
    const earlier = await earlierEntry(tx, input, 'charge', amountNano);
    if (earlier) return chargeFrom(earlier);
    const { availableNano } = walletFrom(accounts);
    if (amountNano > 0n && availableNano < amountNano) throw insufficientCredits(amountNano, availableNano);
    const posted = await post(tx, accounts, {
      ...input,
      kind: 'charge',
      requestedNano: amountNano,
      resultNano: amountNano,
      postings: { wallet: -amountNano, revenue: amountNano },
    });
    await logUsage(tx, posted, input);
    return chargeFrom(posted);
  });
}

export interface RefundInput {
  workspaceId: string;
  /** The operation key of the charge or settle that is taken back. */
  reversesOperationKey: string;
  /** Default: all that was charged. Never more. */
  amountNano?: bigint;
  operationKey: string;
  description?: string;
  at?: Date;
}

/**
 * Gives a charge back, once: a second refund of the same charge, under whatever key, refunds nothing more and
 * returns what the first one gave.
 */
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

/** What a settle or charge of that key took; null when there was none. */
export async function chargeOf(sql: SqlOrTx, operationKey: string): Promise<Charge | null> {
  const [entry] = await sql<EntryRow[]>`
    select * from entries where operation_key = ${operationKey} and kind in ('settle', 'charge')`;
  return entry === undefined ? null : chargeFrom(entry);
}

function chargeFrom({ id, resultNano, balanceBeforeNano, balanceAfterNano }: PostedEntry): Charge {
  return { entryId: id, chargedNano: resultNano, balanceBeforeNano, balanceAfterNano };
}

export function insufficientCredits(requiredNano: bigint, availableNano: bigint): TandemError {
  return new TandemError('INSUFFICIENT_CREDITS', 'Insufficient wallet balance. Top up the wallet.', {
    details: {
      required: usd(requiredNano),
      available: usd(availableNano),
      shortfall: usd(requiredNano - availableNano),
    },
  });
}

function usd(nano: bigint): number {
  return Number(nano) / 1e9;
}
