import { randomUUID } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from './database.ts';
import {
  type AccountRow,
  type Accounts,
  accountsFrom,
  conflict,
  earlierEntry,
  entryUnder,
  lockAccounts,
  type NewEntry,
  newEntry,
  post,
  sameEntry,
  storeEntries,
  type Wallet,
  walletFrom,
} from './ledger-entries.ts';
import { logUsage, type Usage } from './ledger-usage.ts';

export {
  type Charge,
  charge,
  chargeOf,
  insufficientCredits,
  type NewCharge,
  newCharge,
  refund,
  requireCredits,
  storeCharges,
} from './ledger-charges.ts';
export type { PaymentType, Wallet } from './ledger-entries.ts';
export { reverseTopUp, topUp } from './ledger-payments.ts';

/**
 * The wallet, in double entry. Each operation adds one row to `entries` under a unique operation key, with postings
 * that sum to zero:
 *
 *   topUp     funding -> wallet      money arrives
 *   reverse   wallet  -> funding     refund or dispute of a payment; only this may make the wallet negative
 *   hold      wallet  -> held        reserves money for something that starts
 *   growHold  wallet  -> held        reserves more
 *   settle    held (and wallet) -> revenue, the rest of the hold -> wallet
 *   void      held    -> wallet      nothing is owed
 *   charge    wallet  -> revenue     the price is known at once
 *   refund    revenue -> wallet      once per settle or charge
 *
 * All are idempotent: the same key returns the first result and changes nothing; the same key with other arguments is
 * an error. Amounts are nano-USD. Each operation locks the workspace's wallet row first, so operations of one workspace
 * queue and those of different workspaces never conflict.
 */

/** @throws TandemError `WORKSPACE_NOT_FOUND` */
export async function walletOf(sql: SqlOrTx, workspaceId: string): Promise<Wallet> {
  const rows = await sql<AccountRow[]>`
    select id, kind, balance_nano from accounts where workspace_id = ${workspaceId}`;
  return walletFrom(accountsFrom(rows, workspaceId));
}

