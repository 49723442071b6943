import { randomUUID } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from './database.ts';
import {
  type AccountRow,
  type Accounts,
  accountsFrom,
  conflict,
  earlierEntry,
  lockAccounts,
  post,
  type Wallet,
  walletFrom,
} from './ledger-entries.ts';
import { logUsage, type Usage } from './ledger-usage.ts';

export { type Charge, charge, chargeOf, insufficientCredits, refund } from './ledger-charges.ts';
export type { PaymentType, Wallet } from './ledger-entries.ts';
export { reverseTopUp, topUp } from './ledger-payments.ts';

/**
 * The wallet, in double entry. Every operation is one row of `entries` under a unique operation key and postings that
 * sum to zero:
 *
 *   topUp     funding -> wallet      money arrives
 *   reverse   wallet  -> funding     a payment is refunded or disputed; the only one that may leave less than nothing
 *   hold      wallet  -> held        set aside for something that is starting
 *   growHold  wallet  -> held        it goes on
 *   settle    held (and wallet) -> revenue, the rest of the hold -> wallet
 *   void      held    -> wallet      nothing was owed
 *   charge    wallet  -> revenue     something whose price is known at once
 *   refund    revenue -> wallet      once for each settle or charge
 *
 * All are idempotent: the same key again returns the first result and changes nothing; the same key with other
 * arguments is an error. Amounts are nano-USD. Each operation locks the workspace's wallet row first, so operations of
 * one workspace queue up behind one another and those of different workspaces never meet.
 */

/** @throws TandemError `WORKSPACE_NOT_FOUND` */
export async function walletOf(sql: SqlOrTx, workspaceId: string): Promise<Wallet> {
  const rows = await sql<AccountRow[]>`
    select id, kind, balance_nano from accounts where workspace_id = ${workspaceId}`;
  return walletFrom(accountsFrom(rows, workspaceId));
}

export interface HoldInput {
  workspaceId: string;
  /** What one would like to set aside; less is taken when less is there. */
  amountNano: bigint;
  /** Below this it is refused. */
  minimumNano: bigint;
  operationKey: string;
  callId?: string | null;
  at?: Date;
}

export interface HoldResult {
  holdId: string;
  amountNano: bigint;
}

/**
 * Sets aside min(available, wanted).
 * @throws TandemError `RECHARGE_REQUIRED` when nothing is available, or less than the minimum.
 */
export async function hold(sql: SqlOrTx, input: HoldInput): Promise<HoldResult> {
  return await inTransaction(sql, async (tx) => {
    const [accounts, earlier] = await Promise.all([
      lockAccounts(tx, input.workspaceId),
      earlierEntry(tx, input, 'hold', input.amountNano),
    ]);
    if (earlier) return { holdId: earlier.holdId!, amountNano: earlier.resultNano };
    const { stored, ...result } = newHold(tx, accounts, input);
    await stored;
    return result;
  });
}

/**
 * As `hold`, for an operation that has locked the accounts and has a key that was never used. Writes without waiting:
 * await `stored` with the other writes of the transaction.
 */
export function newHold(tx: Tx, accounts: Accounts, input: HoldInput): HoldResult & { stored: Promise<unknown> } {
  if (input.amountNano < 0n) throw new RangeError('a hold is not negative');
  const { availableNano } = walletFrom(accounts);
  if (availableNano <= 0n || availableNano < input.minimumNano) {
    throw new TandemError('RECHARGE_REQUIRED', 'Insufficient wallet balance. Top up the wallet.');
  }
  const amountNano = smaller(availableNano, input.amountNano);
  const at = input.at ?? new Date();
  const row = {
    id: randomUUID(),
    workspaceId: input.workspaceId,
    operationKey: input.operationKey,
    callId: input.callId ?? null,
    amountNano,
    createdAt: at,
  };
  const stored = Promise.all([
    tx`insert into holds ${tx(row)}`.execute(),
    post(tx, accounts, {
      ...input,
      at,
      kind: 'hold',
      holdId: row.id,
      requestedNano: input.amountNano,
      resultNano: amountNano,
      postings: { wallet: -amountNano, held: amountNano },
    }),
  ]);
  return { holdId: row.id, amountNano, stored };
}

export interface GrowHoldInput {
  holdId: string;
  /** What the hold should come to in all. */
  wantedTotalNano: bigint;
  operationKey: string;
  at?: Date;
}

