import { type Clock, systemClock } from '../../runtime/clock.ts';
import { repeat } from '../../runtime/waiting.ts';
import type { Sql, StorageLogger } from '../database.ts';
import {
  joinNodes,
  type LostNode,
  leaveNodes,
  markNodeSettled,
  type NodeIdentity,
  type NodeReport,
  type NodeRow,
  renewLease,
  takeOverLostNodes,
  unsettledNodes,
} from '../queries/nodes.ts';

/**
 * Nodes that share a database. Each renews its lease every second. If a lease expires, exactly one other node takes the
 * node over and settles its calls. A boot without its lease owns nothing: the database rejects writes about its calls
 * (`calls.owner_boot`), and the process ends.
 */
export interface NodeDirectory extends NodeIdentity {
  /** Last sign of life of this node's previous boot; null on the first start. */
  readonly previousSeenAt: Date | null;
  /** Other nodes with a valid lease at the last renewal, or with time to renew it after a database failure. */
  peers(): readonly NodeRow[];
  /** Sets the source of the status sent with each renewal. */
  reportBy(report: () => NodeReport): void;
  /**
   * Registers a function that settles a lost node's work. Functions run one after the other, and again after a failure.
   */
  onLost(settle: (lost: LostNode) => Promise<void>): void;
  onRenewed(listener: (peers: readonly NodeRow[]) => void): void;
  /** Starts renewals and takeovers. Resolves after the first renewal. */
  start(): Promise<void>;
  renew(): Promise<void>;
  /** Releases the lease. Idempotent. */
  close(): Promise<void>;
}

export interface NodeDirectoryOptions extends NodeIdentity {
  sql: Sql;
  recordingsDir: string;
  /** Version of this node. Default: unknown. */
  version?: string | null;
  clock?: Clock;
  logger: StorageLogger;
  /** Called when another node has taken over this one. */
  onExpelled: (reason: string) => void;
  /** Default 8,000 ms. */
  leaseMs?: number;
  /** Default 1,000 ms. */
  renewalMs?: number;
}

/** Longer than a busy machine delays a process, but short enough to settle calls within 15 s of their node's end. */
const LEASE_MS = 8_000;
const RENEWAL_MS = 1_000;

export async function openNodeDirectory(options: NodeDirectoryOptions): Promise<NodeDirectory> {
  const { sql, node, boot, recordingsDir, version = null, logger, onExpelled } = options;
  const { clock = systemClock, leaseMs = LEASE_MS, renewalMs = RENEWAL_MS } = options;
  const identity = { node, boot };
  const closing = new AbortController();
  const settlers: ((lost: LostNode) => Promise<void>)[] = [];
  const listeners: ((peers: readonly NodeRow[]) => void)[] = [];
  let report: () => NodeReport = () => ({ isDraining: false, liveCalls: 0, mediaLoad: 0, canPlaceCalls: false });
  let peers: readonly NodeRow[] = [];
  let isStarted = false;
  /** Time since which all renewals were on time; null after a late one. */
  let steadySinceMs: number | null = null;
  let renewedAtMs = clock.monotonicMs();
  let running: Promise<void> | null = null;
  /**
   * Lost nodes not settled yet, by boot. Needed because a node that restarts during its settlement leaves no other
   * record.
   */
  const unsettled = new Map<string, LostNode>();
  let settling: Promise<void> | null = null;

  const { seenAt } = await joinNodes(sql, { ...identity, recordingsDir, version, leaseMs, now: new Date(clock.now()) });

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
    const others = (await unsettledNodes(sql)).filter((row) => row.node !== node);
    // After a database failure every node gets time to renew its lease before any counts as lost.
    const isSteady = nowMs - steadySinceMs >= leaseMs;
    const known = new Set(peers.map(({ boot }) => boot));
    // A node that left drained before.
    const mayRenew = ({ boot, isDraining, takenOverBy }: NodeRow) =>
      !isSteady && known.has(boot) && !isDraining && takenOverBy === null;
    peers = others.filter((row) => row.isLive || mayRenew(row));
    for (const listener of listeners) listener(peers);
    const hasLost = unsettled.size > 0 || others.length > peers.length;
    if (hasLost && isStarted && isSteady) takeOver();
  }

  /** Not awaited by renewals, because a settlement may take longer than a lease. */
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
      // The next renewal repeats it.
      logger.error({ lostNode: lost.node, err: error }, 'settling what a lost node left failed');
    }
  }

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
      // A renewal in progress may have begun before the start.
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
