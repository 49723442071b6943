import type { Fragment } from 'postgres';
import { TandemError } from '../../machines/errors.ts';
import { canonicalJson } from '../../runtime/canonical-json.ts';
import { inTransaction, isStorageOutage, type SqlOrTx, type Tx } from '../database.ts';
import { type HoldInput, type NewHold, newHold, storeHolds } from '../ledger.ts';
import { lockAccounts } from '../ledger-entries.ts';
import { priceBookOf } from '../price-book.ts';
import {
  type CallPermission,
  type NotStoredCall,
  readPermission,
  requireCallPermission,
  requirePermissionBy,
} from './call-permission.ts';
import { type CallRow, callIsLive, isFinalState, storeEvents } from './call-row.ts';
import { priceOf, speechPriceOf } from './call-settlement.ts';
import { type CallingLimits, NO_CALLING_LIMITS } from './calling-rules.ts';
import { isUuid } from './identifiers.ts';
import type { InboundDecider } from './inbound-rules.ts';
import { exactJson } from './json-columns.ts';
import { holdsLease } from './nodes.ts';
import type { DialedTrunk, TrunkLine } from './trunks.ts';
import type { Plan } from './workspaces.ts';

/** Calls that a workspace may place in any 60 seconds, by plan. */
export type PlacementLimits = Readonly<Record<Plan, number>>;
/** Platform specification, Limits. */
const DEFAULT_PLACEMENTS: PlacementLimits = { free: 20, starter: 20, pro: 20, enterprise: 20 };
const PLACEMENT_WINDOW_MS = 60_000;
/** A guess at when a channel becomes free. */
const CHANNEL_RETRY_AFTER_S = 5;
/** A guess: carriers are probed every 30 s. */
const LINE_RETRY_AFTER_S = 10;
const BYTEA_OID = 17;
/** Talk time held in advance, in addition to the ringing. */
const HELD_TALK_SECONDS = 60;

export interface AdmitCallInput {
  callId: string;
  workspaceId: string;
  /** `inbound`: `customerNumber` called `did`. */
  placedVia: CallRow['placedVia'];
  apiKeyId: number | null;
  apiKeyName: string | null;
  createdByUserId: number | null;
  /** Null: the workspace's oldest active trunk. */
  trunkId: string | null;
  /** +E.164. Null: the caller ID saved for workspace and trunk, or the first number. */
  did: string | null;
  /** +E.164; null if the agent is a browser. */
  agentNumber: string | null;
  /** User whose browser is the agent. Default: null, a phone. */
  agentUserId?: number | null;
  /** +E.164. Null if an inbound caller withheld it. */
  customerNumber: string | null;
  /** The client's, or a generated `qc2c-<uuid>`. */
  referenceId: string;
  callbackUrl: string | null;
  callbackSecretEncrypted: Buffer | null;
  callbackSecretLast4: string | null;
  agentRingTimeoutS: number;
  customerRingTimeoutS: number;
  maxDurationS: number;
  record: boolean;
  /** Null: the workspace's setting. Default: null. */
  recordingBeep?: boolean | null;
  /** Default: false. */
  transcribe?: boolean;
  /** Default: null. */
  onMachine?: CallRow['onMachine'];
  /** Characters of announcement and whisper. Default: none. */
  announceCharacters?: number | null;
  whisperCharacters?: number | null;
  metadata: Record<string, unknown> | null;
  ownerNode: string;
  ownerBoot: string;
  now: Date;
  /** Source of the decision about an inbound call. Default: null. */
  decidedBy?: InboundDecider | null;
  /** Limits of the operator. Default: none. */
  callingLimits?: CallingLimits;
  /** Default: 20 for every plan. */
  placementsPerMinute?: PlacementLimits;
  /** Digest of the request. Default: null, which matches every other request. */
  requestHash?: Buffer | null;
  /** Whether a trunk's carrier is down. Default: never. */
  isLineDown?: (trunk: TrunkLine) => boolean;
  /** Default: the admission waits without limit. */
  turn?: AdmissionTurn;
}

