import { type Clock, systemClock } from '../../runtime/clock.ts';
import { repeat } from '../../runtime/waiting.ts';
import type { Sql, StorageLogger } from '../database.ts';
import {
  joinNodes,
  type LostNode,
  leaveNodes,
  liveNodes,
  markNodeSettled,
  type NodeIdentity,
  type NodeReport,
  type NodeRow,
  renewLease,
  takeOverLostNodes,
} from '../queries/nodes.ts';

/**
 * The servers that share a database. Each holds a lease that it renews every second. A server whose lease has expired is
 * taken over by exactly one other, which settles what it left. A boot that lost its lease owns nothing any more: the
 * database refuses what it writes about its calls (`calls.owner_boot`), and the process ends.
 */
export interface NodeDirectory extends NodeIdentity {
  /** The last sign of life of the boot before this one; null on the first start. */
  readonly previousSeenAt: Date | null;
  /** Other nodes with a valid lease, as of the last renewal. */
  peers(): readonly NodeRow[];
  /** Provides what the node reports with each renewal. */
  reportBy(report: () => NodeReport): void;
  /** Settles what a lost node left. Called one after the other, again if one fails. */
  onLost(settle: (lost: LostNode) => Promise<void>): void;
  /** Called after each renewal. */
  onRenewed(listener: (peers: readonly NodeRow[]) => void): void;
  /** From now on renewals are signs of life, and lost nodes are taken over. Resolves after the first renewal. */
  start(): Promise<void>;
  /** Renews the lease with a new report. */
  renew(): Promise<void>;
  /** Gives the lease up. Idempotent. */
  close(): Promise<void>;
}

export interface NodeDirectoryOptions extends NodeIdentity {
  sql: Sql;
  /** Where recordings of this node grow. */
  recordingsDir: string;
  clock?: Clock;
  logger: StorageLogger;
  /** Called when another node has taken over this one. */
  onExpelled: (reason: string) => void;
  /** Default 8,000 ms. */
  leaseMs?: number;
  /** Default 1,000 ms. */
  renewalMs?: number;
}

/** Longer than a busy machine keeps a process waiting, short enough that a call is settled within 15 s of its node's end. */
const LEASE_MS = 8_000;
const RENEWAL_MS = 1_000;

export async function openNodeDirectory(options: NodeDirectoryOptions): Promise<NodeDirectory> {
  const { sql, node, boot, recordingsDir, logger, onExpelled } = options;
  const { clock = systemClock, leaseMs = LEASE_MS, renewalMs = RENEWAL_MS } = options;
  const identity = { node, boot };
  const closing = new AbortController();
  const settlers: ((lost: LostNode) => Promise<void>)[] = [];
  const listeners: ((peers: readonly NodeRow[]) => void)[] = [];
  let report: () => NodeReport = () => ({ isDraining: false, liveCalls: 0, mediaLoad: 0, canPlaceCalls: false });
  let peers: readonly NodeRow[] = [];
  let isStarted = false;
  /** Since when every renewal has been in time; null while the last one was not. */
  let steadySinceMs: number | null = null;
  let renewedAtMs = clock.monotonicMs();
  let running: Promise<void> | null = null;
  /** By boot: taken over and not settled yet. Kept here, as a node that starts again while it is settled leaves no other trace. */
  const unsettled = new Map<string, LostNode>();
  let settling: Promise<void> | null = null;

  const { seenAt } = await joinNodes(sql, { ...identity, recordingsDir, leaseMs, now: new Date(clock.now()) });

  async function renewNow(): Promise<void> {
    const signOfLife = isStarted ? new Date(clock.now()) : null;
    if (!(await renewLease(sql, { ...identity, leaseMs, seenAt: signOfLife, report: report() }))) {
      closing.abort();
      logger.error({ node }, 'another node has taken over this one');
      onExpelled('the lease of this node expired and another node took over its calls');
      return;
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - renewedAtMs > leaseMs) steadySinceMs = null;
    renewedAtMs = nowMs;
    steadySinceMs ??= nowMs;
    peers = (await liveNodes(sql)).filter((row) => row.node !== node);
    for (const listener of listeners) listener(peers);
    // After a failure of the database, every node gets the time to renew its lease before one is taken for lost.
    if (isStarted && nowMs - steadySinceMs >= leaseMs) takeOver();
  }

  /** Beside the renewals, which must not wait: a settlement can take longer than a lease. */
  function takeOver(): void {
    settling ??= (async () => {
      for (const lost of await takeOverLostNodes(sql, identity)) unsettled.set(lost.boot, lost);
      for (const lost of unsettled.values()) await settle(lost);
    })()
      .catch((error) => logger.warn({ err: error }, 'looking for lost nodes failed'))
      .finally(() => {
        settling = null;
      });
  }

  async function settle(lost: LostNode): Promise<void> {
    if (closing.signal.aborted) return;
    logger.warn({ lostNode: lost.node, seenAt: lost.seenAt }, 'taking over a node whose lease expired');
    try {
      for (const settler of settlers) await settler(lost);
      await markNodeSettled(sql, { ...lost, takenOverBy: node, now: new Date(clock.now()) });
      unsettled.delete(lost.boot);
    } catch (error) {
      // Repeated after the next renewal.
      logger.error({ lostNode: lost.node, err: error }, 'settling what a lost node left failed');
    }
  }

  /** One at a time. */
  function renew(): Promise<void> {
    running ??= renewNow()
      .catch((error) => {
        steadySinceMs = null;
        logger.warn({ err: error }, 'renewing the lease of this node failed');
      })
      .finally(() => {
        running = null;
      });
    return running;
  }

  const renewing = repeat(renew, { everyMs: renewalMs, clock, signal: closing.signal });
  return {
    ...identity,
    previousSeenAt: seenAt,
    peers: () => peers,
    reportBy(source) {
      report = source;
    },
    onLost: (settle) => void settlers.push(settle),
    onRenewed: (listener) => void listeners.push(listener),
    async start() {
      isStarted = true;
      // One that is under way may not know of the start.
      await running;
      await renew();
    },
    async renew() {
      await running;
      if (!closing.signal.aborted) await renew();
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      await renewing;
      await settling;
      await leaveNodes(sql, identity).catch((error) => logger.warn({ err: error }, 'giving up the lease failed'));
    },
  };
}
