import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { charge } from '../ledger.ts';
import { costAt, priceBookOf } from '../price-book.ts';
import { requireCallPermission } from './call-permission.ts';
import type { CallingLimits } from './calling-rules.ts';
import { isUuid } from './identifiers.ts';
import { type CalledNumber, calledTrunk } from './inbound-rules.ts';
import { verifyNumber } from './number-claims.ts';
import type { TrunkLine } from './trunks.ts';
import { lockWorkspace, operatorWorkspaceId } from './workspaces.ts';

/**
 * Reason of a failed verification. `code_not_heard`: the call was answered, but no call over the claim's trunk brought
 * its code. `interrupted`: the calling server stopped.
 */
export type VerificationFailure = 'not_answered' | 'busy' | 'refused' | 'code_not_heard' | 'interrupted';

export interface NumberVerification {
  id: string;
  e164: string;
  trunkId: string;
  status: 'calling' | 'verified' | 'failed';
  /** Null unless it failed. */
  failure: VerificationFailure | null;
  createdAt: Date;
  endedAt: Date | null;
}

export interface VerificationCall {
  verification: NumberVerification;
  code: string;
  /** Trunk of the operator. */
  trunkId: string;
  callerId: string;
}

export interface StartVerificationInput {
  id: string;
  workspaceId: string;
  apiKeyId: number | null;
  userId: number | null;
  e164: string;
  trunkId: string;
  code: string;
  limits: CallingLimits;
  isLineDown: (trunk: TrunkLine) => boolean;
  now: Date;
}

/** Longer than a verification takes. */
export const VERIFICATION_MS = 90_000;
const DAY_MS = 86_400_000;
/** Limits per day, because the number may belong to a stranger whose phone rings. */
const MOST_OF_NUMBER = 3;
const MOST_OF_WORKSPACE = 20;
const CHARGED_SECONDS = 60;

/** `call` is null if a call to the number for this trunk is in progress. */
export interface StartedVerification {
  verification: NumberVerification;
  call: VerificationCall | null;
}

/**
 * Charges one minute of a call to the number and stores the verification.
 * @throws TandemError `TRUNK_NOT_FOUND`, `FORBIDDEN`, `NUMBER_NOT_FOUND` if the trunk does not list the number,
 * `NUMBER_NOT_AVAILABLE` if it is verified or being verified for another trunk, `RATE_LIMITED`,
 * `DIALER_NOT_PROVISIONED` if the operator has no trunk to call over, `CARRIER_LINE_DOWN`, `destination_not_allowed`,
 * those of `requireCallPermission`, `INSUFFICIENT_CREDITS`
 */
export async function startVerification(sql: SqlOrTx, input: StartVerificationInput): Promise<StartedVerification> {
  return await inTransaction(sql, async (tx) => {
    const { id, e164, trunkId, workspaceId, code, now } = input;
    // One at a time per number, across workspaces.
    await tx`select pg_advisory_xact_lock(hashtextextended(${`number-verification:${e164}`}, 0))`;
    await requireClaim(tx, input);
    await endInterrupted(tx, { e164, now });
    const [live] = await tx<NumberVerification[]>`
      select * from number_verifications where e164 = ${e164} and status = 'calling'`;
    if (live?.trunkId === trunkId) return { verification: live, call: null };
    if (live !== undefined) {
      throw new TandemError('NUMBER_NOT_AVAILABLE', 'The number is being verified for another trunk. Try again later.');
    }
    await requireRoom(tx, input);
    const line = await operatorLine(tx, input);
    await requireCallPermission(tx, { workspaceId, staff: { e164 }, public: {}, limits: input.limits, now });
    const row = { id, e164, trunkId, workspaceId, code, status: 'calling', createdAt: now };
    const [verification] = await tx<[NumberVerification]>`insert into number_verifications ${tx(row)} returning *`;
    await chargeCall(tx, input, line.pricePerMinuteNano);
    return { verification, call: { verification, code, trunkId: line.id, callerId: line.callerId } };
  });
}

