import type { SqlOrTx } from '../database.ts';

export interface NodeRow {
  node: string;
  boot: string;
  leaseUntil: Date;
  seenAt: Date | null;
  isDraining: boolean;
  liveCalls: number;
  mediaLoad: number;
  canPlaceCalls: boolean;
  recordingsDir: string;
  takenOverBy: string | null;
  startedAt: Date;
}

/** What a node reports of itself with each renewal. */
export type NodeReport = Pick<NodeRow, 'isDraining' | 'liveCalls' | 'mediaLoad' | 'canPlaceCalls'>;

export interface NodeIdentity {
  node: string;
  /** The fencing token. */
  boot: string;
}

/** A boot whose lease has expired. */
export type LostNode = Pick<NodeRow, 'node' | 'boot' | 'seenAt' | 'recordingsDir'>;

/**
 * Whose rows are lost: those of every boot of a node but one, for a node that starts again; or those of one boot, for a
 * node whose lease has expired.
 */
export type LostOwner = { node: string } & ({ exceptBoot: string } | { boot: string });

/** A condition on `owner_node` and `owner_boot`. */
export function isOwnedBy(sql: SqlOrTx, lost: LostOwner) {
  return 'boot' in lost
    ? sql`owner_node = ${lost.node} and owner_boot = ${lost.boot}`
    : sql`owner_node = ${lost.node} and owner_boot <> ${lost.exceptBoot}`;
}

/**
 * Takes the lease for a new boot of a node. Returns when the boot before it is known to have lived last; that stays in the
 * row until this boot reports.
 */
export async function joinNodes(
  sql: SqlOrTx,
  { node, boot, recordingsDir, leaseMs, now }: NodeIdentity & { recordingsDir: string; leaseMs: number; now: Date },
): Promise<{ seenAt: Date | null }> {
  const [row] = await sql<{ seenAt: Date | null }[]>`
    insert into nodes (node, boot, lease_until, recordings_dir, started_at)
    values (${node}, ${boot}, ${leaseEnd(sql, leaseMs)}, ${recordingsDir}, ${now})
    on conflict (node) do update set boot = ${boot}, lease_until = ${leaseEnd(sql, leaseMs)},
      recordings_dir = ${recordingsDir}, started_at = ${now}, taken_over_by = null, settled_at = null,
      is_draining = false, live_calls = 0, media_load = 0, can_place_calls = false
    returning seen_at`;
  return { seenAt: row!.seenAt };
}

/** Extends the lease. False if another node has taken over, or a newer boot has started: this one owns nothing any more. */
export async function renewLease(
  sql: SqlOrTx,
  { node, boot, leaseMs, seenAt, report }: NodeIdentity & { leaseMs: number; seenAt: Date | null; report: NodeReport },
): Promise<boolean> {
  const rows = await sql`
    update nodes set lease_until = ${leaseEnd(sql, leaseMs)}, seen_at = coalesce(${seenAt}, seen_at),
      is_draining = ${report.isDraining}, live_calls = ${report.liveCalls}, media_load = ${report.mediaLoad},
      can_place_calls = ${report.canPlaceCalls}
    where node = ${node} and boot = ${boot} and taken_over_by is null
    returning node`;
  return rows.length > 0;
}

/** Gives the lease up at once, so that another node takes over whatever is left. */
export async function leaveNodes(sql: SqlOrTx, { node, boot }: NodeIdentity): Promise<void> {
  await sql`
    update nodes set lease_until = clock_timestamp(), is_draining = true, can_place_calls = false
    where node = ${node} and boot = ${boot} and taken_over_by is null`;
}

/** Nodes whose lease is valid, the caller included, by id. */
export async function liveNodes(sql: SqlOrTx): Promise<NodeRow[]> {
  return await sql<NodeRow[]>`
    select * from nodes where taken_over_by is null and lease_until > clock_timestamp() order by node`;
}

/**
 * Takes over all boots whose lease has expired; no other node gets them. Returns those that are not settled yet, so also
 * those that this node or one that is lost itself took over before.
 */
export async function takeOverLostNodes(sql: SqlOrTx, { node }: { node: string }): Promise<LostNode[]> {
  return await sql<LostNode[]>`
    update nodes set taken_over_by = ${node}
    where node in (
      select lost.node from nodes lost
      where lost.settled_at is null and lost.lease_until < clock_timestamp() and lost.node <> ${node}
        and (lost.taken_over_by is null or lost.taken_over_by = ${node} or not exists (
          select 1 from nodes taker where taker.node = lost.taken_over_by and taker.lease_until > clock_timestamp()))
      order by lost.node for update skip locked)
    returning node, boot, seen_at, recordings_dir`;
}

/** Nothing that this boot left is unsettled any more. Nothing happens if the taker was itself taken over meanwhile. */
export async function markNodeSettled(
  sql: SqlOrTx,
  { node, boot, takenOverBy, now }: NodeIdentity & { takenOverBy: string; now: Date },
): Promise<void> {
  await sql`
    update nodes set settled_at = ${now}
    where node = ${node} and boot = ${boot} and taken_over_by = ${takenOverBy}`;
}

/**
 * Whether a boot may own something new. Until the transaction ends no other node takes this one over, so whatever it
 * stores is seen by the settlement of that takeover. The lock does not keep renewals waiting. A node without a row is
 * none of an installation: its boot may.
 */
export async function holdsLease(tx: SqlOrTx, { node, boot }: NodeIdentity): Promise<boolean> {
  const [row] = await tx<{ boot: string; takenOverBy: string | null }[]>`
    select boot, taken_over_by from nodes where node = ${node} for key share`;
  return row === undefined || (row.boot === boot && row.takenOverBy === null);
}

function leaseEnd(sql: SqlOrTx, leaseMs: number) {
  return sql`clock_timestamp() + make_interval(secs => ${leaseMs / 1000})`;
}
