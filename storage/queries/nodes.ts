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
  /** Null for a node of an older version. */
  version: string | null;
  startedAt: Date;
}

export interface NodeState extends Pick<NodeRow, 'node' | 'boot' | 'version' | 'startedAt' | 'seenAt' | 'takenOverBy'> {
  isDraining: boolean;
  liveCalls: number;
  mediaLoad: number;
  canPlaceCalls: boolean;
  isSettled: boolean;
  /** Time until its lease expires, by the database's clock; negative once expired. */
  leaseLeftMs: number;
  /** Time since the last sign of life; null before the first. */
  silentForMs: number | null;
}

/** Status that a node sends with each renewal. */
export type NodeReport = Pick<NodeRow, 'isDraining' | 'liveCalls' | 'mediaLoad' | 'canPlaceCalls'>;

export interface NodeIdentity {
  node: string;
  /** Fencing token. */
  boot: string;
}

/** A boot with an expired lease. */
export type LostNode = Pick<NodeRow, 'node' | 'boot' | 'seenAt' | 'recordingsDir'>;

/** Selects lost rows: of all boots of a node but one, for a restarting node, or of one boot whose lease has expired. */
export type LostOwner = { node: string } & ({ exceptBoot: string } | { boot: string });

/** Condition on `owner_node` and `owner_boot`. */
export function isOwnedBy(sql: SqlOrTx, lost: LostOwner) {
  return 'boot' in lost
    ? sql`owner_node = ${lost.node} and owner_boot = ${lost.boot}`
    : sql`owner_node = ${lost.node} and owner_boot <> ${lost.exceptBoot}`;
}

interface NewNode extends NodeIdentity {
  recordingsDir: string;
  /** Default: unknown. */
  version?: string | null;
  leaseMs: number;
  now: Date;
}

/**
 * Takes the lease for a new boot. Returns the previous boot's last sign of life, which stays in the row until this boot
 * reports.
 */
export async function joinNodes(
  sql: SqlOrTx,
  { node, boot, recordingsDir, version = null, leaseMs, now }: NewNode,
): Promise<{ seenAt: Date | null }> {
  const [row] = await sql<{ seenAt: Date | null }[]>`
    insert into nodes (node, boot, lease_until, recordings_dir, version, started_at)
    values (${node}, ${boot}, ${leaseEnd(sql, leaseMs)}, ${recordingsDir}, ${version}, ${now})
    on conflict (node) do update set boot = ${boot}, lease_until = ${leaseEnd(sql, leaseMs)},
      recordings_dir = ${recordingsDir}, version = ${version}, started_at = ${now}, taken_over_by = null, settled_at = null,
      is_draining = false, live_calls = 0, media_load = 0, can_place_calls = false
    returning seen_at`;
  return { seenAt: row!.seenAt };
}

/**
 * Extends the lease. False if another node has taken over or a newer boot has started: this boot owns nothing any more.
 */
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

/** Ends the lease at once, so that another node takes over what is left. */
export async function leaveNodes(sql: SqlOrTx, { node, boot }: NodeIdentity): Promise<void> {
  await sql`
    update nodes set lease_until = clock_timestamp(), is_draining = true, can_place_calls = false
    where node = ${node} and boot = ${boot} and taken_over_by is null`;
}

/** Returns nodes by id, including the caller, without settled lost ones. `isLive`: the lease is valid. */
export async function unsettledNodes(sql: SqlOrTx): Promise<(NodeRow & { isLive: boolean })[]> {
  return await sql<(NodeRow & { isLive: boolean })[]>`
    select *, taken_over_by is null and lease_until > clock_timestamp() as is_live
    from nodes where settled_at is null order by node`;
}

/** Returns all nodes by id; lost or stopped ones for a day. */
export async function nodeStates(sql: SqlOrTx): Promise<NodeState[]> {
  return await sql<NodeState[]>`
    select node, boot, version, started_at, seen_at, taken_over_by, is_draining, live_calls, media_load, can_place_calls,
      settled_at is not null as is_settled,
      (extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as lease_left_ms,
      (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as silent_for_ms
    from nodes where settled_at is null or settled_at > clock_timestamp() - interval '1 day' order by node limit 100`;
}

/**
 * Takes over all boots with an expired lease, exclusively. Returns all that are not settled yet, including earlier
 * takeovers of this node or of a lost one.
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

/** Records that everything of this boot is settled. No effect if the taker was itself taken over meanwhile. */
export async function markNodeSettled(
  sql: SqlOrTx,
  { node, boot, takenOverBy, now }: NodeIdentity & { takenOverBy: string; now: Date },
): Promise<void> {
  await sql`
    update nodes set settled_at = ${now}
    where node = ${node} and boot = ${boot} and taken_over_by = ${takenOverBy}`;
}

/**
 * Whether a boot may own something new. Until the transaction ends no other node can take this one over, so a later
 * takeover settles what it stores. The lock does not block renewals. True for a node without a row, which does not
 * belong to an installation.
 */
export async function holdsLease(tx: SqlOrTx, { node, boot }: NodeIdentity): Promise<boolean> {
  const [row] = await tx<{ boot: string; takenOverBy: string | null }[]>`
    select boot, taken_over_by from nodes where node = ${node} for key share`;
  return row === undefined || (row.boot === boot && row.takenOverBy === null);
}

function leaseEnd(sql: SqlOrTx, leaseMs: number) {
  return sql`clock_timestamp() + make_interval(secs => ${leaseMs / 1000})`;
}
