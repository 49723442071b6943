import type { DeliveryJobs, DeliveryStore } from '../../actors/callbacks/ports.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { DeliveryAttempt, DeliveryRow } from '../../storage/queries/deliveries.ts';

/** Implements `storage/queries/deliveries.ts` over a Map. */
export interface MemoryStore extends DeliveryStore {
  rows: Map<string, DeliveryRow>;
  attempts: DeliveryAttempt[];
  secrets: Map<string, Buffer[]>;
  insert(row: Pick<DeliveryRow, 'id' | 'url' | 'body' | 'nextAttemptAt'> & Partial<DeliveryRow>): DeliveryRow;
  /** Resolves when `isTrue` holds for the row after a change. */
  until(id: string, isTrue: (row: DeliveryRow) => boolean): Promise<DeliveryRow>;
}

export function createMemoryStore(): MemoryStore {
  const rows = new Map<string, DeliveryRow>();
  const attempts: DeliveryAttempt[] = [];
  const secrets = new Map<string, Buffer[]>();
  const watchers = new Set<() => void>();
  const isFree = (row: DeliveryRow, now: Date) =>
    row.status === 'pending' && (row.leasedUntil === null || row.leasedUntil <= now);
  const isDue = (row: DeliveryRow, now: Date) => row.nextAttemptAt !== null && row.nextAttemptAt <= now;
  function update(id: string, changes: Partial<DeliveryRow>): DeliveryRow {
    const row = { ...(rows.get(id) as DeliveryRow), ...changes };
    rows.set(id, row);
    for (const watcher of [...watchers]) watcher();
    return row;
  }
  return {
    rows,
    attempts,
    secrets,
    insert(given) {
      const row: DeliveryRow = {
        workspaceId: 'w1',
        kind: 'callback',
        subscriptionId: null,
        replayOf: null,
        callId: 'c1',
        eventSequence: 4,
        event: 'call.completed',
        eventId: `event-of-${given.id}`,
        secretEncrypted: Buffer.from('sealed'),
        status: 'pending',
        attempts: 0,
        lastHttpStatus: null,
        lastError: null,
        leasedUntil: null,
        createdAt: new Date(0),
        deliveredAt: null,
        ...given,
      };
      rows.set(row.id, row);
      return row;
    },
    async get(id) {
      return rows.get(id) ?? null;
    },
    async due({ now, limit }) {
      const due = [...rows.values()].filter((row) => isFree(row, now) && isDue(row, now));
      return due.sort((a, b) => Number(a.nextAttemptAt) - Number(b.nextAttemptAt)).slice(0, limit);
    },
    async claim({ id, now, leaseMs }) {
      const row = rows.get(id);
      if (!row || !isFree(row, now)) return null;
      // A first attempt is always due.
      if (row.attempts > 0 && !isDue(row, now)) return null;
      return { ...update(id, { leasedUntil: new Date(now.getTime() + leaseMs) }), claimedAt: now };
    },
    async record(attempt) {
      const row = rows.get(attempt.deliveryId);
      if (row?.status !== 'pending') return null;
      attempts.push(attempt);
      const { outcome } = attempt;
      const delivery = update(row.id, {
        attempts: row.attempts + 1,
        lastHttpStatus: attempt.httpStatus,
        lastError: attempt.error,
        status: outcome.kind === 'retry' ? 'pending' : outcome.kind === 'gone' ? 'failed' : outcome.kind,
        nextAttemptAt: outcome.kind === 'retry' ? outcome.nextAttemptAt : null,
        leasedUntil: null,
      });
      return { delivery, endpointDisabled: null };
    },
    async webhookSecrets({ webhookId }) {
      return secrets.get(webhookId) ?? [];
    },
    async release({ id, leasedUntil }) {
      if (rows.get(id)?.leasedUntil?.getTime() === leasedUntil.getTime()) update(id, { leasedUntil: null });
    },
    until(id, isTrue) {
      return new Promise((resolve) => {
        const watcher = () => {
          const row = rows.get(id);
          if (!row || !isTrue(row)) return;
          watchers.delete(watcher);
          resolve(row);
        };
        watchers.add(watcher);
        watcher();
      });
    },
  };
}

/** A queue on a manual clock. `forgetful` loses every job, like a crashed queue. */
export interface MemoryJobs extends DeliveryJobs {
  added: { deliveryId: string; delayMs: number; attempt: number }[];
  forgetful: boolean;
  /** Resolves when no handler runs. */
  settled(): Promise<void>;
}

export function createMemoryJobs(clock: Clock): MemoryJobs {
  let handler: ((deliveryId: string) => Promise<void>) | null = null;
  const running = new Set<Promise<void>>();
  const jobs: MemoryJobs = {
    added: [],
    forgetful: false,
    async add(deliveryId, { delayMs, attempt }) {
      jobs.added.push({ deliveryId, delayMs, attempt });
      if (jobs.forgetful) return;
      const run = () => {
        const work = handler?.(deliveryId).finally(() => running.delete(work as Promise<void>));
        if (work) running.add(work);
      };
      if (delayMs === 0) queueMicrotask(run);
      else clock.setTimeout(run, delayMs);
    },
    async work(given) {
      handler = given;
      return {
        async close() {
          handler = null;
          await jobs.settled();
        },
      };
    },
    async settled() {
      await Promise.resolve();
      while (running.size > 0) await Promise.all(running);
    },
  };
  return jobs;
}
