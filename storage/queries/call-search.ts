import type { PendingQuery, Row } from 'postgres';
import type { SqlOrTx } from '../database.ts';
import type { CallRow, CallState } from './call-row.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

export interface CallFilters {
  workspaceId: string;
  /** Matches any of these. */
  states?: readonly CallState[];
  hangupCause?: string;
  direction?: CallRow['direction'];
  /** created_at in [from, to). */
  from?: Date;
  to?: Date;
  agentNumber?: string;
  customerNumber?: string;
  /** Number of agent or customer: in E.164, or its last digits. */
  number?: string;
  /** User who placed the call, or whose browser is its agent. */
  userId?: number;
  apiKeyId?: number;
  /** A UUID. */
  trunkId?: string;
  referenceId?: string;
  /** Case-insensitive. */
  metadataText?: string;
  minTalkSeconds?: number;
  maxTalkSeconds?: number;
  hasRecording?: boolean;
}

/** Newest first. */
export async function listCalls(sql: SqlOrTx, filters: CallFilters, page: Page): Promise<PageOf<CallRow>> {
  const matching = matchingOf(sql, filters);
  const rows = await sql<CallRow[]>`
    select * from calls where ${matching} order by created_at desc, call_id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from calls where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

export interface CallPosition {
  /** created_at in microseconds since the epoch. */
  createdAtUs: bigint;
  callId: string;
}

/**
 * Returns up to `limit` calls after a position, newest first; `next` is null at the end. Reads only these rows, at any
 * depth.
 */
export async function callsAfter(
  sql: SqlOrTx,
  filters: CallFilters,
  { after, limit }: { after: CallPosition | null; limit: number },
): Promise<{ rows: CallRow[]; next: CallPosition | null }> {
  const createdAt = sql`timestamptz 'epoch' + ${String(after?.createdAtUs ?? 0)}::bigint * interval '1 microsecond'`;
  const position =
    after === null
      ? sql``
      : sql`and created_at <= ${createdAt} and (created_at < ${createdAt} or call_id > ${after.callId})`;
  const found = await sql<(CallRow & { createdAtUs: bigint })[]>`
    select *, (extract(epoch from created_at) * 1000000)::bigint as created_at_us
    from calls where ${matchingOf(sql, filters)} ${position}
    order by created_at desc, call_id limit ${limit + 1}`;
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const next = last === undefined ? null : { createdAtUs: BigInt(last.createdAtUs), callId: last.callId };
  return { rows: rows.map(({ createdAtUs: _, ...row }) => row as CallRow), next };
}

function matchingOf(sql: SqlOrTx, filters: CallFilters): PendingQuery<Row[]> {
  const { states, hangupCause, direction, from, to, agentNumber, customerNumber, number } = filters;
  const { userId, apiKeyId, trunkId, referenceId, metadataText, minTalkSeconds, maxTalkSeconds, hasRecording } =
    filters;
  const conditions = [
    sql`workspace_id = ${filters.workspaceId}`,
    states && sql`state = any(${states as CallState[]})`,
    hangupCause !== undefined && sql`hangup_cause = ${hangupCause}`,
    direction && sql`direction = ${direction}`,
    from && sql`created_at >= ${from}`,
    to && sql`created_at < ${to}`,
    agentNumber !== undefined && sql`agent_number = ${agentNumber}`,
    customerNumber !== undefined && sql`customer_number = ${customerNumber}`,
    number !== undefined &&
      sql`(${endsWith(sql, 'agent_number', number)} or ${endsWith(sql, 'customer_number', number)})`,
    userId !== undefined && sql`(created_by_user_id = ${userId} or agent_user_id = ${userId})`,
    apiKeyId !== undefined && sql`api_key_id = ${apiKeyId}`,
    trunkId !== undefined && sql`trunk_id = ${trunkId}`,
    referenceId !== undefined && sql`reference_id = ${referenceId}`,
    metadataText !== undefined && sql`position(lower(${metadataText}) in lower(metadata::text)) > 0`,
    minTalkSeconds !== undefined && sql`talk_seconds >= ${minTalkSeconds}`,
    maxTalkSeconds !== undefined && sql`talk_seconds <= ${maxTalkSeconds}`,
    hasRecording !== undefined && sql`(recording_status is not distinct from 'uploaded') = ${hasRecording}`,
  ].filter((condition) => condition !== undefined && condition !== false);
  return conditions.reduce((all, condition) => sql`${all} and ${condition}`);
}

/** Matches the index expressions. `digits` has no wildcards. */
function endsWith(sql: SqlOrTx, column: 'agent_number' | 'customer_number', digits: string) {
  const reversed = [...digits].reverse().join('');
  return sql`(${sql(column)} is not null and reverse(${sql(column)}) like ${`${reversed}%`})`;
}
