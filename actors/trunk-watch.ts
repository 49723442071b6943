import { isDeepStrictEqual } from 'node:util';
import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { pause } from '../runtime/waiting.ts';
import type { NextHop, SipGateway, TrunkProbe, TrunkSign, TrunkSilence } from '../sip/sip-gateway.ts';
import { readTrunkUri } from '../sip/trunk.ts';
import type { Sql } from '../storage/database.ts';
import type { Gateway, GatewayAddresses } from '../storage/queries/trunk-gateways.ts';
import { recordTrunkHealth } from '../storage/queries/trunk-health.ts';
import { getTrunkById, listActiveTrunks, type TrunkRow } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { LineHealth } from './line-health.ts';
import type { Logger } from './logger.ts';
import { type TrunkObserver, trunkEndpoint } from './trunk-dialing.ts';
import type { TrunkTargets } from './trunk-targets.ts';
import { type WatchedLine, WatchedTrunk } from './watched-trunk.ts';

/**
 * Knows which carriers answer: from the calls, and from OPTIONS (RFC 3261 §11) that it sends to each gateway of a trunk
 * at the interval of `healthIntervalS`. What changes is stored with its webhook event.
 */
export interface TrunkWatch extends TrunkObserver {
  /**
   * Whether placements are refused. A trunk that was never checked, and one without probes, is not down: the call itself
   * will show it. One that is down lets a call try it every minute, so that a carrier without OPTIONS can come back.
   */
  isDown(trunkId: string): boolean;
  /** REGISTERs are sent to a gateway; the returned listener takes what they show. */
  registering(trunk: TrunkRow, gateway: Gateway): (sign: TrunkSign) => void;
  /** Probes all active trunks now. */
  probeAll(): Promise<void>;
  close(): void;
}

export interface TrunkWatchOptions {
  sip: SipGateway;
  sql: Sql;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  deliverer: Pick<Deliverer, 'enqueue'>;
  clock: Clock;
  logger: Logger;
  /** Chooses among gateways of one priority. Default: Math.random. */
  random?: () => number;
}

/** Until a new trunk, or a new interval, is seen. */
const LONGEST_WAIT_MS = 30_000;
const SHORTEST_WAIT_MS = 1_000;
const PROBE_TIMEOUT_MS = 5_000;
/** Addresses of one gateway that are probed at a time. */
const MOST_PROBED = 8;
/** A carrier may ask for longer pauses. */
const LONGEST_PAUSE_S = 3_600;

