import { TandemError } from '../../machines/errors.ts';
import { dayAround, timeOfDay } from '../../runtime/zoned-time.ts';
import type { SqlOrTx } from '../database.ts';
import {
  type CallingHours,
  type CallingLimits,
  type CallingRules,
  type DestinationLimit,
  getCallingRules,
} from './calling-rules.ts';
import { onDoNotCall } from './do-not-call.ts';

export interface CallPermission {
  workspaceId: string;
  /** Numbers of the workspace's own people, by field name. */
  staff: Readonly<Record<string, string>>;
  /** Numbers of others, by field name. Only these are subject to the do-not-call list and calling hours. */
  public: Readonly<Record<string, string>>;
  /** Limits of the operator. */
  limits: CallingLimits;
  now: Date;
  /** Calls that the same transaction stores later. Default: none. */
  notStored?: readonly NotStoredCall[];
}

export interface NotStoredCall extends Dialed {
  heldNano: bigint;
}

const WINDOW_MS = 60_000;
/** Longer than the longest call with its ringing, so it bounds the age of calls that get a new leg. */
const LONGEST_CALL_MS = 9_000_000;

/**
 * Checks whether a workspace may dial numbers now. All placements and added legs use it.
 * @throws TandemError `DESTINATION_BLOCKED`, `DO_NOT_CALL`, `OUTSIDE_CALLING_HOURS`, `DESTINATION_RATE_LIMITED`,
 * `DAILY_SPEND_CAP_REACHED`
 */
export async function requireCallPermission(sql: SqlOrTx, asked: CallPermission): Promise<void> {
  const { workspaceId, public: others } = asked;
  const read = await readPermission(sql, { workspaceId, numbers: Object.values(others) });
  await requirePermissionBy(read, sql, asked);
}

export interface PermissionRules {
  rules: CallingRules;
  /** Those of the numbers that are on the do-not-call list. */
  listed: readonly string[];
}

/** In one round trip. */
export async function readPermission(
  sql: SqlOrTx,
  { workspaceId, numbers }: { workspaceId: string; numbers: readonly string[] },
): Promise<PermissionRules> {
  const [rules, listed] = await Promise.all([
    getCallingRules(sql, workspaceId),
    onDoNotCall(sql, { workspaceId, numbers }),
  ]);
  return { rules, listed };
}

/** As `requireCallPermission`. Reads more only for workspaces with rate or spend limits. */
export async function requirePermissionBy(
  { rules, listed }: PermissionRules,
  sql: SqlOrTx,
  asked: CallPermission,
): Promise<void> {
  const { workspaceId, limits, now, notStored = [] } = asked;
  const numbers = { ...asked.staff, ...asked.public };
  requireUnblocked(numbers, [...limits.blockedPrefixes, ...rules.blockedPrefixes]);
  requireNotListed(asked.public, listed);
  if (rules.callingHours !== null && Object.keys(asked.public).length > 0) requireHours(rules.callingHours, now);
  const destinationLimits = [...limits.destinationLimits, ...rules.destinationLimits];
  await requireDestinationRate(sql, {
    workspaceId,
    numbers: Object.values(numbers),
    destinationLimits,
    now,
    notStored,
  });
  const caps = [limits.dailySpendCapNano, rules.dailySpendCapNano].filter((cap) => cap !== null);
  const timeZone = rules.callingHours?.timeZone ?? 'UTC';
  for (const cap of caps) await requireSpendBelow(sql, { workspaceId, cap, timeZone, now, notStored });
}

function requireUnblocked(numbers: Readonly<Record<string, string>>, prefixes: readonly string[]): void {
  for (const [field, number] of Object.entries(numbers)) {
    if (!prefixes.some((prefix) => number.startsWith(prefix))) continue;
    throw new TandemError(
      'DESTINATION_BLOCKED',
      `Calls to the prefix of this ${field} are blocked. See GET /dialer/calling-rules.`,
    );
  }
}

function requireNotListed(numbers: Readonly<Record<string, string>>, listed: readonly string[]): void {
  const field = Object.keys(numbers).find((name) => listed.includes(numbers[name]!));
  if (field === undefined) return;
  throw new TandemError('DO_NOT_CALL', `This ${field} is on the do-not-call list of the workspace.`);
}

function requireHours({ timeZone, start, end }: CallingHours, now: Date): void {
  if (isWithin({ timeZone, start, end }, now)) return;
  const message = `Calls are allowed from ${start} to ${end} (${timeZone}). Call within these hours.`;
  throw new TandemError('OUTSIDE_CALLING_HOURS', message, { details: { time_zone: timeZone, start, end } });
}

