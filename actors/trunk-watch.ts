import { isDeepStrictEqual } from 'node:util';
import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { pause } from '../runtime/waiting.ts';
import type { NextHop, SipGateway, TrunkSign } from '../sip/sip-gateway.ts';
import { readTrunkUri } from '../sip/trunk.ts';
import type { Sql } from '../storage/database.ts';
import type { Gateway, GatewayAddresses } from '../storage/queries/trunk-gateways.ts';
import { recordTrunkHealth } from '../storage/queries/trunk-health.ts';
import type { ProbeOutcome } from '../storage/queries/trunk-probes.ts';
import { type DialedTrunk, getTrunkById, listActiveTrunks, type TrunkLine } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { LineHealth } from './line-health.ts';
import type { Logger } from './logger.ts';
import type { TrunkObserver } from './trunk-dialing.ts';
import type { TrunkProber } from './trunk-prober.ts';
import { createTrunkProbes } from './trunk-probes.ts';
import type { TrunkTargets } from './trunk-targets.ts';
import { type WatchedLine, WatchedTrunk } from './watched-trunk.ts';

/**
 * Tracks which carriers respond, from calls and from OPTIONS (RFC 3261 §11) to each gateway every `healthIntervalS`.
 * Stores changes with their webhook events.
 */
export interface TrunkWatch extends TrunkObserver, TrunkProber {
  /**
   * Whether placements are rejected. A trunk that is unchecked at its present addresses, or has no probes, is not down:
   * the call itself will show it. A trunk that is down accepts a trial call every minute, so that a carrier without
   * OPTIONS can recover.
   */
  isDown(trunk: TrunkLine): boolean;
  /** Returns a listener for what REGISTERs to a gateway reveal. */
  registering(trunk: DialedTrunk, gateway: Gateway): (sign: TrunkSign) => void;
  /** Calls the one listener of a trunk when a gateway that was down responds again, until the signal aborts. */
  onGatewayBack(trunkId: string, listener: () => void, signal: AbortSignal): void;
  probeAll(): Promise<void>;
  close(): void;
}

export interface TrunkWatchOptions {
  sip: SipGateway;
  sql: Sql;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  deliverer: Pick<Deliverer, 'enqueue'>;
  node: string;
  clock: Clock;
  logger: Logger;
  /** Chooses among gateways of one priority. Default: Math.random. */
  random?: () => number;
}

/** Longest delay until a new trunk or interval is noticed. */
const LONGEST_WAIT_MS = 30_000;
const SHORTEST_WAIT_MS = 1_000;
const PROBE_TIMEOUT_MS = 5_000;
/** Upper bound of a carrier's Retry-After. */
const LONGEST_PAUSE_S = 3_600;