export interface HoldInput {
  workspaceId: string;
  /** Wanted amount; less is held if less is available. */
  amountNano: bigint;
  /** Reject below this. */
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
 * Holds min(available, wanted).
 * @throws TandemError `RECHARGE_REQUIRED` if nothing is available, or less than the minimum
 */
export async function hold(sql: SqlOrTx, input: HoldInput): Promise<HoldResult> {
  return await inTransaction(sql, async (tx) => {
    const [accounts, earlier] = await Promise.all([
      lockAccounts(tx, input.workspaceId),
      earlierEntry(tx, input, 'hold', input.amountNano),
    ]);
    if (earlier) return { holdId: earlier.holdId!, amountNano: earlier.resultNano };
    const made = newHold(accounts, input);
    await storeHolds(tx, [made]);
    return { holdId: made.row.id, amountNano: made.row.amountNano };
  });
}

/** A hold that is not stored yet. */
export interface NewHold {
  row: Omit<HoldRow, 'status' | 'chargedNano'> & { operationKey: string; createdAt: Date };
  entry: NewEntry;
}

/** As `hold`, for a new key when the accounts are already locked. Only `storeHolds` writes. */
export function newHold(accounts: Accounts, input: HoldInput): NewHold {
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
  const entry = newEntry(accounts, {
    ...input,
    at,
    kind: 'hold',
    holdId: row.id,
    requestedNano: input.amountNano,
    resultNano: amountNano,
    postings: { wallet: -amountNano, held: amountNano },
  });
  return { row, entry };
}

/** Stores holds of one workspace in order, each made with the accounts after the one before. */
export async function storeHolds(tx: Tx, holds: readonly NewHold[]): Promise<void> {
  await Promise.all([
    tx`insert into holds ${tx(holds.map(({ row }) => row))}`.execute(),
    storeEntries(
      tx,
      holds.map(({ entry }) => entry),
    ),
  ]);
}

export interface GrowHoldInput {
  holdId: string;
  wantedTotalNano: bigint;
  operationKey: string;
  at?: Date;
}

/** Extends the hold as far as funds allow and returns its new amount, which may be below the wanted total. */
export async function growHold(sql: SqlOrTx, input: GrowHoldInput): Promise<{ amountNano: bigint }> {
  return await inTransaction(sql, async (tx) => {
    const [{ accounts, held }, entry] = await lockedHold(tx, input);
    const operation = { ...input, workspaceId: held.workspaceId, callId: held.callId };
    const earlier = sameEntry(entry, operation, 'hold_grow', input.wantedTotalNano);
    if (earlier) return { amountNano: earlier.resultNano };
    if (held.status !== 'open') return { amountNano: 0n };
    const missing = larger(0n, input.wantedTotalNano - held.amountNano);
    const growth = affordable(accounts, missing);
    const amountNano = held.amountNano + growth;
    await Promise.all([
      tx`update holds set amount_nano = ${amountNano} where id = ${held.id}`.execute(),
      post(tx, accounts, {
        ...operation,
        kind: 'hold_grow',
        requestedNano: input.wantedTotalNano,
        resultNano: amountNano,
        postings: { wallet: -growth, held: growth },
      }),
    ]);
    return { amountNano };
  });
}

/** Current amount of a hold; null if it does not exist. */
export async function heldBy(sql: SqlOrTx, holdId: string): Promise<bigint | null> {
  const [row] = await sql<{ amountNano: bigint }[]>`select amount_nano from holds where id = ${holdId}`;
  return row?.amountNano ?? null;
}

export interface SettleHoldInput {
  holdId: string;
  amountNano: bigint;
  operationKey: string;
  usage?: Usage;
  description?: string;
  at?: Date;
}

/** Charges min(owed, held + available), releases the rest and closes the hold. */
export async function settleHold(sql: SqlOrTx, input: SettleHoldInput): Promise<{ chargedNano: bigint }> {
  if (input.amountNano < 0n) throw new RangeError('a charge is not negative');
  return await inTransaction(sql, async (tx) => ({ chargedNano: await close(tx, { ...input, kind: 'settle' }) }));
}

export interface VoidHoldInput {
  holdId: string;
  operationKey: string;
  at?: Date;
}

export async function voidHold(sql: SqlOrTx, input: VoidHoldInput): Promise<void> {
  await inTransaction(sql, async (tx) => await close(tx, { ...input, amountNano: 0n, kind: 'void' }));
}

type ClosingInput = SettleHoldInput & { kind: 'settle' | 'void' };

async function close(tx: Tx, input: ClosingInput): Promise<bigint> {
  const [{ accounts, held }, entry] = await lockedHold(tx, input);
  const operation = { ...input, workspaceId: held.workspaceId, callId: held.callId };
  const earlier = sameEntry(entry, operation, input.kind, input.amountNano);
  if (earlier) return earlier.resultNano;
  const closing = newClosing({ accounts, held }, input);
  await storeClosing(tx, closing);
  return closing.chargedNano;
}

interface HoldRow {
  id: string;
  workspaceId: string;
  callId: string | null;
  amountNano: bigint;
  chargedNano: bigint | null;
  status: 'open' | 'settled' | 'voided';
}

export interface LockedHold {
  accounts: Accounts;
  held: HoldRow;
}

/** The end of a hold that is not stored yet. */
export interface NewClosing {
  holdId: string;
  status: 'settled' | 'voided';
  chargedNano: bigint;
  at: Date;
  entry: NewEntry;
  usage: Usage | null;
}

/**
 * As `settleHold` and `voidHold`, for a new key when the hold is already locked. Only `storeClosing` writes.
 * @throws TandemError `INTERNAL` if the hold is already closed
 */
export function newClosing({ accounts, held }: LockedHold, input: ClosingInput): NewClosing {
  if (held.status !== 'open') throw conflict(input.operationKey, `the hold is already ${held.status}`);
  const chargedNano = smaller(input.amountNano, held.amountNano + spendable(accounts));
  const at = input.at ?? new Date();
  const entry = newEntry(accounts, {
    ...input,
    workspaceId: held.workspaceId,
    callId: held.callId,
    at,
    requestedNano: input.amountNano,
    resultNano: chargedNano,
    // The wallet pays what exceeds the hold, or gets the rest of it.
    postings: { held: -held.amountNano, wallet: held.amountNano - chargedNano, revenue: chargedNano },
  });
  const status = input.kind === 'settle' ? 'settled' : 'voided';
  return { holdId: held.id, status, chargedNano, at, entry, usage: input.usage ?? null };
}

/** One round trip. */
export async function storeClosing(
  tx: Tx,
  { holdId, status, chargedNano, at, entry, usage }: NewClosing,
): Promise<void> {
  await Promise.all([
    tx`
      update holds set status = ${status}, charged_nano = ${chargedNano}, closed_at = ${at}
      where id = ${holdId}`.execute(),
    storeEntries(tx, [entry]),
    usage && logUsage(tx, entry.entry.id, usage),
  ]);
}

/**
 * Locks the wallet of a hold, then reads its accounts and the hold, which may have changed during the wait. One round
 * trip.
 */
export async function lockHold(tx: Tx, holdId: string): Promise<LockedHold> {
  const [, rows, [held]] = await Promise.all([
    tx`
      select id from accounts
      where workspace_id = (select workspace_id from holds where id = ${holdId}) and kind = 'wallet'
      for no key update`.execute(),
    tx<AccountRow[]>`
      select id, kind, balance_nano from accounts
      where workspace_id = (select workspace_id from holds where id = ${holdId})`.execute(),
    tx<HoldRow[]>`select * from holds where id = ${holdId}`.execute(),
  ]);
  if (!held) throw new TandemError('INTERNAL', `Hold ${holdId} not found.`);
  return { accounts: accountsFrom(rows, held.workspaceId), held };
}

/** Locks a hold and reads the entry under the operation key. One round trip. */
async function lockedHold(tx: Tx, { holdId, operationKey }: Pick<ClosingInput, 'holdId' | 'operationKey'>) {
  return await Promise.all([lockHold(tx, holdId), entryUnder(tx, operationKey)]);
}

/** The part of an amount that the wallet covers. */
export function affordable(accounts: Accounts, amountNano: bigint): bigint {
  return smaller(amountNano, spendable(accounts));
}

/** Zero if a reversal made the wallet negative. */
function spendable(accounts: Accounts): bigint {
  return larger(0n, walletFrom(accounts).availableNano);
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