function isWithin({ timeZone, start, end }: CallingHours, now: Date): boolean {
  const time = timeOfDay(now, timeZone);
  return start < end ? time >= start && time < end : time >= start || time < end;
}

interface RateCheck {
  workspaceId: string;
  numbers: readonly string[];
  destinationLimits: readonly DestinationLimit[];
  now: Date;
  notStored: readonly Dialed[];
}

/**
 * Limits the rate per prefix. A call counts once, whichever of its numbers has the prefix; each added leg counts too.
 */
async function requireDestinationRate(
  sql: SqlOrTx,
  { workspaceId, numbers, destinationLimits, now, notStored }: RateCheck,
) {
  const matching = destinationLimits.filter(({ prefix }) => numbers.some((number) => number.startsWith(prefix)));
  if (matching.length === 0) return;
  const recent = [...(await dialedAround(sql, { workspaceId, now })), ...notStored];
  for (const { prefix, callsPerMinute } of matching) {
    const counted = recent.filter((dialed) => dialed.numbers.some((number) => number.startsWith(prefix)));
    if (counted.length < callsPerMinute) continue;
    // Once this call leaves the window, there is room for one more.
    const blocking = counted.at(-callsPerMinute)!;
    const waitMs = blocking.at.getTime() + WINDOW_MS - now.getTime();
    throw new TandemError(
      'DESTINATION_RATE_LIMITED',
      `The limit of ${callsPerMinute} calls per minute to ${prefix} is reached. Try again later.`,
      { details: { prefix, limit: callsPerMinute }, retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) },
    );
  }
}

interface Dialed {
  at: Date;
  numbers: string[];
}

/**
 * Placements and added legs in the window, oldest first. Later ones are from nodes with other clocks; those beyond the
 * next window are from before the clock was set back.
 */
async function dialedAround(sql: SqlOrTx, { workspaceId, now }: { workspaceId: string; now: Date }): Promise<Dialed[]> {
  const since = new Date(now.getTime() - WINDOW_MS);
  const until = new Date(now.getTime() + WINDOW_MS);
  const oldestCall = new Date(now.getTime() - LONGEST_CALL_MS);
  return await sql<Dialed[]>`
    select created_at as at,
      array_remove(array[agent_number, case when placed_via <> 'inbound' then customer_number end], null) as numbers
    from calls
    where workspace_id = ${workspaceId} and created_at > ${since} and created_at < ${until} and state <> 'rejected'
    union all
    select e.at, array[dialed.leg->>'number'] from calls c
    cross join lateral jsonb_array_elements(c.legs) dialed (leg)
    join call_events e on e.call_id = c.call_id and e.event = 'leg.dialing' and e.at > ${since}
      and e.at < ${until} and e.data->>'leg_id' = dialed.leg->>'legId'
    where c.workspace_id = ${workspaceId} and c.created_at > ${oldestCall}
      and jsonb_array_length(c.legs) > 2 and dialed.leg->>'number' is not null
    order by at`;
}

interface SpendCheck {
  workspaceId: string;
  cap: bigint;
  /** The day begins at midnight in this zone. */
  timeZone: string;
  now: Date;
  notStored: readonly NotStoredCall[];
}

/**
 * Calls in progress count with their holds, so that concurrent calls cannot exceed the cap, and with the texts that they
 * have played, which are charged at once.
 */
async function requireSpendBelow(
  sql: SqlOrTx,
  { workspaceId, cap, timeZone, now, notStored }: SpendCheck,
): Promise<void> {
  const { start, end } = dayAround(now, timeZone);
  const oldestCall = new Date(start.getTime() - LONGEST_CALL_MS);
  const [row] = await sql<{ spent: bigint }[]>`
    select (
      coalesce((select sum(coalesce(cost_nano, 0) + coalesce(legs_cost_nano, 0) + coalesce(speech_cost_nano, 0))
        from calls where workspace_id = ${workspaceId} and created_at > ${oldestCall}
          and (end_time >= ${start} or end_time is null)), 0)
      + coalesce((select sum(amount_nano)
        from holds where workspace_id = ${workspaceId} and status = 'open' and call_id is not null), 0)
    )::bigint as spent`;
  const spent = notStored.reduce((sum, { heldNano }) => sum + heldNano, row?.spent ?? 0n);
  if (spent < cap) return;
  throw new TandemError(
    'DAILY_SPEND_CAP_REACHED',
    `The calls of the workspace have reached their cap for this day. It ends at ${end.toISOString()}.`,
    { details: { resets_at: end.toISOString() } },
  );
}