export function watchTrunks(options: TrunkWatchOptions): TrunkWatch {
  const { sip, deliverer, clock, logger, sql, random = Math.random } = options;
  const watched = new Map<string, { address: GatewayAddresses; trunk: WatchedTrunk }>();
  const backListeners = new Map<string, () => void>();
  const closing = new AbortController();
  const probes = createTrunkProbes(options);

  function watchedOf(row: DialedTrunk): WatchedTrunk {
    const address = addressOf(row);
    const known = watched.get(row.id);
    if (known !== undefined && isDeepStrictEqual(known.address, address)) {
      known.trunk.mode = row.healthMode;
      return known.trunk;
    }
    const trunk = new WatchedTrunk(row, clock);
    watched.set(row.id, { address, trunk });
    return trunk;
  }

  /** Applies new evidence to a gateway's health and stores a change. */
  function note(trunkId: string, trunk: WatchedTrunk, line: WatchedLine, learn: (health: LineHealth) => boolean): void {
    const current = watched.get(trunkId);
    // The trunk was changed or deleted meanwhile.
    if (current?.trunk !== trunk) return;
    const before = trunk.state.state;
    const stateBefore = line.health.current.state;
    if (!learn(line.health) && !trunk.isUnsaved) return;
    const at = new Date(clock.now());
    const { state: lineState } = line.health.current;
    if (lineState !== stateBefore) line.since = lineState === 'unknown' ? null : at.toISOString();
    if (stateBefore === 'down' && lineState === 'up') backListeners.get(trunkId)?.();
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

  /** Probes a gateway once at a time. Null: it failed for a reason other than the carrier. */
  function probeLine(row: DialedTrunk, trunk: WatchedTrunk, line: WatchedLine): Promise<ProbeOutcome | null> {
    line.probing ??= sendProbe(row, trunk, line).finally(() => {
      line.probing = null;
    });
    return line.probing;
  }

  async function sendProbe(row: DialedTrunk, trunk: WatchedTrunk, line: WatchedLine): Promise<ProbeOutcome | null> {
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
      const outcome = await probes.send(row, line.gateway, { only: null, signal });
      const { silence } = outcome;
      // A probe that failed because our own SIP server went away says nothing about the carrier.
      if (closing.signal.aborted || (silence !== null && sip.state !== 'connected')) return null;
      if (row.status === 'active' && row.healthMode !== 'none') {
        note(row.id, trunk, line, (health) =>
          silence === null ? health.answered('options') : health.missed('options', silence),
        );
      }
      await trunk.saving;
      line.keeping = probes.keep(row.id, outcome);
      return outcome;
    } catch (error) {
      logger.warn({ trunkId: row.id, err: error }, 'trunk probe failed');
      return null;
    }
  }

  /** Returns whether a gateway known to answer OPTIONS did not answer. Only waits for a probe in progress: false. */
  async function probe(row: DialedTrunk, trunk: WatchedTrunk, line: WatchedLine): Promise<boolean> {
    if (line.probing !== null) {
      await line.probing;
      return false;
    }
    const outcome = await probeLine(row, trunk, line);
    return outcome !== null && outcome.silence !== null && line.health.current.answersOptions === true;
  }

  /** Returns whether an address stopped answering OPTIONS, at a gateway that answered before. */
  async function isGone({ row, trunk, line, hop }: CheckedHop): Promise<boolean> {
    if (isOnlyAddress(line.gateway)) return await probe(row, trunk, line);
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    const outcome = await probes.send(row, line.gateway, { only: [hop], signal }).catch(() => null);
    const isSilent = outcome !== null && outcome.silence !== null;
    return isSilent && sip.state === 'connected' && line.health.current.answersOptions === true;
  }

  async function probeTrunk(row: DialedTrunk): Promise<void> {
    const trunk = watchedOf(row);
    trunk.probeDueMs = clock.monotonicMs() + row.healthIntervalS * 1000;
    await Promise.all(trunk.lines.map((line) => probe(row, trunk, line)));
  }

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

  async function probeLines(row: DialedTrunk): Promise<ProbeOutcome[]> {
    const trunk = watchedOf(row);
    const outcomes = await Promise.all(trunk.lines.map((line) => probeLine(row, trunk, line)));
    await Promise.all(trunk.lines.map(({ keeping }) => keeping));
    return outcomes.filter((outcome) => outcome !== null);
  }

  /** Probes after an unanswered call: OPTIONS show at once whether the carrier is away. */
  async function probeNow(trunkId: string): Promise<void> {
    const row = await getTrunkById(sql, trunkId);
    if (row === null || row.status !== 'active' || row.healthMode === 'none' || sip.state !== 'connected') return;
    await probeTrunk(row);
  }

  /** Returns a listener for what a request to a gateway reveals. */
  function listener({ id }: DialedTrunk, trunk: WatchedTrunk, line: WatchedLine, by: 'call' | 'register') {
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
    isDown({ id, healthMode, ...row }) {
      const known = watched.get(id);
      if (healthMode === 'none' || !known?.trunk.refusesCalls) return false;
      return isDeepStrictEqual(known.address, addressOf(row));
    },
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
    onGatewayBack(trunkId, listener, signal) {
      backListeners.set(trunkId, listener);
      signal.addEventListener('abort', () => backListeners.delete(trunkId), { once: true });
    },
    probeAll: () => probeRound({ isForced: true }),
    async probe(trunkId) {
      const row = await getTrunkById(sql, trunkId);
      if (row === null) throw new TandemError('TRUNK_NOT_FOUND', 'No trunk in this workspace has this id.');
      const outcomes = sip.state === 'connected' ? await probeLines(row) : [];
      if (outcomes.length === 0) {
        const message = 'The SIP server is not reachable at the moment. Try again in a few seconds.';
        throw new TandemError('CARRIER_LINE_DOWN', message, { retryAfterS: 10 });
      }
      return outcomes;
    },
    close: () => closing.abort(),
  };
}

function addressOf({ sipUri, transport, gateways }: GatewayAddresses): GatewayAddresses {
  return { sipUri, transport, gateways };
}

interface CheckedHop {
  row: DialedTrunk;
  trunk: WatchedTrunk;
  line: WatchedLine;
  hop: NextHop;
}

/** Whether the gateway is an IP address. A probe of it then covers all its addresses. */
function isOnlyAddress({ sipUri }: Gateway): boolean {
  return readTrunkUri(sipUri).address !== null;
}
