import { TandemError } from '../machines/errors.ts';
import { BackOff } from '../runtime/back-off.ts';
import type { Clock } from '../runtime/clock.ts';
import { pause, within } from '../runtime/waiting.ts';
import type { RegisterOutcome, SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { gatewaysOf } from '../storage/queries/trunk-gateways.ts';
import {
  leaseRegistrations,
  type RegistrationStatus,
  recordRegistration,
  releaseRegistration,
} from '../storage/queries/trunk-registrations.ts';
import type { TrunkRow } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { Logger } from './logger.ts';
import { startSweeper } from './sweeper.ts';
import { trunkEndpoint } from './trunk-dialing.ts';
import type { TrunkTargets } from './trunk-targets.ts';
import type { TrunkWatch } from './trunk-watch.ts';

/**
 * Keeps trunks with `register` registered at their carriers (RFC 3261 §10). It refreshes before the expiry and backs
 * off after failures. It unregisters when the trunk is disabled, deleted or changed, and at shutdown. A lease ensures
 * that only one server registers a trunk.
 */
export interface TrunkRegistrar {
  sync(): Promise<void>;
  /** Unregisters everything, within two seconds. */
  close(): Promise<void>;
}

export interface TrunkRegistrarOptions {
  sip: SipGateway;
  sql: Sql;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  /** Receives what REGISTERs reveal about the trunks' health, and reports gateways that respond again. */
  trunks: Pick<TrunkWatch, 'registering' | 'onGatewayBack'>;
  boot: string;
  clock: Clock;
  logger: Logger;
}

/** Longest delay until a changed trunk takes effect. */
const SYNC_INTERVAL_MS = 5_000;
const EXPIRES_S = 600;
const RETRY = { firstMs: 5_000, longestMs: 300_000 };
/** Registrars lock accounts that keep sending a rejected password. */
const RETRY_REFUSED = { firstMs: 60_000, longestMs: 1_800_000 };
/** Some carriers close every connection after a few minutes. Only those that close it soon are asked less often. */
const STABLE_MS = 60_000;
const OFFLINE_RETRY_MS = 1_000;
const UNREGISTER_TIMEOUT_MS = 2_000;
const NOT_YET: RegistrationStatus = { state: 'registering', registeredAt: null, expiresAt: null, lastError: null };

interface Keeper {
  settings: string;
  leave: AbortController;
  left: Promise<void>;
}

export function registerTrunks(options: TrunkRegistrarOptions): TrunkRegistrar {
  const { sip, sql, boot, clock, logger } = options;
  const keepers = new Map<string, Keeper>();
  const closing = new AbortController();
  let syncing: Promise<void> = Promise.resolve();

  async function store(trunkId: string, status: RegistrationStatus): Promise<void> {
    await recordRegistration(sql, { trunkId, server: boot, status }).catch((error) =>
      logger.warn({ trunkId, err: error }, 'state of a registration could not be stored'),
    );
  }

  /** Registers one trunk and refreshes it until `leave` aborts. */
  async function keep(row: TrunkRow, leave: AbortSignal): Promise<void> {
    const registrars = gatewaysOf(row)
      .sort((one, other) => one.priority - other.priority)
      .map((gateway) => {
        const trunk = { ...row, ...gateway };
        const registration = sip.openRegistration(trunkEndpoint(trunk, options.secrets, null), () => lost.abort());
        return { trunk, registration, onSign: options.trunks.registering(row, gateway) };
      });
    const retry = new BackOff(RETRY);
    const retryRefused = new BackOff(RETRY_REFUSED);
    const retryLost = new BackOff(RETRY);
    /** Aborted when the carrier may not reach us until the next REGISTER: its connection was closed, or it restarted. */
    let lost = new AbortController();
    let isAttempting = false;
    let isRefused = false;
    let status = NOT_YET;
    let isRegistered = false;
    /** Gateway that has the registration, or may have it. */
    let current = registrars[0]!;

    async function become(next: RegistrationStatus): Promise<void> {
      status = next;
      await store(row.id, next);
    }

    async function attemptAt(
      { trunk, registration }: (typeof registrars)[number],
      { expiresS, signal }: { expiresS: number; signal: AbortSignal },
    ): Promise<RegisterOutcome> {
      let outcome: RegisterOutcome = { type: 'unanswered', reason: 'transport_error' };
      for (const nextHop of await options.trunkTargets.locate(trunk, signal)) {
        outcome = await registration.register({ expiresS, nextHop, signal });
        if (outcome.type !== 'unanswered' || signal.aborted) break;
      }
      return outcome;
    }

    /** Tries the gateways in order until one responds and is not overloaded. */
    async function attempt(signal: AbortSignal): Promise<RegisterOutcome> {
      for (let index = 0; ; index++) {
        const registrar = registrars[index]!;
        // Without a response, an existing registration stays where it is.
        if (!isRegistered) current = registrar;
        const isLast = index + 1 === registrars.length;
        const outcome = await attemptAt(registrar, { expiresS: EXPIRES_S, signal }).catch((error) => {
          if (isLast || signal.aborted) throw error;
          return { type: 'unanswered', reason: 'transport_error' } as const;
        });
        if (signal.aborted || sip.state !== 'connected') return outcome;
        if (outcome.type === 'registered') current = registrar;
        registrar.onSign(outcome.type === 'unanswered' ? outcome : { type: 'answered' });
        const isPassedOn = outcome.type === 'unanswered' || (outcome.type === 'refused' && outcome.sipStatus === 503);
        if (isLast || !isPassedOn) return outcome;
      }
    }

    async function refresh(): Promise<number> {
      isAttempting = true;
      isRefused = false;
      const outcome = await attempt(leave).finally(() => {
        isAttempting = false;
      });
      isRefused = outcome.type === 'refused';
      if (leave.aborted) {
        // The REGISTER may be on its way.
        isRegistered = true;
        return 0;
      }
      if (sip.state !== 'connected' && outcome.type === 'unanswered') return OFFLINE_RETRY_MS;
      const now = clock.now();
      if (outcome.type === 'registered') {
        retry.reset();
        retryRefused.reset();
        if (!isRegistered) logger.info({ trunkId: row.id }, 'trunk registered');
        isRegistered = true;
        const registeredAt = status.state === 'registered' ? status.registeredAt : new Date(now);
        const expiresAt = new Date(now + outcome.expiresS * 1000);
        await become({ state: 'registered', registeredAt, expiresAt, lastError: null });
        return refreshAfterMs(outcome.expiresS);
      }
      const lastError = errorOf(outcome);
      if (status.lastError !== lastError) logger.warn({ trunkId: row.id, reason: lastError }, 'trunk not registered');
      // If a refresh fails, the carrier keeps the old registration until it expires.
      const isStill = status.expiresAt !== null && status.expiresAt.getTime() > now;
      await become({ ...status, ...(!isStill && FAILED), lastError });
      if (outcome.type === 'unanswered') return retry.next();
      const isFinal = outcome.sipStatus === 401 || outcome.sipStatus === 403 || outcome.sipStatus === 407;
      return Math.max((outcome.retryAfterS ?? 0) * 1000, (isFinal ? retryRefused : retry).next());
    }

    /** Waits for the next REGISTER: until then, or a shorter time if the registration is lost meanwhile. */
    async function rest(waitMs: number): Promise<void> {
      const startedAtMs = clock.monotonicMs();
      await pause(waitMs, { clock, signal: isRefused ? leave : AbortSignal.any([leave, lost.signal]) }).catch(() => {});
      const isLost = !isRefused && lost.signal.aborted;
      if (!isLost || clock.monotonicMs() - startedAtMs >= STABLE_MS) retryLost.reset();
      if (isLost) await pause(Math.min(waitMs, retryLost.next()), { clock, signal: leave });
    }

    const onBack = () => {
      // A response to a REGISTER shows it too.
      if (!isAttempting) lost.abort();
    };
    options.trunks.onGatewayBack(row.id, onBack, leave);
    while (!leave.aborted) {
      lost = new AbortController();
      const waitMs =
        sip.state === 'connected'
          ? await refresh().catch(async (error) => {
              if (leave.aborted) return 0;
              const isRefused = error instanceof TandemError && error.code === 'TRUNK_HOST_NOT_ALLOWED';
              if (!isRefused) logger.warn({ trunkId: row.id, err: error }, 'trunk could not be registered');
              const lastError = isRefused ? 'host_not_allowed' : 'internal_error';
              await become({ ...status, ...FAILED, lastError });
              return retry.next();
            })
          : OFFLINE_RETRY_MS;
      await rest(waitMs).catch(() => {});
    }
    if (isRegistered && sip.state === 'connected') {
      const late = new AbortController();
      const work = attemptAt(current, { expiresS: 0, signal: late.signal }).catch(() => {});
      await within(work, { ms: UNREGISTER_TIMEOUT_MS });
      late.abort();
    }
    await releaseRegistration(sql, { trunkId: row.id, server: boot }).catch(() => {});
  }

  async function leaveTrunk(trunkId: string, keeper: Keeper): Promise<void> {
    keeper.leave.abort();
    await keeper.left;
    if (keepers.get(trunkId) === keeper) keepers.delete(trunkId);
  }

  function startKeeper(row: TrunkRow): void {
    const leave = new AbortController();
    const warn = (error: unknown) => logger.warn({ trunkId: row.id, err: error }, 'trunk could not be registered');
    const left = keep(row, leave.signal).catch(async (error) => {
      warn(error);
      await store(row.id, { ...NOT_YET, state: 'failed', lastError: 'internal_error' });
    });
    keepers.set(row.id, { settings: settingsOf(row), leave, left });
  }

  async function syncNow(): Promise<void> {
    if (closing.signal.aborted) return;
    const rows = new Map((await leaseRegistrations(sql, boot)).map((row) => [row.id, row]));
    const isCurrent = ([id, { settings }]: [string, Keeper]) => {
      const row = rows.get(id);
      return row !== undefined && settingsOf(row) === settings;
    };
    const leaving = [...keepers].filter((entry) => !isCurrent(entry));
    await Promise.all(leaving.map(([id, keeper]) => leaveTrunk(id, keeper)));
    // Leaving gave up the lease of changed trunks: lease them again with the new settings.
    const isChanged = leaving.some(([id]) => rows.has(id));
    const toKeep = isChanged ? await leaseRegistrations(sql, boot) : [...rows.values()];
    if (closing.signal.aborted) return;
    for (const row of toKeep) if (!keepers.has(row.id)) startKeeper(row);
  }

  function sync(): Promise<void> {
    syncing = syncing.catch(() => {}).then(syncNow);
    return syncing;
  }

  const failure = 'trunks to register could not be read';
  const sweeper = startSweeper({ sweep: sync, failure, everyMs: SYNC_INTERVAL_MS, clock, logger });
  return {
    sync,
    async close() {
      closing.abort();
      sweeper.close();
      await syncing.catch(() => {});
      await Promise.all([...keepers].map(([id, keeper]) => leaveTrunk(id, keeper)));
    },
  };
}

const FAILED = { state: 'failed', registeredAt: null, expiresAt: null } as const;

/** Leaves time for a few retries. A registrar may grant a very short expiry. */
function refreshAfterMs(expiresS: number): number {
  return Math.max(5_000, expiresS * 800);
}

function errorOf(outcome: Exclude<RegisterOutcome, { type: 'registered' }>): string {
  return outcome.type === 'unanswered' ? outcome.reason : `${outcome.sipStatus} ${outcome.reason}`.trim();
}

/** Settings that a registration depends on; if they change, it is removed. */
function settingsOf(row: TrunkRow): string {
  const { username, passwordEncrypted } = row;
  const addresses = gatewaysOf(row).map(({ sipUri, transport, priority }) => [sipUri, transport, priority]);
  return JSON.stringify([addresses, username, passwordEncrypted?.toString('base64') ?? null]);
}
