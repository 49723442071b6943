import { inTransaction, type SqlOrTx } from '../database.ts';
import { boundedLeaseEnd, notLater } from './due-times.ts';
import { isUuid } from './identifiers.ts';

export type DeliveryStatus = 'pending' | 'delivered' | 'failed';

export interface DeliveryRow {
  id: string;
  workspaceId: string;
  /** `callback`: of a call, to its `callback_url`. `webhook`: of an event, to a webhook. */
  kind: 'callback' | 'webhook';
  /** Null for a callback. */
  subscriptionId: string | null;
  /** Delivery whose bytes are sent again. */
  replayOf: string | null;
  callId: string | null;
  /** Event of a callback in the call's log. */
  eventSequence: number | null;
  event: string;
  /** Stable over retries. */
  eventId: string;
  url: string;
  /** Exact bytes to sign and send. */
  body: string;
  /** Secret of a callback. Webhooks use their secrets at the time of the attempt. */
  secretEncrypted: Buffer | null;
  status: DeliveryStatus;
  attempts: number;
  lastHttpStatus: number | null;
  lastError: string | null;
  /** Null once the outcome is final. */
  nextAttemptAt: Date | null;
  leasedUntil: Date | null;
  createdAt: Date;
  deliveredAt: Date | null;
}

export interface ClaimedDelivery extends DeliveryRow {
  /** By the database's clock. Receivers refuse signatures whose time is wrong. */
  claimedAt: Date;
}

/** A delivery to create; its first attempt is due at `nextAttemptAt`. */
export interface DeliveryInput {
  id: string;
  url: string;
  body: string;
  /** Null if and only if it is for a webhook. */
  secretEncrypted: Buffer | null;
  nextAttemptAt: Date;
}

export interface DeliverySubject {
  workspaceId: string;
  callId: string | null;
  eventSequence: number | null;
  event: string;
  eventId: string;
  /** Absent for a callback. */
  subscriptionId?: string;
  replayOf?: string;
}

export async function insertDelivery(
  sql: SqlOrTx,
  subject: DeliverySubject,
  input: DeliveryInput & { createdAt: Date },
): Promise<DeliveryRow> {
  const { workspaceId, callId, eventSequence, event, eventId, subscriptionId = null, replayOf = null } = subject;
  const { id, url, body, secretEncrypted, nextAttemptAt, createdAt } = input;
  const kind = subscriptionId === null ? 'callback' : 'webhook';
  const [inserted] = await sql<DeliveryRow[]>`
    insert into deliveries (id, workspace_id, kind, subscription_id, replay_of, call_id, event_sequence, event, event_id,
      url, body, secret_encrypted, next_attempt_at, created_at)
    values (${id}, ${workspaceId}, ${kind}, ${subscriptionId}, ${replayOf}, ${callId}, ${eventSequence}, ${event},
      ${eventId}, ${url}, ${body}, ${secretEncrypted}, ${notLater(sql, nextAttemptAt)}, ${createdAt})
    returning *`;
  return inserted!;
}

export async function getDelivery(sql: SqlOrTx, id: string): Promise<DeliveryRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<DeliveryRow[]>`select * from deliveries where id = ${id}`;
  return row ?? null;
}

/**
 * Returns due deliveries without a lease. Takes turns over the receivers of each workspace, so that no backlog hides
 * others; longest overdue first for each.
 */
export async function dueDeliveries(
  sql: SqlOrTx,
  { now, limit }: { now: Date; limit: number },
): Promise<DeliveryRow[]> {
  const at = notLater(sql, now);
  return await sql<DeliveryRow[]>`
    select d.* from deliveries d
    join (
      select id, row_number() over (partition by workspace_id, coalesce(subscription_id::text, substring(url from '^[^/]*//[^/?#]*')) order by next_attempt_at) as turn
      from deliveries
      where status = 'pending' and next_attempt_at <= ${at} and (leased_until is null or leased_until <= ${at})
    ) due on due.id = d.id
    order by due.turn, d.next_attempt_at limit ${limit}`;
}