async function requireClaim(tx: Tx, { e164, trunkId, workspaceId }: StartVerificationInput): Promise<void> {
  const [trunk] = await tx<{ ownerWorkspaceId: string | null }[]>`
    select t.owner_workspace_id from trunks t join trunk_workspaces tw on tw.trunk_id = t.id
    where t.id = ${isUuid(trunkId) ? trunkId : null} and tw.workspace_id = ${workspaceId} and t.status = 'active'
      and t.deleted_at is null`;
  if (trunk === undefined) throw new TandemError('TRUNK_NOT_FOUND', 'There is no such active outbound trunk.');
  if (trunk.ownerWorkspaceId !== workspaceId) {
    throw new TandemError('FORBIDDEN', 'Only the workspace that owns the trunk can verify its numbers.');
  }
  const numbers = await tx<{ trunkId: string; verifiedAt: Date | null }[]>`
    select trunk_id, verified_at from numbers where e164 = ${e164}`;
  const claim = numbers.find((each) => each.trunkId === trunkId);
  if (claim === undefined) throw new TandemError('NUMBER_NOT_FOUND', 'The trunk does not list this number.');
  if (claim.verifiedAt !== null) {
    throw new TandemError('NUMBER_NOT_AVAILABLE', 'The number is verified already. Rent it with POST /dialer/numbers.');
  }
  if (numbers.some(({ verifiedAt }) => verifiedAt !== null)) {
    throw new TandemError('NUMBER_NOT_AVAILABLE', 'The number is verified for another trunk.');
  }
}

async function requireRoom(tx: Tx, { e164, workspaceId, now }: StartVerificationInput): Promise<void> {
  await lockWorkspace(tx, workspaceId);
  const since = new Date(now.getTime() - DAY_MS);
  const [counts] = await tx<{ ofNumber: number; ofWorkspace: number; oldestOfNumber: Date; oldestOfWorkspace: Date }[]>`
    select count(*) filter (where e164 = ${e164})::int as of_number,
      count(*) filter (where workspace_id = ${workspaceId})::int as of_workspace,
      min(created_at) filter (where e164 = ${e164}) as oldest_of_number,
      min(created_at) filter (where workspace_id = ${workspaceId}) as oldest_of_workspace
    from number_verifications
    where created_at > ${since} and (e164 = ${e164} or workspace_id = ${workspaceId})`;
  const { ofNumber, ofWorkspace, oldestOfNumber, oldestOfWorkspace } = counts!;
  if (ofNumber >= MOST_OF_NUMBER)
    throw limitReached(`${MOST_OF_NUMBER} verifications of a number`, { oldest: oldestOfNumber, now });
  if (ofWorkspace >= MOST_OF_WORKSPACE) {
    throw limitReached(`${MOST_OF_WORKSPACE} verifications of a workspace`, { oldest: oldestOfWorkspace, now });
  }
}

/** Once the oldest verification is a day old, there is room for another one. */
function limitReached(limit: string, { oldest, now }: { oldest: Date; now: Date }): TandemError {
  const retryAfterS = Math.max(1, Math.ceil((oldest.getTime() + DAY_MS - now.getTime()) / 1000));
  return new TandemError('RATE_LIMITED', `The limit of ${limit} in 24 hours is reached.`, { retryAfterS });
}

interface OperatorLine {
  id: string;
  callerId: string;
  pricePerMinuteNano: bigint;
}

/** Oldest trunk of the operator with a number that may call this one. */
async function operatorLine(tx: Tx, { e164, isLineDown }: StartVerificationInput): Promise<OperatorLine> {
  const lines = await tx<(OperatorLine & TrunkLine & { allowedPrefixes: string[] })[]>`
    select t.id, t.sip_uri, t.transport, t.gateways, t.health_mode, t.allowed_prefixes, t.price_per_minute_nano,
      coalesce(t.default_caller_id, min(n.e164)) as caller_id
    from trunks t join numbers n on n.trunk_id = t.id and n.verified_at is not null
    where t.owner_workspace_id = ${await operatorWorkspaceId(tx)} and t.status = 'active' and t.deleted_at is null
    group by t.id order by t.created_at, t.id`;
  if (lines.length === 0) {
    throw new TandemError(
      'DIALER_NOT_PROVISIONED',
      'The operator has no trunk to call the number over. Ask the operator to verify it: tandem numbers verify NUMBER.',
    );
  }
  const reaching = lines.filter(
    ({ allowedPrefixes }) => allowedPrefixes.length === 0 || allowedPrefixes.some((prefix) => e164.startsWith(prefix)),
  );
  if (reaching.length === 0) {
    throw new TandemError(
      'destination_not_allowed',
      'No trunk of the operator may call this number. Ask the operator to verify it: tandem numbers verify NUMBER.',
    );
  }
  const line = reaching.find((each) => !isLineDown(each));
  if (line !== undefined) return line;
  throw new TandemError('CARRIER_LINE_DOWN', 'The carrier of the operator does not respond. Try again later.', {
    retryAfterS: 10,
  });
}