export function watchTrunks(options: TrunkWatchOptions): TrunkWatch {
  const { sip, deliverer, clock, logger, sql, random = Math.random } = options;
  const watched = new Map<string, { address: GatewayAddresses; trunk: WatchedTrunk }>();
  const closing = new AbortController();

  function watchedOf(row: TrunkRow): WatchedTrunk {
    const { sipUri, transport, gateways } = row;
    const address = { sipUri, transport, gateways };
    const known = watched.get(row.id);
    if (known !== undefined && isDeepStrictEqual(known.address, address)) {
      known.trunk.mode = row.healthMode;
      return known.trunk;
    }
    const trunk = new WatchedTrunk(row, clock);
    watched.set(row.id, { address, trunk });
    return trunk;
  }

  /** Adds to what is known of a gateway, and stores it if it changed. */
  function note(trunkId: string, trunk: WatchedTrunk, line: WatchedLine, learn: (health: LineHealth) => boolean): void {
    const current = watched.get(trunkId);
    // It has moved or was deleted meanwhile.
    if (current?.trunk !== trunk) return;
    const before = trunk.state.state;
    const stateBefore = line.health.current.state;
    if (!learn(line.health) && !trunk.isUnsaved) return;
    const at = new Date(clock.now());
    const { state: lineState } = line.health.current;
    if (lineState !== stateBefore) line.since = lineState === 'unknown' ? null : at.toISOString();
    const health = trunk.state;
    if (before !== 'down' && health.state === 'down') {
      trunk.postponeTrial();
      logger.warn({ trunkId, reason: health.reason }, 'trunk unreachable');
    }
    if (before === 'down' && health.state === 'up') logger.info({ trunkId }, 'trunk reachable again');
    trunk.saving = trunk.saving.then(async () => {
      try {
        const deliveryIds = await recordTrunkHealth(sql, { trunkId, address: current.address, health, now: at });
        trunk.isUnsaved = false;
        await Promise.all(deliveryIds.map((id) => deliverer.enqueue(id)));
      } catch (error) {
        trunk.isUnsaved = true;
        if (closing.signal.aborted) return;
        logger.warn({ trunkId, err: error }, 'reachability of a trunk could not be stored');
      }
    });
  }

  /** Null if an address of the gateway responds to OPTIONS. */
  async function silenceOf(
    row: TrunkRow,
    { gateway }: WatchedLine,
    { only, signal }: { only: readonly NextHop[] | null; signal: AbortSignal },
  ): Promise<TrunkSilence | null> {
    const target = { ...row, ...gateway };
    try {
      const hops = only ?? (await options.trunkTargets.locate(target, signal));
      return await firstSilence(
        hops.slice(0, MOST_PROBED).map((hop) => sip.probe(trunkEndpoint(target, options.secrets, hop), signal)),
      );
    } catch (error) {
      const isRefused = error instanceof TandemError && error.code === 'TRUNK_HOST_NOT_ALLOWED';
      if (signal.aborted || isRefused) return 'transport_error';
      throw error;
    }
  }

  /** Returns whether the gateway is known to answer OPTIONS, and did not. */
  async function probe(row: TrunkRow, trunk: WatchedTrunk, line: WatchedLine): Promise<boolean> {
    if (line.isProbing) return false;
    line.isProbing = true;
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
      const silence = await silenceOf(row, line, { only: null, signal });
      // What was missed because our own SIP server went away says nothing of the carrier.
      if (closing.signal.aborted || (silence !== null && sip.state !== 'connected')) return false;
      note(row.id, trunk, line, (health) =>
        silence === null ? health.answered('options') : health.missed('options', silence),
      );
      await trunk.saving;
      return silence !== null && line.health.current.answersOptions === true;
    } catch (error) {
      logger.warn({ trunkId: row.id, err: error }, 'trunk probe failed');
      return false;
    } finally {
      line.isProbing = false;
    }
  }

  /** Returns whether an address of a gateway that used to respond to OPTIONS does not. */
  async function isGone({ row, trunk, line, hop }: CheckedHop): Promise<boolean> {
    if (isOnlyAddress(line.gateway)) return await probe(row, trunk, line);
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    const silence = await silenceOf(row, line, { only: [hop], signal }).catch(() => null);
    return silence !== null && sip.state === 'connected' && line.health.current.answersOptions === true;
  }

  async function probeTrunk(row: TrunkRow): Promise<void> {
    const trunk = watchedOf(row);
    trunk.probeDueMs = clock.monotonicMs() + row.healthIntervalS * 1000;
    await Promise.all(trunk.lines.map((line) => probe(row, trunk, line)));
  }

  /** One round over the trunks that are due. */
  async function probeRound({ isForced }: { isForced: boolean }): Promise<void> {
    if (sip.state !== 'connected') return;
    const rows = await listActiveTrunks(sql);
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of watched.keys()) if (!ids.has(id)) watched.delete(id);
    await Promise.all(
      rows.map(async (row) => {
        const trunk = watchedOf(row);
        if (row.healthMode === 'none') {
          if (trunk.isUnsaved) note(row.id, trunk, trunk.lines[0]!, () => false);
        } else if (isForced || trunk.probeDueMs <= clock.monotonicMs()) await probeTrunk(row);
      }),
    );
  }

  /** A call got no answer: OPTIONS show at once whether the carrier is away. */
  async function probeNow(trunkId: string): Promise<void> {
    const row = await getTrunkById(sql, trunkId);
    if (row === null || row.status !== 'active' || row.healthMode === 'none' || sip.state !== 'connected') return;
    await probeTrunk(row);
  }

  /** Takes what a request to a gateway shows. */
  function listener({ id }: TrunkRow, trunk: WatchedTrunk, line: WatchedLine, by: 'call' | 'register') {
    return (sign: TrunkSign): void => {
      if (closing.signal.aborted) return;
      if (sign.type === 'answered') note(id, trunk, line, (health) => health.answered(by));
      else if (sign.type === 'busy') {
        line.pausedUntilMs = clock.monotonicMs() + Math.min(LONGEST_PAUSE_S, sign.retryAfterS) * 1000;
      } else if (sip.state === 'connected') {
        note(id, trunk, line, (health) => health.missed('call', sign.reason));
        if (line.health.current.answersOptions !== true) return;
        const warn = (error: unknown) => logger.warn({ trunkId: id, err: error }, 'trunk probe failed');
        void probeNow(id).catch(warn);
      }
    };
  }

  function untilNextDueMs(): number {
    const dueInMs = [...watched.values()]
      .filter(({ trunk }) => trunk.mode !== 'none')
      .map(({ trunk }) => trunk.probeDueMs - clock.monotonicMs());
    return Math.max(SHORTEST_WAIT_MS, Math.min(LONGEST_WAIT_MS, ...dueInMs));
  }

  async function run(): Promise<void> {
    const warn = (error: unknown) => logger.warn({ err: error }, 'probing trunks failed');
    while (!closing.signal.aborted) {
      await probeRound({ isForced: false }).catch(warn);
      await pause(untilNextDueMs(), { clock, signal: closing.signal }).catch(() => {});
    }
  }

  void run();
  return {
    isDown: (trunkId) => watched.get(trunkId)?.trunk.refusesCalls ?? false,
    dialing(row) {
      const trunk = watchedOf(row);
      trunk.postponeTrial();
      return trunk.order(random).map((line) => ({
        gateway: line.gateway,
        onSign: listener(row, trunk, line, 'call'),
        isGone: async (hop) => row.healthMode === 'options' && (await isGone({ row, trunk, line, hop })),
      }));
    },
    registering(row, { sipUri, transport }) {
      const trunk = watchedOf(row);
      const isOf = ({ gateway }: WatchedLine) => gateway.sipUri === sipUri && gateway.transport === transport;
      return listener(row, trunk, trunk.lines.find(isOf) ?? trunk.lines[0]!, 'register');
    },
    probeAll: () => probeRound({ isForced: true }),
    close: () => closing.abort(),
  };
}

interface CheckedHop {
  row: TrunkRow;
  trunk: WatchedTrunk;
  line: WatchedLine;
  hop: NextHop;
}

/** Whether the gateway is an IP address, so that a probe of it is a probe of all its addresses. */
function isOnlyAddress({ sipUri }: Gateway): boolean {
  return readTrunkUri(sipUri).address !== null;
}

/** Null as soon as one responds; else the silence of the first, when all have failed. */
async function firstSilence(probes: readonly Promise<TrunkProbe>[]): Promise<TrunkSilence | null> {
  if (probes.length === 0) return 'transport_error';
  const answered = probes.map(async (probe) => {
    if ((await probe).silence !== null) throw new Error('no response');
  });
  return await Promise.any(answered).then(
    () => null,
    async () => (await probes[0]!).silence,
  );
}