/** Grows as far as funds permit and returns what is held now: below the wanted total when they ran out. */
export async function growHold(sql: SqlOrTx, input: GrowHoldInput): Promise<{ amountNano: bigint }> {
  return await inTransaction(sql, async (tx) => {
    const { accounts, held } = await lockHold(tx, input.holdId);
    const operation = { ...input, workspaceId: held.workspaceId, callId: held.callId };
    const earlier = await earlierEntry(tx, operation, 'hold_grow', input.wantedTotalNano);
    if (earlier) return { amountNano: earlier.resultNano };
    if (held.status !== 'open') return { amountNano: 0n };
    const missing = larger(0n, input.wantedTotalNano - held.amountNano);
    const growth = smaller(missing, spendable(accounts));
    const amountNano = held.amountNano + growth;
    await tx`update holds set amount_nano = ${amountNano} where id = ${held.id}`;
    await post(tx, accounts, {
      ...operation,
      kind: 'hold_grow',
      requestedNano: input.wantedTotalNano,
      resultNano: amountNano,
      postings: { wallet: -growth, held: growth },
    });
    return { amountNano };
  });
}

/** What a hold sets aside now; null when there is no such hold. */
export async function heldBy(sql: SqlOrTx, holdId: string): Promise<bigint | null> {
  const [row] = await sql<{ amountNano: bigint }[]>`select amount_nano from holds where id = ${holdId}`;
  return row?.amountNano ?? null;
}

export interface SettleHoldInput {
  holdId: string;
  /** What is owed. */
  amountNano: bigint;
  operationKey: string;
  /** What it is owed for. */
  usage?: Usage;
  description?: string;
  at?: Date;
}

/** Charges min(owed, held + available), gives the rest of the hold back and closes it. */
export async function settleHold(sql: SqlOrTx, input: SettleHoldInput): Promise<{ chargedNano: bigint }> {
  if (input.amountNano < 0n) throw new RangeError('a charge is not negative');
  return await inTransaction(sql, async (tx) => {
    const { chargedNano } = await closeHold(tx, { ...input, kind: 'settle' });
    return { chargedNano };
  });
}

export interface VoidHoldInput {
  holdId: string;
  operationKey: string;
  at?: Date;
}

/** Gives the whole hold back. */
export async function voidHold(sql: SqlOrTx, input: VoidHoldInput): Promise<void> {
  await inTransaction(sql, async (tx) => {
    await closeHold(tx, { ...input, amountNano: 0n, kind: 'void' });
  });
}

interface HoldRow {
  id: string;
  workspaceId: string;
  callId: string | null;
  amountNano: bigint;
  chargedNano: bigint | null;
  status: 'open' | 'settled' | 'voided';
}

async function closeHold(
  tx: Tx,
  input: SettleHoldInput & { kind: 'settle' | 'void' },
): Promise<{ chargedNano: bigint }> {
  const { accounts, held } = await lockHold(tx, input.holdId);
  const operation = { ...input, workspaceId: held.workspaceId, callId: held.callId };
  const earlier = await earlierEntry(tx, operation, input.kind, input.amountNano);
  if (earlier) return { chargedNano: earlier.resultNano };
  if (held.status !== 'open') throw conflict(input.operationKey, `the hold is already ${held.status}`);
  const chargedNano = smaller(input.amountNano, held.amountNano + spendable(accounts));
  const at = input.at ?? new Date();
  const status = input.kind === 'settle' ? 'settled' : 'voided';
  await tx`
    update holds set status = ${status}, charged_nano = ${chargedNano}, closed_at = ${at} where id = ${held.id}`;
  const posted = await post(tx, accounts, {
    ...operation,
    at,
    requestedNano: input.amountNano,
    resultNano: chargedNano,
    // What the hold does not cover comes out of the wallet, what it did not need goes back.
    postings: { held: -held.amountNano, wallet: held.amountNano - chargedNano, revenue: chargedNano },
  });
  if (input.usage) await logUsage(tx, posted, input.usage);
  return { chargedNano };
}

async function lockHold(tx: Tx, holdId: string): Promise<{ accounts: Accounts; held: HoldRow }> {
  const [owner] = await tx<{ workspaceId: string }[]>`select workspace_id from holds where id = ${holdId}`;
  if (!owner) throw new TandemError('INTERNAL', `Hold ${holdId} not found.`);
  const accounts = await lockAccounts(tx, owner.workspaceId);
  // Read after the lock: the hold may have changed while we waited for it.
  const [held] = await tx<HoldRow[]>`select * from holds where id = ${holdId}`;
  return { accounts, held: held! };
}

/** Nothing, where a reversal took more than was left. */
function spendable(accounts: Accounts): bigint {
  return larger(0n, walletFrom(accounts).availableNano);
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
