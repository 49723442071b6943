import { randomUUID } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import type { Tx } from './database.ts';

/** Accounts and entries of `ledger.ts`: each workspace has four accounts, and an entry's postings sum to zero. */

export type PaymentType = 'one_time' | 'subscription' | 'admin_bonus';

export interface Wallet {
  /** available + held */
  balanceNano: bigint;
  /** Held by open holds. */
  heldNano: bigint;
  /** Available to spend or hold. Negative if a refund or dispute took more than was left. */
  availableNano: bigint;
}

type AccountKind = 'wallet' | 'held' | 'revenue' | 'funding';
type EntryKind = 'top_up' | 'reversal' | 'hold' | 'hold_grow' | 'settle' | 'void' | 'charge' | 'refund';

export interface AccountRow {
  id: bigint;
  kind: AccountKind;
  balanceNano: bigint;
}

export type Accounts = Record<AccountKind, AccountRow>;

export interface PostedEntry {
  id: string;
  /** Grows with every entry; within a workspace, in the order of effect. */
  position: bigint;
  workspaceId: string;
  resultNano: bigint;
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
}

export interface EntryRow extends PostedEntry {
  kind: EntryKind;
  holdId: string | null;
  callId: string | null;
  requestedNano: bigint;
}

interface Operation {
  workspaceId: string;
  operationKey: string;
  callId?: string | null;
  holdId?: string | null;
  at?: Date;
  description?: string;
}

/** Locks and reads a workspace's accounts. One round trip: the second statement waits for the lock. */
export async function lockAccounts(tx: Tx, workspaceId: string): Promise<Accounts> {
  const [, rows] = await Promise.all([
    tx`select id from accounts where workspace_id = ${workspaceId} and kind = 'wallet' for no key update`.execute(),
    tx<AccountRow[]>`select id, kind, balance_nano from accounts where workspace_id = ${workspaceId}`,
  ]);
  return accountsFrom(rows, workspaceId);
}

export async function earlierEntry(
  tx: Tx,
  operation: Operation,
  kind: EntryKind,
  requestedNano: bigint,
): Promise<EntryRow | null> {
  return sameEntry(await entryUnder(tx, operation.operationKey), operation, kind, requestedNano);
}

export async function entryUnder(tx: Tx, operationKey: string): Promise<EntryRow | null> {
  const [entry] = await tx<EntryRow[]>`select * from entries where operation_key = ${operationKey}`;
  return entry ?? null;
}

/** Returns the entry of a repeated operation. @throws TandemError `INTERNAL` if it belongs to another one */
export function sameEntry(
  entry: EntryRow | null,
  operation: Operation,
  kind: EntryKind,
  requestedNano: bigint,
): EntryRow | null {
  if (entry === null) return null;
  const same =
    entry.kind === kind &&
    entry.workspaceId === operation.workspaceId &&
    entry.requestedNano === requestedNano &&
    (operation.holdId === undefined || entry.holdId === operation.holdId);
  if (!same) throw conflict(operation.operationKey, 'it was used before with other arguments');
  return entry;
}

interface EntryInput extends Operation {
  kind: EntryKind;
  reversesId?: string;
  paymentType?: PaymentType;
  requestedNano: bigint;
  resultNano: bigint;
  postings: Partial<Record<AccountKind, bigint>>;
}

/** An entry that is not stored yet, and the accounts after it. */
export interface NewEntry {
  entry: Omit<EntryRow, 'position'> & { operationKey: string };
  postings: { entryId: string; accountId: bigint; amountNano: bigint }[];
  accounts: Accounts;
}

export function newEntry(accounts: Accounts, input: EntryInput): NewEntry {
  const { balanceNano } = walletFrom(accounts);
  const entry = {
    id: randomUUID(),
    operationKey: input.operationKey,
    kind: input.kind,
    workspaceId: input.workspaceId,
    holdId: input.holdId ?? null,
    callId: input.callId ?? null,
    reversesId: input.reversesId ?? null,
    requestedNano: input.requestedNano,
    resultNano: input.resultNano,
    balanceBeforeNano: balanceNano,
    balanceAfterNano: balanceNano + (input.postings.wallet ?? 0n) + (input.postings.held ?? 0n),
    paymentType: input.paymentType ?? null,
    description: input.description ?? '',
    createdAt: input.at ?? new Date(),
  };
  const amounts = (Object.entries(input.postings) as [AccountKind, bigint][]).filter(([, amount]) => amount !== 0n);
  const postings = amounts.map(([kind, amountNano]) => ({
    entryId: entry.id,
    accountId: accounts[kind].id,
    amountNano,
  }));
  const after = { ...accounts };
  for (const [kind, amountNano] of amounts) {
    after[kind] = { ...after[kind], balanceNano: after[kind].balanceNano + amountNano };
  }
  return { entry, postings, accounts: after };
}

/** Stores entries of one workspace in order, each made with the accounts after the one before. */
export async function storeEntries(tx: Tx, entries: readonly NewEntry[]): Promise<PostedEntry[]> {
  const rows = entries.map(({ entry }) => entry);
  const postings = entries.flatMap((each) => each.postings);
  const [stored] = await Promise.all([
    tx<{ id: string; position: bigint }[]>`insert into entries ${tx(rows)} returning id, position`.execute(),
    postings.length > 0 ? tx`insert into postings ${tx(postings)}` : null,
  ]);
  const positions = new Map(stored.map(({ id, position }) => [id, position]));
  return rows.map((row) => ({ ...row, position: positions.get(row.id)! }));
}

export async function post(tx: Tx, accounts: Accounts, input: EntryInput): Promise<PostedEntry> {
  const [posted] = await storeEntries(tx, [newEntry(accounts, input)]);
  return posted!;
}

export function accountsFrom(rows: AccountRow[], workspaceId: string): Accounts {
  if (rows.length === 0) throw new TandemError('WORKSPACE_NOT_FOUND', `Workspace ${workspaceId} not found.`);
  return Object.fromEntries(rows.map((row) => [row.kind, row])) as Accounts;
}

export function walletFrom({ wallet, held }: Accounts): Wallet {
  return {
    balanceNano: wallet.balanceNano + held.balanceNano,
    heldNano: held.balanceNano,
    availableNano: wallet.balanceNano,
  };
}

export function conflict(operationKey: string, reason: string): TandemError {
  return new TandemError('INTERNAL', `Ledger operation ${operationKey}: ${reason}.`);
}
