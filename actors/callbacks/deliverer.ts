import { createActor, fromPromise } from 'xstate';
import type { AttemptResult, PostDeliveryInput } from '../../machines/delivery.machine.ts';
import { deliveryMachine } from '../../machines/delivery.machine.ts';
import { type Clock, type Moment, momentOf, systemClock } from '../../runtime/clock.ts';
import { tick } from '../../runtime/waiting.ts';
import type { ClaimedDelivery, DeliveryAttempt, DeliveryRow } from '../../storage/queries/deliveries.ts';
import type { Resolve } from './dns-resolve.ts';
import { createOriginLanes } from './origin-lanes.ts';
import type { DelivererLogger, DeliveryJobs, DeliveryStore, SecretOpener } from './ports.ts';
import { postDelivery } from './post-delivery.ts';
import type { Cidr } from './public-address.ts';

export interface DelivererOptions {
  store: DeliveryStore;
  jobs: DeliveryJobs;
  secrets: SecretOpener;
  allowCidrs: readonly Cidr[];
  logger: DelivererLogger;
  clock?: Clock;
  /** Default: DNS. */
  resolve?: Resolve;
  /** Default `Math.random`. */
  random?: () => number;
  /** PEM certificates to trust instead of the system's. */
  ca?: string;
  /** Timeout of an attempt, name look-up included. Default 15 000. */
  timeoutMs?: number;
  /** Interval of searches for missed deliveries. Default 5 000. */
  sweepIntervalMs?: number;
  /** Concurrent attempts to one webhook, or of a workspace's callbacks to one origin. Default 4. */
  perLane?: number;
  /** Concurrent attempts in total. Default 256. */
  inAll?: number;
  /** Called after each attempt. Default: nothing. */
  onAttempt?: (attempt: Pick<DeliveryRow, 'kind'> & { outcome: DeliveryAttempt['outcome']['kind'] }) => void;
}

export interface Deliverer {
  /** Starts to take jobs and to sweep, beginning with deliveries of an earlier process. */
  start(): Promise<void>;
  /** Requests an attempt now. Call it after the row is committed. Never rejects: the sweeper finds lost jobs. */
  enqueue(deliveryId: string): Promise<void>;
  /** Attempts every due delivery without a lease. Resolves when each is done or waits for its receiver. */
  sweep(): Promise<void>;
  dump(): { running: number; waiting: number; lanes: number };
  /**
   * Stops taking deliveries. Attempts in progress get `drainMs` (default 2 000) before they are aborted and released
   * for the next process. Idempotent.
   */
  close(options?: { drainMs?: number }): Promise<void>;
}

/** Time that a lease outlives its attempt. After a kill -9 the delivery is delayed by this much. */
const LEASE_MARGIN_MS = 15_000;
const SWEEP_BATCH = 500;

/**
 * Delivers callbacks and webhooks at least once. A row says when a delivery is due. A job starts the attempt, or the
 * sweeper if the job was lost. A lease on the row gives the attempt to one node. One run of the delivery machine is one
 * attempt: it stores the next state, then requests the next job. A process killed at any point leaves a row that is
 * retried, with the same `webhook-id`.
 */