/** Turn of a caller with limited patience. */
export interface AdmissionTurn {
  readonly refused: AbortSignal;
  /** Call it before storing anything. @throws if the caller was rejected; then nothing is stored */
  claim(): void;
}

export interface AdmitCallResult {
  /** `replayed`: the reference belongs to this live call, and nothing was placed. */
  outcome: 'admitted' | 'replayed';
  call: CallRow;
  /** Held amount; null if replayed. */
  heldNano: bigint | null;
  /** The trunk at that moment; null if replayed. */
  trunk: DialedTrunk | null;
}

/**
 * As `admitCalls`, for one call.
 * @throws TandemError `SHUTTING_DOWN`, `DIALER_NOT_PROVISIONED`, `REFERENCE_ALREADY_USED`, `REFERENCE_NOT_OWNED`,
 * `REFERENCE_CONFLICT`, `CARRIER_LINE_DOWN`, `C2C_RATE_LIMITED`, `CALLER_ID_NOT_OWNED`, `destination_not_allowed`,
 * those of `requireCallPermission`, `no_free_channel`, `RECHARGE_REQUIRED`; errors of `turn`
 */
export async function admitCall(sql: SqlOrTx, input: AdmitCallInput): Promise<AdmitCallResult> {
  const [outcome] = await admitCalls(sql, [input]);
  if (outcome?.status !== 'fulfilled') throw outcome?.reason;
  return outcome.value;
}

/** Whether a call may be admitted together with others. */
export function mayAdmitTogether(others: readonly AdmitCallInput[], { trunkId, referenceId }: AdmitCallInput): boolean {
  return others.every((other) => other.trunkId === trunkId && other.referenceId !== referenceId);
}

/**
 * Decides whether calls of one workspace may be placed, one after the other. Stores those that may as `pending`, each
 * with its first event and hold. One transaction at a time per workspace and per trunk, so no limit can be exceeded. A
 * rejection stores nothing and leaves the reference free. Returns an outcome for each call, in the same order.
 * @param inputs with the same trunk and different references, see `mayAdmitTogether`
 * @throws what the database throws, or an error that applies to all; then no call is stored
 */
export async function admitCalls(
  sql: SqlOrTx,
  inputs: readonly AdmitCallInput[],
): Promise<PromiseSettledResult<AdmitCallResult>[]> {
  try {
    return await inTransaction(sql, (tx) => admitTogether(tx, inputs));
  } catch (error) {
    if (error instanceof NothingStored) return error.outcomes;
    if (inputs.length === 1 || error instanceof TandemError || isStorageOutage(error)) throw error;
    // One of them may be what the database refuses.
    const outcomes: PromiseSettledResult<AdmitCallResult>[] = [];
    for (const input of inputs) outcomes.push(...(await Promise.allSettled([admitCall(sql, input)])));
    return outcomes;
  }
}

/** Rolls the transaction back, which is cheaper than a commit. */
class NothingStored extends Error {
  override readonly name = 'NothingStored';
  readonly outcomes: PromiseSettledResult<AdmitCallResult>[];

  constructor(outcomes: PromiseSettledResult<AdmitCallResult>[]) {
    super('no call was admitted');
    this.outcomes = outcomes;
  }
}

async function admitTogether(
  tx: Tx,
  inputs: readonly AdmitCallInput[],
): Promise<PromiseSettledResult<AdmitCallResult>[]> {
  // Waiting for the connection may have taken too long. Then do not wait for the locks too, because others would wait
  // behind.
  if (inputs.every(({ turn }) => turn?.refused.aborted)) inputs[0]?.turn?.refused.throwIfAborted();
  const found = await lockAndRead(tx, inputs);
  const admitted: AdmittedCall[] = [];
  const decisions: (AdmittedCall | PromiseSettledResult<AdmitCallResult>)[] = [];
  for (const input of inputs) {
    try {
      const decision = await decide(tx, input, { found, admitted });
      if ('row' in decision) admitted.push(decision);
      decisions.push('row' in decision ? decision : { status: 'fulfilled', value: decision });
    } catch (error) {
      if (!(error instanceof TandemError)) throw error;
      decisions.push({ status: 'rejected', reason: error });
    }
  }
  const calls = admitted.length === 0 ? new Map<string, CallRow>() : await storeCalls(tx, admitted);
  const outcomes = decisions.map((decision): PromiseSettledResult<AdmitCallResult> => {
    if ('status' in decision) return decision;
    const call = calls.get(decision.row.callId)!;
    const heldNano = decision.hold.row.amountNano;
    return { status: 'fulfilled', value: { outcome: 'admitted', call, heldNano, trunk: found.trunk ?? null } };
  });
  if (admitted.length === 0) throw new NothingStored(outcomes);
  return outcomes;
}

