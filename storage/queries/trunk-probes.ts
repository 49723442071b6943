import type { SqlOrTx } from '../database.ts';
import type { Gateway } from './trunk-gateways.ts';

export interface ProbeOutcome extends Pick<Gateway, 'sipUri' | 'transport'> {
  at: Date;
  /** Null without a response; then `silence` has the reason. */
  sipStatus: number | null;
  roundTripMs: number | null;
  /** Null if the gateway counts as reachable. */
  silence: 'no_response' | 'transport_error' | null;
}

export interface TrunkProbeRow extends ProbeOutcome {
  node: string;
}

export const MOST_PROBES_OF_TRUNK = 20;

/** Adds a probe to the trunk's recent ones. No effect for a missing trunk. */
export async function addTrunkProbe(
  sql: SqlOrTx,
  { trunkId, node, outcome }: { trunkId: string; node: string; outcome: ProbeOutcome },
): Promise<void> {
  const { sipUri, transport, at, sipStatus, roundTripMs, silence } = outcome;
  await sql`
    insert into trunk_probes (trunk_id, node, sip_uri, transport, at, sip_status, round_trip_ms, silence)
    select id, ${node}, ${sipUri}, ${transport}, ${at}, ${sipStatus}::integer, ${roundTripMs}::real, ${silence}
    from trunks where id = ${trunkId} and deleted_at is null`;
  await sql`
    delete from trunk_probes where trunk_id = ${trunkId} and id < (
      select min(id) from (
        select id from trunk_probes where trunk_id = ${trunkId} order by id desc limit ${MOST_PROBES_OF_TRUNK}
      ) newest)`;
}

/** The newest first. */
export async function recentProbesOf(sql: SqlOrTx, trunkId: string): Promise<TrunkProbeRow[]> {
  return await sql<TrunkProbeRow[]>`
    select node, sip_uri, transport, at, sip_status, round_trip_ms, silence
    from trunk_probes where trunk_id = ${trunkId} order by id desc limit ${MOST_PROBES_OF_TRUNK}`;
}