export function createDeliverer(options: DelivererOptions): Deliverer {
  const { store, jobs, logger, clock = systemClock, random = Math.random, timeoutMs = 15_000 } = options;
  const { sweepIntervalMs = 5_000, perLane = 4, inAll = 256 } = options;
  const lanes = createOriginLanes({ perLane, inAll, maxWaitingPerLane: 1_000 });
  const claimed = new Map<string, { row: ClaimedDelivery; abort: () => void }>();
  const post = {
    ...options,
    timeoutMs,
    random,
    now: () => clock.now(),
    userAgent: `Tandem-Webhooks/1 (node ${process.versions.node})`,
  };
  const machine = deliveryMachine.provide({
    actors: {
      postDelivery: fromPromise<AttemptResult, PostDeliveryInput>(async ({ input, signal }) => {
        const entry = claimed.get(input.deliveryId);
        if (!entry) throw new Error('The delivery is not claimed');
        try {
          return await postDelivery(entry.row, signal, post);
        } catch (error) {
          logger.error({ deliveryId: input.deliveryId, err: error }, 'delivery could not be attempted');
          throw error;
        }
      }),
    },
  });
  let worker: { close(): Promise<void> } | null = null;
  let stopSweeping = () => {};
  let looking: Promise<Promise<void>[]> | null = null;
  let closing: Promise<void> | null = null;
  let aborting = false;

  async function handle(deliveryId: string): Promise<void> {
    if (closing || lanes.has(deliveryId)) return;
    const row = await store.get(deliveryId);
    if (row === null || row.nextAttemptAt === null) return;
    // A first attempt that seems early was stored before the clock was set back.
    const earlyByMs = row.attempts === 0 ? 0 : row.nextAttemptAt.getTime() - clock.now();
    if (earlyByMs > 0) return await schedule(row.id, earlyByMs, row.attempts + 1);
    await drive(row);
  }

  /** A parked attempt ends its job, which frees the worker for other receivers. The row remains. */
  async function drive(row: DeliveryRow): Promise<void> {
    await lanes.run({ lane: laneOf(row), key: row.id, task: () => attempt(row.id) });
  }

  async function attempt(deliveryId: string): Promise<void> {
    try {
      const started = momentOf(clock);
      const leaseMs = timeoutMs + LEASE_MARGIN_MS;
      const row = await store.claim({ id: deliveryId, now: started.at, leaseMs });
      if (row === null) return;
      const outcome = aborting ? null : await runMachine(row, started);
      if (outcome === null) {
        if (row.leasedUntil) await store.release({ id: row.id, leasedUntil: row.leasedUntil });
        return;
      }
      const recorded = await store.record({ ...outcome, url: row.url });
      report(row, outcome, recorded?.delivery ?? null);
      if (recorded?.endpointDisabled) {
        const { workspaceId, subscriptionId: webhookId } = row;
        logger.warn({ workspaceId, webhookId, reason: recorded.endpointDisabled }, 'webhook disabled');
      } else if (recorded && outcome.outcome.kind === 'retry') {
        await schedule(row.id, outcome.outcome.nextAttemptAt.getTime() - clock.now(), recorded.delivery.attempts + 1);
      }
    } catch (error) {
      // The lease expires and the sweeper retries. A receiver that already has it sees the same webhook-id.
      logger.error({ deliveryId, err: error }, 'delivery attempt could not be recorded');
    }
  }

  /** Runs one attempt; null if `close` aborted it. */
  function runMachine(row: ClaimedDelivery, started: Moment): Promise<DeliveryAttempt | null> {
    const { promise, resolve, reject } = Promise.withResolvers<DeliveryAttempt | null>();
    const actor = createActor(machine, {
      input: {
        deliveryId: row.id,
        attempts: row.attempts,
        nextAttemptAtMs: row.nextAttemptAt?.getTime() ?? null,
        nowMs: started.at.getTime(),
        lastHttpStatus: row.lastHttpStatus,
        lastError: row.lastError,
      },
      clock: { setTimeout: clock.setTimeout, clearTimeout: clock.clearTimeout },
    });
    claimed.set(row.id, { row, abort: () => resolve(null) });
    actor.subscribe({
      next: (snapshot) => {
        if (snapshot.matches('pending') || snapshot.matches('attempting')) return;
        const { lastHttpStatus, lastError, nextAttemptAtMs } = snapshot.context;
        resolve({
          deliveryId: row.id,
          httpStatus: lastHttpStatus,
          error: lastError,
          startedAt: started.at,
          durationMs: Math.round(clock.monotonicMs() - started.monotonicMs),
          outcome: snapshot.matches('delivered')
            ? { kind: 'delivered' }
            : snapshot.matches('waiting') && nextAttemptAtMs !== null
              ? { kind: 'retry', nextAttemptAt: new Date(nextAttemptAtMs) }
              : { kind: snapshot.matches('disabled') ? 'gone' : 'failed' },
        });
      },
      error: reject,
    });
    actor.start();
    actor.send({ type: 'delivery.due' });
    return promise.finally(() => {
      claimed.delete(row.id);
      // Stopping aborts the request in progress and any waiting timer.
      actor.stop();
    });
  }

  async function schedule(deliveryId: string, delayMs: number, attemptNumber: number): Promise<void> {
    try {
      await jobs.add(deliveryId, { delayMs: Math.max(0, delayMs), attempt: attemptNumber });
    } catch (error) {
      logger.warn({ deliveryId, err: error }, 'delivery job could not be queued');
    }
  }

  function report(row: DeliveryRow, outcome: DeliveryAttempt, recorded: DeliveryRow | null): void {
    options.onAttempt?.({ kind: row.kind, outcome: outcome.outcome.kind });
    const fields = {
      deliveryId: row.id,
      kind: row.kind,
      callId: row.callId,
      webhookId: row.subscriptionId,
      event: row.event,
      origin: originOf(row.url),
      attempt: recorded?.attempts ?? row.attempts + 1,
      httpStatus: outcome.httpStatus,
      // The logger expects an error with a stack under `error`.
      failure: outcome.error,
      durationMs: outcome.durationMs,
      nextAttemptAt: outcome.outcome.kind === 'retry' ? outcome.outcome.nextAttemptAt : null,
    };
    if (outcome.outcome.kind === 'delivered') logger.info(fields, 'delivered');
    else if (outcome.outcome.kind === 'retry') logger.warn(fields, 'delivery attempt failed');
    else logger.error(fields, 'delivery given up');
  }

  /**
   * Starts due deliveries and returns their promises. Concurrent calls share one search, because they would see the
   * same rows.
   */
  function look(): Promise<Promise<void>[]> {
    looking ??= findDue()
      .catch((error: unknown) => {
        logger.error({ err: error }, 'delivery sweep failed');
        return [];
      })
      .finally(() => {
        looking = null;
      });
    return looking;
  }

  async function findDue(): Promise<Promise<void>[]> {
    if (closing) return [];
    const { running, waiting } = lanes.counts();
    // Deliveries waiting here are due too. Without room for them they would hide missed ones.
    const limit = SWEEP_BATCH + running + waiting;
    const rows = await store.due({ now: new Date(clock.now()), limit });
    return rows.filter((row) => !lanes.has(row.id)).map((row) => drive(row));
  }

  async function shutDown(drainMs: number): Promise<void> {
    stopSweeping();
    lanes.close();
    const workerClosed = worker?.close();
    const abort = clock.setTimeout(() => {
      aborting = true;
      for (const entry of claimed.values()) entry.abort();
    }, drainMs);
    await lanes.idle();
    clock.clearTimeout(abort);
    await workerClosed;
    await looking;
  }

  return {
    async start() {
      worker = await jobs.work(handle, { concurrency: inAll });
      stopSweeping = tick(() => void look(), { everyMs: sweepIntervalMs, clock });
    },
    enqueue: (deliveryId) => schedule(deliveryId, 0, 1),
    async sweep() {
      await Promise.all(await look());
    },
    dump: () => lanes.counts(),
    close({ drainMs = 2_000 } = {}) {
      closing ??= shutDown(drainMs);
      return closing;
    },
  };
}

/**
 * Returns the webhook's own lane, so that it delays no other webhook of the same host. Callbacks of a workspace share a
 * lane per origin; those of other workspaces may go to another customer of the same service.
 */
function laneOf({ subscriptionId, workspaceId, url }: DeliveryRow): string {
  return subscriptionId ?? `${workspaceId} ${originOf(url)}`;
}

function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'invalid';
}