/**
 * Leases a delivery for one attempt, until `now + leaseMs`. Null if it is final, not due or already leased. If the node
 * dies, the lease expires. A first attempt is always due.
 */
export async function claimDelivery(
  sql: SqlOrTx,
  { id, now, leaseMs }: { id: string; now: Date; leaseMs: number },
): Promise<ClaimedDelivery | null> {
  const at = notLater(sql, now);
  const [row] = await sql<ClaimedDelivery[]>`
    update deliveries set leased_until = ${boundedLeaseEnd(sql, { now, leaseMs })}
    where id = ${id} and status = 'pending' and (next_attempt_at <= ${at} or attempts = 0)
      and (leased_until is null or leased_until <= ${at})
    returning *, statement_timestamp() as claimed_at`;
  return row ?? null;
}

/** Releases a leased delivery without an attempt. No effect if the lease has changed. */
export async function releaseDelivery(
  sql: SqlOrTx,
  { id, leasedUntil }: { id: string; leasedUntil: Date },
): Promise<void> {
  await sql`
    update deliveries set leased_until = null
    where id = ${id} and status = 'pending' and leased_until = ${leasedUntil}`;
}

export interface DeliveryAttempt {
  deliveryId: string;
  /** Null without a response; then `error` has the reason. */
  httpStatus: number | null;
  error: string | null;
  startedAt: Date;
  durationMs: number;
  /** `gone`: failed because the receiver wants nothing more. */
  outcome: { kind: 'delivered' } | { kind: 'failed' } | { kind: 'gone' } | { kind: 'retry'; nextAttemptAt: Date };
}

/** Stores an attempt and its consequences. Null if the delivery is already final, because its lease had expired. */
export async function recordAttempt(sql: SqlOrTx, attempt: DeliveryAttempt): Promise<DeliveryRow | null> {
  return await inTransaction(sql, async (tx) => {
    const { outcome } = attempt;
    const endedAt = new Date(attempt.startedAt.getTime() + attempt.durationMs);
    const [row] = await tx<DeliveryRow[]>`
      update deliveries set
        attempts = attempts + 1,
        last_http_status = ${attempt.httpStatus},
        last_error = ${attempt.error},
        status = ${statusAfter(outcome)},
        next_attempt_at = ${
          outcome.kind === 'retry'
            ? notLater(tx, outcome.nextAttemptAt, outcome.nextAttemptAt.getTime() - endedAt.getTime())
            : null
        },
        delivered_at = ${outcome.kind === 'delivered' ? endedAt : null},
        leased_until = null
      where id = ${attempt.deliveryId} and status = 'pending' returning *`;
    if (!row) return null;
    const log = {
      deliveryId: attempt.deliveryId,
      attempt: row.attempts,
      httpStatus: attempt.httpStatus,
      error: attempt.error,
      startedAt: attempt.startedAt,
      durationMs: attempt.durationMs,
    };
    await tx`insert into delivery_attempts ${tx(log)}`;
    return row;
  });
}

function statusAfter({ kind }: DeliveryAttempt['outcome']): DeliveryStatus {
  if (kind === 'retry') return 'pending';
  return kind === 'gone' ? 'failed' : kind;
}

export interface DeliveryAttemptRow {
  deliveryId: string;
  attempt: number;
  httpStatus: number | null;
  error: string | null;
  startedAt: Date;
  durationMs: number;
}

/** Lists the attempts of deliveries, those of each in order. */
export async function listAttempts(sql: SqlOrTx, deliveryIds: readonly string[]): Promise<DeliveryAttemptRow[]> {
  return await sql<DeliveryAttemptRow[]>`
    select * from delivery_attempts where delivery_id = any(${[...deliveryIds]}) order by delivery_id, attempt`;
}

export async function deliveriesOfCall(sql: SqlOrTx, callId: string): Promise<DeliveryRow[]> {
  return await sql<DeliveryRow[]>`
    select * from deliveries where call_id = ${callId} order by event_sequence, created_at`;
}