async function chargeCall(tx: Tx, input: StartVerificationInput, trunkPriceNano: bigint): Promise<void> {
  const { id, workspaceId, apiKeyId, userId, now } = input;
  const unitPriceNano = trunkPriceNano > 0n ? trunkPriceNano : (await priceBookOf(tx, workspaceId)).call;
  if (unitPriceNano === 0n) return;
  await charge(tx, {
    ...costAt({ service: 'call', count: CHARGED_SECONDS, unitPriceNano }),
    workspaceId,
    operation: 'verify_number',
    resourceId: id,
    apiKeyId,
    userId,
    operationKey: `number-verification:${id}`,
    description: 'Call that verifies a number',
    at: now,
  });
}

export async function getVerification(
  sql: SqlOrTx,
  { id, workspaceId, now }: { id: string; workspaceId: string; now: Date },
): Promise<NumberVerification | null> {
  if (!isUuid(id)) return null;
  const read = async () => {
    const [row] = await sql<NumberVerification[]>`
      select * from number_verifications where id = ${id} and workspace_id = ${workspaceId}`;
    return row ?? null;
  };
  const row = await read();
  if (row === null || row.status !== 'calling' || row.createdAt.getTime() + VERIFICATION_MS > now.getTime()) return row;
  await endInterrupted(sql, { e164: row.e164, now });
  return await read();
}

export async function findCallingVerification(
  sql: SqlOrTx,
  { e164, now }: { e164: string; now: Date },
): Promise<ClaimedNumber | null> {
  const since = new Date(now.getTime() - VERIFICATION_MS);
  const [row] = await sql<(Omit<ClaimedNumber, 'trunk' | 'e164'> & ClaimedNumber['trunk'])[]>`
    select v.id as verification_id, v.workspace_id, v.trunk_id, ${calledTrunk(sql)}
    from number_verifications v join trunks t on t.id = v.trunk_id and t.status = 'active' and t.deleted_at is null
    where v.e164 = ${e164} and v.status = 'calling' and v.created_at > ${since}`;
  if (row === undefined) return null;
  const { verificationId, workspaceId, trunkId, ...trunk } = row;
  return { verificationId, e164, workspaceId, trunkId, trunk };
}

/** A number under verification. */
export interface ClaimedNumber extends Omit<CalledNumber, 'inbound'> {
  verificationId: string;
}

/** Calls answered per verification, because the owner of a trunk can send calls that guess the code. */
const MAX_ANSWERED_CALLS = 3;

/** Returns the expected code for one more inbound call; null if it must not be answered. */
export async function listenFor(sql: SqlOrTx, verificationId: string): Promise<string | null> {
  const [row] = await sql<{ code: string }[]>`
    update number_verifications set calls_heard = calls_heard + 1
    where id = ${verificationId} and status = 'calling' and calls_heard < ${MAX_ANSWERED_CALLS} returning code`;
  return row?.code ?? null;
}

/**
 * Verifies the number after its code was received on the trunk. No effect once the verification has ended.
 * @throws TandemError as `verifyNumber` does
 */
export async function concludeVerified(sql: SqlOrTx, { id, now }: { id: string; now: Date }): Promise<boolean> {
  return await inTransaction(sql, async (tx) => {
    const [row] = await tx<{ e164: string; trunkId: string }[]>`
      update number_verifications set status = 'verified', code = null, ended_at = ${now}
      where id = ${id} and status = 'calling' returning e164, trunk_id`;
    if (row === undefined) return false;
    await verifyNumber(tx, { ...row, by: 'inbound_call', now });
    return true;
  });
}

/** No effect once the verification has ended. */
export async function concludeFailed(
  sql: SqlOrTx,
  { id, failure, now }: { id: string; failure: VerificationFailure; now: Date },
): Promise<void> {
  await sql`
    update number_verifications set status = 'failed', failure = ${failure}, code = null, ended_at = ${now}
    where id = ${id} and status = 'calling'`;
}

async function endInterrupted(sql: SqlOrTx, { e164, now }: { e164: string; now: Date }): Promise<void> {
  await sql`
    update number_verifications set status = 'failed', failure = 'interrupted', code = null, ended_at = ${now}
    where e164 = ${e164} and status = 'calling' and created_at <= ${new Date(now.getTime() - VERIFICATION_MS)}`;
}
