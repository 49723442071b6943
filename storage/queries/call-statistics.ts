import type { SqlOrTx } from '../database.ts';

export type StatisticsInterval = 'hour' | 'day';

export interface StatisticsQuery {
  workspaceId: string;
  /** created_at in [from, to). */
  from: Date;
  to: Date;
  interval: StatisticsInterval;
  /** IANA name. */
  timeZone: string;
}

export interface CallStatistics {
  /** Not final yet. */
  live: number;
  completed: number;
  notAnswered: number;
  failed: number;
  temporarilyFailed: number;
  rejected: number;
  talkSeconds: bigint;
  costNano: bigint;
  /** Over agents and customers; null if nothing was measured. */
  meanMos: number | null;
  worstMos: number | null;
}

export interface IntervalStatistics extends CallStatistics {
  start: Date;
  end: Date;
}

/**
 * Computes call statistics of a workspace by hour or day in a time zone, including intervals without calls, and in
 * total. Days have 23 to 25 hours.
 */
export async function callStatistics(
  sql: SqlOrTx,
  { workspaceId, from, to, interval, ...query }: StatisticsQuery,
): Promise<{ total: CallStatistics; intervals: IntervalStatistics[] }> {
  const timeZone = fullNameOf(query.timeZone);
  // A day has 23 to 25 hours, so 36 hours after its start are within the next one.
  const stepHours = interval === 'day' ? 36 : 1;
  const rows = await sql<(IntervalStatistics & { isTotal: boolean })[]>`
    with recursive intervals (start_at, next_at) as (
      select date_trunc(${interval}, ${from}::timestamptz, ${timeZone}),
        date_trunc(${interval}, date_trunc(${interval}, ${from}::timestamptz, ${timeZone})
          + ${stepHours} * interval '1 hour', ${timeZone})
      union all
      select next_at, date_trunc(${interval}, next_at + ${stepHours} * interval '1 hour', ${timeZone})
      from intervals where next_at < ${to}
    ), measured as (
      select date_trunc(${interval}, created_at, ${timeZone}) as start_at, state, terminal_event, talk_seconds,
        coalesce(cost_nano, 0) + coalesce(legs_cost_nano, 0) + coalesce(speech_cost_nano, 0) as charged_nano,
        (quality -> 'agent' ->> 'mos')::float8 as agent_mos, (quality -> 'customer' ->> 'mos')::float8 as customer_mos
      from calls where workspace_id = ${workspaceId} and created_at >= ${from} and created_at < ${to}
    )
    select grouping(i.start_at) = 1 as is_total, i.start_at as start, min(i.next_at) as end,
      count(*) filter (where state in ('pending', 'initiated', 'bridged', 'unknown'))::int as live,
      count(*) filter (where state = 'completed')::int as completed,
      count(*) filter (where state = 'failed' and terminal_event = 'call.not_answered')::int as not_answered,
      count(*) filter (where state = 'failed' and terminal_event = 'call.failed')::int as failed,
      count(*) filter (where state = 'failed' and terminal_event = 'call.temporaryfailed')::int as temporarily_failed,
      count(*) filter (where state = 'rejected')::int as rejected,
      coalesce(sum(talk_seconds), 0)::bigint as talk_seconds,
      coalesce(sum(charged_nano), 0)::bigint as cost_nano,
      (coalesce(sum(agent_mos), 0) + coalesce(sum(customer_mos), 0))
        / nullif(count(agent_mos) + count(customer_mos), 0) as mean_mos,
      least(min(agent_mos), min(customer_mos)) as worst_mos
    from intervals i left join measured c using (start_at)
    group by grouping sets ((i.start_at), ())
    order by is_total desc, start`;
  const [total, ...intervals] = rows.map(({ isTotal: _, ...row }) => ({
    ...row,
    talkSeconds: BigInt(row.talkSeconds),
    costNano: BigInt(row.costNano),
  }));
  return { total: total!, intervals };
}

/**
 * Postgres reads names without a slash as its own abbreviations: `IST` as Israel's time, and `CET` without daylight
 * saving time.
 */
function fullNameOf(timeZone: string): string {
  return timeZone.includes('/') ? timeZone : new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
}
