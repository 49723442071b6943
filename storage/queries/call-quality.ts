import type { SqlOrTx } from '../database.ts';

/** Quality of a leg's received media during an interval. */
export interface QualitySample {
  callId: string;
  /** `agent`, `customer` or the id of a further leg. */
  leg: string;
  at: Date;
  packetsReceived: number;
  packetsLost: number;
  jitterMs: number;
  roundTripMs: number | null;
  /** Null if nothing was received. */
  mos: number | null;
}

/** Stores samples once. Ignores those of missing calls. */
export async function addQualitySamples(sql: SqlOrTx, samples: readonly QualitySample[]): Promise<void> {
  const callIds = [...new Set(samples.map(({ callId }) => callId))];
  const known = await sql<{ callId: string }[]>`select call_id from calls where call_id in ${sql(callIds)}`;
  const exists = new Set(known.map(({ callId }) => callId));
  const rows = samples.filter(({ callId }) => exists.has(callId));
  if (rows.length > 0) await sql`insert into call_quality_samples ${sql(rows)} on conflict do nothing`;
}

/** By leg, oldest first. */
export async function qualitySamplesOf(sql: SqlOrTx, callId: string): Promise<QualitySample[]> {
  return await sql<QualitySample[]>`
    select call_id, leg, at, packets_received, packets_lost, jitter_ms, round_trip_ms, mos
    from call_quality_samples where call_id = ${callId} order by leg, at`;
}
