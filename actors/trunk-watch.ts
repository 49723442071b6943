import type { Clock } from '../runtime/clock.ts';
import { repeat } from '../runtime/waiting.ts';
import type { SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { listActiveTrunks, type TrunkRow } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import { trunkEndpoint } from './call-dialog.ts';
import type { Logger } from './logger.ts';

/**
 * Knows which carriers answer. Every trunk is asked with OPTIONS (RFC 3261 §11) at intervals; one that has missed
 * `MISSES_UNTIL_DOWN` probes in a row is down until it answers again. A trunk never asked yet counts as up: the call
 * itself will tell.
 */
export interface TrunkWatch {
  isDown(trunkId: string): boolean;
  /** One round over all active trunks. */
  probeAll(): Promise<void>;
  close(): void;
}

export interface TrunkWatchOptions {
  sip: SipGateway;
  sql: Sql;
  secrets: SecretBox;
  clock: Clock;
  logger: Logger;
  intervalMs?: number;
}

const INTERVAL_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;
const MISSES_UNTIL_DOWN = 2;

export function watchTrunks(options: TrunkWatchOptions): TrunkWatch {
  const { sip, sql, secrets, clock, logger, intervalMs = INTERVAL_MS } = options;
  const misses = new Map<string, number>();
  const closing = new AbortController();

  async function probe(trunk: TrunkRow): Promise<void> {
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    const { reachable } = await sip.probe(trunkEndpoint(trunk, secrets), signal);
    // What was missed because our own SIP server went away says nothing of the carrier.
    if (closing.signal.aborted || (!reachable && sip.state !== 'connected')) return;
    const before = misses.get(trunk.id) ?? 0;
    misses.set(trunk.id, reachable ? 0 : before + 1);
    if (!reachable && before + 1 === MISSES_UNTIL_DOWN) logger.warn({ trunkId: trunk.id }, 'trunk unreachable');
    if (reachable && before >= MISSES_UNTIL_DOWN) logger.info({ trunkId: trunk.id }, 'trunk reachable again');
  }

  async function probeAll(): Promise<void> {
    if (sip.state !== 'connected') return;
    const trunks = await listActiveTrunks(sql);
    for (const id of misses.keys()) if (!trunks.some((trunk) => trunk.id === id)) misses.delete(id);
    const warn = (trunk: TrunkRow) => (error: unknown) =>
      logger.warn({ trunkId: trunk.id, err: error }, 'trunk probe failed');
    await Promise.all(trunks.map((trunk) => probe(trunk).catch(warn(trunk))));
  }

  const warn = (error: unknown) => logger.warn({ err: error }, 'probing trunks failed');
  void repeat(() => probeAll().catch(warn), { everyMs: intervalMs, clock, signal: closing.signal });
  return {
    isDown: (trunkId) => (misses.get(trunkId) ?? 0) >= MISSES_UNTIL_DOWN,
    probeAll,
    close: () => closing.abort(),
  };
}