/** A call that will be stored at the end of the transaction. */
interface AdmittedCall {
  input: AdmitCallInput;
  row: ReturnType<typeof newRow>;
  hold: NewHold;
}

/** @throws TandemError as `admitCall` does */
async function decide(
  tx: Tx,
  input: AdmitCallInput,
  { found, admitted }: { found: Found; admitted: readonly AdmittedCall[] },
): Promise<AdmittedCall | AdmitCallResult> {
  requireLease(found);
  const trunk = requireTrunk(input, found);
  const replayed = callUnderReference(input, found);
  if (replayed) return { outcome: 'replayed', call: replayed, heldNano: null, trunk: null };
  // The carrier of an inbound call is evidently up.
  if (input.placedVia !== 'inbound') {
    requireLine(input, trunk);
    requirePlacementRate(input, { found, admitted });
  }
  const did = callerId(input, { trunk, numbers: found.numbers });
  requireAllowedDestinations(input, trunk);
  await requirePermissionBy(found.permission, tx, { ...permissionOf(input), notStored: admitted.map(dialedBy) });
  requireFreeChannel(trunk, found.channelsInUse + admitted.length);
  const accounts = admitted.at(-1)?.hold.entry.accounts ?? found.accounts;
  const hold = newHold(accounts, holdOf(input, { trunk, found }));
  input.turn?.claim();
  return { input, hold, row: newRow(tx, input, { trunk, did, hold, found }) };
}

function dialedBy({ input, hold }: AdmittedCall): NotStoredCall {
  const { staff, public: others } = permissionOf(input);
  return { at: input.now, numbers: Object.values({ ...staff, ...others }), heldNano: hold.row.amountNano };
}

type Found = Awaited<ReturnType<typeof lockAndRead>>;

/**
 * Locks workspace, trunk and wallet, always in this order, so that admissions cannot deadlock. Reads everything else in
 * the same round trip, because other placements of the workspace wait. Each statement starts when the earlier ones have
 * their locks. `execute` keeps their order, because a query is otherwise sent when it is awaited.
 */
async function lockAndRead(tx: Tx, inputs: readonly AdmitCallInput[]) {
  const [{ workspaceId, trunkId, ownerNode: node, ownerBoot: boot }] = inputs as [AdmitCallInput];
  const chosenId = trunkId !== null && !isUuid(trunkId) ? NO_TRUNK : trunkId;
  const trunks = tx`
    from trunks t join trunk_workspaces tw on tw.trunk_id = t.id and tw.workspace_id = ${workspaceId}
    where t.status = 'active' and t.deleted_at is null ${chosenId === null ? tx`` : tx`and t.id = ${chosenId}`}
    order by t.created_at, t.id limit 1`;
  const chosen = tx`(select t.id ${trunks})`;
  const references = inputs.map(({ referenceId }) => referenceId);
  const numbers = inputs.flatMap((input) => Object.values(permissionOf(input).public));
  const [mayOwn, [workspace], [trunk], accounts, calls, placements, owned, permission, channelsInUse, prices] =
    await Promise.all([
      holdsLease(tx, { node, boot }),
      tx<{ plan: Plan; recordingBeep: boolean }[]>`
        select plan, recording_beep from workspaces where id = ${workspaceId} for no key update`.execute(),
      tx<TrunkForCall[]>`
        select t.*, tw.default_caller_id as workspace_default_caller_id
        ${trunks} for no key update of t`.execute(),
      lockAccounts(tx, workspaceId),
      tx<CallRow[]>`
        select * from calls
        where trunk_id = ${chosen} and reference_id = any(${references}) and state <> 'rejected'`.execute(),
      lastPlacements(tx, inputs),
      tx<{ e164: string }[]>`
        select e164 from numbers
        where trunk_id = ${chosen} and workspace_id = ${workspaceId} and status = 'assigned'
        order by rented_at, e164`.execute(),
      readPermission(tx, { workspaceId, numbers }),
      channelsInUseOf(tx, chosen),
      priceBookOf(tx, workspaceId),
    ]);
  if (!workspace) throw new TandemError('WORKSPACE_NOT_FOUND', 'Workspace not found.');
  return {
    ...workspace,
    asked: inputs.length,
    ...{ mayOwn, trunk, accounts, calls, placements, numbers: owned, permission, channelsInUse, prices },
  };
}

