import type { SqlOrTx } from '../database.ts';
import { jsonb } from './json-columns.ts';

export interface DestinationLimit {
  /** E.164 with plus sign. */
  prefix: string;
  callsPerMinute: number;
}

/** Limits of the operator for every workspace, or of a workspace. Both apply. */
export interface CallingLimits {
  /** Null: no cap. */
  dailySpendCapNano: bigint | null;
  blockedPrefixes: readonly string[];
  destinationLimits: readonly DestinationLimit[];
}

/** Times of day at which customers may be called. If the end is before the start, it is on the next day. */
export interface CallingHours {
  /** IANA name, such as `Asia/Kolkata`. */
  timeZone: string;
  /** `HH:MM`, inclusive. */
  start: string;
  /** `HH:MM`, exclusive. */
  end: string;
}

export interface CallingRules extends CallingLimits {
  /** Null: at any time. */
  callingHours: CallingHours | null;
}

export const NO_CALLING_LIMITS: CallingLimits = { dailySpendCapNano: null, blockedPrefixes: [], destinationLimits: [] };

export async function getCallingRules(sql: SqlOrTx, workspaceId: string): Promise<CallingRules> {
  const [row] = await sql<CallingRules[]>`
    select daily_spend_cap_nano, blocked_prefixes, destination_limits, calling_hours
    from calling_rules where workspace_id = ${workspaceId}`;
  return row ?? { ...NO_CALLING_LIMITS, callingHours: null };
}

/** Writes only the given fields. */
export async function updateCallingRules(
  sql: SqlOrTx,
  { workspaceId, patch, now }: { workspaceId: string; patch: Partial<CallingRules>; now: Date },
): Promise<CallingRules> {
  await sql`
    insert into calling_rules (workspace_id, updated_at) values (${workspaceId}, ${now}) on conflict do nothing`;
  const { dailySpendCapNano, blockedPrefixes, destinationLimits, callingHours } = patch;
  const changes = {
    updatedAt: now,
    ...(dailySpendCapNano !== undefined && { dailySpendCapNano }),
    ...(blockedPrefixes !== undefined && { blockedPrefixes: [...blockedPrefixes] }),
    ...(destinationLimits !== undefined && { destinationLimits: jsonb(sql, destinationLimits) }),
    ...(callingHours !== undefined && { callingHours: callingHours && jsonb(sql, callingHours) }),
  };
  await sql`update calling_rules set ${sql(changes)} where workspace_id = ${workspaceId}`;
  return await getCallingRules(sql, workspaceId);
}