/** Replaces an invalid id. */
const NO_TRUNK = '00000000-0000-0000-0000-000000000000';

interface TrunkForCall extends DialedTrunk {
  workspaceDefaultCallerId: string | null;
}

/** Rejects a boot without its lease, because no node would run its call. @throws TandemError `SHUTTING_DOWN` */
function requireLease({ mayOwn }: Found): void {
  if (mayOwn) return;
  throw new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.', {
    retryAfterS: LINE_RETRY_AFTER_S,
  });
}

/** @throws TandemError `DIALER_NOT_PROVISIONED` */
function requireTrunk({ trunkId }: AdmitCallInput, { trunk, prices }: Found): TrunkForCall {
  if (!trunk) {
    throw notProvisioned(
      trunkId === null
        ? 'The workspace has no active trunk. Create one with POST /dialer/trunks.'
        : 'There is no such active outbound trunk.',
    );
  }
  // A trunk without a price costs what the price book says.
  return trunk.pricePerMinuteNano > 0n ? trunk : { ...trunk, pricePerMinuteNano: prices.call };
}

function callUnderReference(input: AdmitCallInput, { calls }: Found): CallRow | null {
  const { workspaceId } = input;
  const call = calls.find(({ referenceId }) => referenceId === input.referenceId);
  if (!call) return null;
  if (call.workspaceId !== workspaceId) {
    throw new TandemError('REFERENCE_NOT_OWNED', 'Another workspace has used this reference_id. Use another one.');
  }
  if (isFinalState(call.state)) {
    throw new TandemError('REFERENCE_ALREADY_USED', 'This reference_id belongs to a finished call. Use another one.');
  }
  requireSameRequest(call, input);
  return call;
}

/** A repeated reference must come with the same request. */
function requireSameRequest(call: CallRow, input: AdmitCallInput): void {
  const [placed, asked] = [call.requestHash ?? null, input.requestHash ?? null];
  if (placed === null || asked === null || placed.equals(asked)) return;
  const compared = {
    agent_number: [call.agentNumber, input.agentNumber],
    agent_endpoint: [call.agentUserId, input.agentUserId ?? null],
    customer_number: [call.customerNumber, input.customerNumber],
    callback_url: [call.callbackUrl, input.callbackUrl],
    agent_ring_timeout: [call.agentRingTimeoutS, input.agentRingTimeoutS],
    customer_ring_timeout: [call.customerRingTimeoutS, input.customerRingTimeoutS],
    max_duration: [call.maxDurationS, input.maxDurationS],
    record: [call.recordRequested, input.record],
    transcribe: [call.transcribeRequested, input.transcribe ?? false],
    metadata: [canonicalJson(call.metadata), canonicalJson(input.metadata)],
  };
  const fields = Object.entries(compared).flatMap(([field, [before, now]]) => (before === now ? [] : [field]));
  const difference = fields.length === 0 ? 'other options' : `another ${fields.join(', ')}`;
  throw new TandemError(
    'REFERENCE_CONFLICT',
    `This reference_id belongs to a live call that was placed with ${difference}. Use another one for another call.`,
    { details: { call_id: call.callId, fields } },
  );
}

/** Replays of a reference do not need the line. */
function requireLine({ isLineDown }: AdmitCallInput, trunk: TrunkForCall): void {
  if (!isLineDown?.(trunk)) return;
  throw new TandemError(
    'CARRIER_LINE_DOWN',
    'The carrier does not respond. No call was placed, and reference_id is still free. Try again later.',
    { retryAfterS: LINE_RETRY_AFTER_S },
  );
}

/**
 * Finds the oldest of the calls that fill the window, as many as are asked for, latest first. Once such a call leaves,
 * there is room for one more. Looks at calls only if the counts by second come near the limit: at 150 placements a
 * second, thousands of calls are in the window.
 */
async function lastPlacements(tx: Tx, inputs: readonly AdmitCallInput[]): Promise<{ createdAt: Date }[]> {
  const [{ workspaceId, placementsPerMinute = DEFAULT_PLACEMENTS }] = inputs as [AdmitCallInput];
  const nowMs = Math.min(...inputs.map(({ now }) => now.getTime()));
  const windowStart = new Date(nowMs - PLACEMENT_WINDOW_MS);
  const windowEnd = new Date(nowMs + PLACEMENT_WINDOW_MS);
  // A rejected call was not placed. A call beyond the window's end is from before the clock was set back.
  return await tx<{ createdAt: Date }[]>`
    with allowed as (
      select (${tx.json(placementsPerMinute)}::jsonb ->> plan)::int as placements from workspaces where id = ${workspaceId}
    ), counted as (
      select coalesce(sum(placements), 0) as placements from placement_counts
      where workspace_id = ${workspaceId} and second >= floor(extract(epoch from ${windowStart}::timestamptz))
        and second <= floor(extract(epoch from ${windowEnd}::timestamptz))
    )
    select created_at from calls
    where (select placements from counted) + ${inputs.length}::int > (select placements from allowed)
      and workspace_id = ${workspaceId} and created_at > ${windowStart} and created_at < ${windowEnd}
      and state <> 'rejected' and placed_via <> 'inbound'
    order by created_at desc
    offset (select greatest(placements - ${inputs.length}::int, 0) from allowed)
    limit ${inputs.length}`;
}

function requirePlacementRate(
  { now, placementsPerMinute = DEFAULT_PLACEMENTS }: AdmitCallInput,
  { found, admitted }: { found: Found; admitted: readonly AdmittedCall[] },
): void {
  const limit = placementsPerMinute[found.plan];
  const placed = admitted.filter(({ input }) => input.placedVia !== 'inbound').map(({ row }) => row);
  // The oldest that counts has index `limit - 1` among all placements, latest first.
  const blocking =
    placed.length >= limit
      ? placed.at(-limit)
      : found.placements[limit - 1 - placed.length - Math.max(limit - found.asked, 0)];
  if (blocking === undefined) return;
  const waitMs = blocking.createdAt.getTime() + PLACEMENT_WINDOW_MS - now.getTime();
  // It is in the window of an earlier placement that is admitted together with this one.
  if (waitMs <= 0) return;
  throw new TandemError('C2C_RATE_LIMITED', `The limit of ${limit} calls per minute is reached.`, {
    retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

function callerId(
  { did }: AdmitCallInput,
  { trunk, numbers }: { trunk: TrunkForCall } & Pick<Found, 'numbers'>,
): string {
  const owned = new Set(numbers.map((number) => number.e164));
  if (did !== null) {
    if (!owned.has(did)) {
      throw new TandemError(
        'CALLER_ID_NOT_OWNED',
        'The workspace does not rent this number on this trunk. Rent it with POST /dialer/numbers.',
      );
    }
    return did;
  }
  const first = numbers[0]?.e164;
  if (first === undefined) throw notProvisioned('The workspace has no number on this trunk. Rent one first.');
  const saved = [trunk.workspaceDefaultCallerId, trunk.defaultCallerId];
  return saved.find((number) => number !== null && owned.has(number)) ?? first;
}

function permissionOf({
  workspaceId,
  agentNumber,
  customerNumber,
  placedVia,
  callingLimits = NO_CALLING_LIMITS,
  now,
}: AdmitCallInput): CallPermission {
  return {
    ...{ workspaceId, limits: callingLimits, now },
    staff: agentNumber === null ? {} : { agent_number: agentNumber },
    public: dialedCustomer({ placedVia, customerNumber }),
  };
}

function requireAllowedDestinations(
  { agentNumber, customerNumber, placedVia }: AdmitCallInput,
  { allowedPrefixes }: TrunkForCall,
): void {
  if (allowedPrefixes.length === 0) return;
  // In the order of the API reference. The trunk does not dial a browser.
  if (agentNumber !== null) requireAllowed(allowedPrefixes, { agent_number: agentNumber });
  requireAllowed(allowedPrefixes, dialedCustomer({ placedVia, customerNumber }));
}

/** Empty for an inbound call, whose customer is not dialed. */
function dialedCustomer({
  placedVia,
  customerNumber,
}: Pick<AdmitCallInput, 'placedVia' | 'customerNumber'>): Record<string, string> {
  return placedVia === 'inbound' || customerNumber === null ? {} : { customer_number: customerNumber };
}

function requireAllowed(allowedPrefixes: readonly string[], numbers: Readonly<Record<string, string>>): void {
  for (const [field, number] of Object.entries(numbers)) {
    if (allowedPrefixes.length === 0 || allowedPrefixes.some((prefix) => number.startsWith(prefix))) continue;
    throw new TandemError(
      'destination_not_allowed',
      `The trunk may not call numbers with the prefix of this ${field}. Add it to allowed_prefixes.`,
    );
  }
}

/**
 * Checks that a live call may dial another number over its trunk.
 * @throws TandemError `DIALER_NOT_PROVISIONED`, `destination_not_allowed`, those of `requireCallPermission`,
 * `no_free_channel`
 */
export async function requireRoomForLeg(
  sql: SqlOrTx,
  { trunkId, workspaceId, number, isStaff, callingLimits, now }: NewLeg,
): Promise<void> {
  const [trunk] = await sql<{ id: string; channels: number; allowedPrefixes: string[] }[]>`
    select id, channels, allowed_prefixes from trunks
    where id = ${trunkId} and status = 'active' and deleted_at is null`;
  if (trunk === undefined) throw notProvisioned('The trunk of the call was disabled or deleted.');
  requireAllowed(trunk.allowedPrefixes, { number });
  await requireCallPermission(sql, {
    ...{ workspaceId, limits: callingLimits, now },
    staff: isStaff ? { number } : {},
    public: isStaff ? {} : { number },
  });
  requireFreeChannel(trunk, await channelsInUseOf(sql, sql`${trunk.id}`));
}

interface NewLeg {
  trunkId: string;
  workspaceId: string;
  number: string;
  /** A supervisor or an agent's replacement, not a member of the public. */
  isStaff: boolean;
  callingLimits: CallingLimits;
  now: Date;
}

/** A call uses one channel, and each added phone another one. */
async function channelsInUseOf(sql: SqlOrTx, trunkId: Fragment): Promise<number> {
  const [row] = await sql<{ live: number }[]>`
    select (count(*) + coalesce(sum(jsonb_array_length(jsonb_path_query_array(legs,
      '$[*] ? ((@.role == "party" || @.role == "supervisor") && @.state != "ended" && !exists(@.userId))'))), 0))::int as live
    from calls
    where trunk_id = ${trunkId} and ${callIsLive(sql)}`;
  return row?.live ?? 0;
}

function requireFreeChannel({ channels }: Pick<TrunkForCall, 'channels'>, inUse: number): void {
  if (inUse < channels) return;
  throw new TandemError('no_free_channel', 'All channels of the trunk are in use. Try again when a call has ended.', {
    retryAfterS: CHANNEL_RETRY_AFTER_S,
  });
}

function speechOf({ announceCharacters = null, whisperCharacters = null }: AdmitCallInput, { prices }: Found) {
  const hasSpeech = announceCharacters !== null || whisperCharacters !== null;
  return { announceCharacters, whisperCharacters, characterPriceNano: hasSpeech ? prices.tts : 0n };
}

function holdOf(input: AdmitCallInput, { trunk, found }: { trunk: TrunkForCall; found: Found }): HoldInput {
  const heldSeconds = input.agentRingTimeoutS + input.customerRingTimeoutS + HELD_TALK_SECONDS;
  // Owed as soon as it is played, so hold all of it.
  const speechNano = speechPriceOf(speechOf(input, found));
  return {
    workspaceId: input.workspaceId,
    amountNano: priceOf(heldSeconds, trunk.pricePerMinuteNano) + speechNano,
    minimumNano: speechNano,
    operationKey: `call:${input.callId}:hold`,
    callId: input.callId,
    at: input.now,
  };
}

/**
 * Its nulls have types too. Each combination of types is another prepared statement, which the connection keeps for
 * ever. Calls that are admitted together would have too many combinations.
 */
function newRow(
  tx: Tx,
  input: AdmitCallInput,
  { trunk, did, hold, found }: { trunk: TrunkForCall; did: string; hold: NewHold; found: Found },
) {
  return {
    callId: input.callId,
    workspaceId: input.workspaceId,
    referenceId: input.referenceId,
    trunkId: trunk.id,
    did,
    agentNumber: input.agentNumber,
    agentUserId: input.agentUserId ?? null,
    customerNumber: input.customerNumber,
    state: 'pending',
    seq: 1,
    startTime: input.now,
    recordRequested: input.record,
    recordingBeep: input.record && (input.recordingBeep ?? found.recordingBeep),
    transcribeRequested: input.transcribe ?? false,
    onMachine: input.onMachine ?? null,
    ...speechOf(input, found),
    metadata: exactJson(tx, input.metadata),
    callbackUrl: input.callbackUrl,
    callbackSecretEncrypted: tx.typed(input.callbackSecretEncrypted, BYTEA_OID),
    callbackSecretLast4: input.callbackSecretLast4,
    agentRingTimeoutS: input.agentRingTimeoutS,
    customerRingTimeoutS: input.customerRingTimeoutS,
    maxDurationS: input.maxDurationS,
    pricePerMinuteNano: trunk.pricePerMinuteNano,
    holdId: hold.row.id,
    placedVia: input.placedVia,
    direction: input.placedVia === 'inbound' ? 'inbound' : 'outbound',
    apiKeyId: input.apiKeyId,
    apiKeyName: input.apiKeyName,
    createdByUserId: input.createdByUserId,
    ownerNode: input.ownerNode,
    ownerBoot: input.ownerBoot,
    requestHash: tx.typed(input.requestHash ?? null, BYTEA_OID),
    createdAt: input.now,
  };
}

/** In one round trip. Returns the calls by id. */
async function storeCalls(tx: Tx, admitted: readonly AdmittedCall[]): Promise<Map<string, CallRow>> {
  const first = { event: 'call.pending', state: 'pending', leg: null, sipStatus: null, hangupCause: null } as const;
  const events = admitted.map(({ input: { callId, now, decidedBy } }) => {
    const data = decidedBy ? { ...decidedBy } : null;
    return { callId, lastSequence: 0, moves: [{ ...first, at: now, detail: null, data }] };
  });
  // In this order.
  const [, calls] = await Promise.all([
    storeHolds(
      tx,
      admitted.map(({ hold }) => hold),
    ),
    tx<CallRow[]>`insert into calls ${tx(admitted.map(({ row }) => row))} returning *`.execute(),
    storeEvents(tx, events),
  ]);
  return new Map(calls.map((call) => [call.callId, call]));
}

function notProvisioned(message: string): TandemError {
  return new TandemError('DIALER_NOT_PROVISIONED', message);
}
