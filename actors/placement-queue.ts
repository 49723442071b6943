import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { Gate, GateFullError } from '../runtime/gate.ts';
import { raceAbort } from '../runtime/waiting.ts';

/**
 * Queue of placements before admission. The database admits calls of a workspace one after the other, so those that wait
 * meanwhile are admitted together: that takes much less time than one by one. Rejecting late placements here happens
 * before anything is stored or any phone rings.
 */
export interface PlacementQueue<Request, Result> {
  /**
   * Admits a placement in turn. If its admission does not claim it within five seconds, it is rejected. The admission
   * may still wait for the database, but stores nothing.
   * @throws TandemError PLACEMENTS_OVERLOADED; the reason that `admit` returns; errors of `admit`
   */
  run(workspaceId: string, request: Request): Promise<Result>;
}

export interface PlacementQueueOptions<Request, Result> {
  clock: Clock;
  /** Admits placements of one workspace. Returns an outcome for each, in the same order. */
  admit(placements: readonly Placement<Request>[]): Promise<readonly PromiseSettledResult<Result>[]>;
  /** Whether a placement may be admitted together with others. */
  mayJoin(others: readonly Request[], next: Request): boolean;
}

export interface Placement<Request> {
  request: Request;
  turn: PlacementTurn;
}

export interface PlacementTurn {
  /** Aborts when the placement is rejected. */
  readonly refused: AbortSignal;
  /**
   * Call it before storing anything. Afterwards the placement cannot be rejected. @throws TandemError
   * PLACEMENTS_OVERLOADED
   */
  claim(): void;
}

const LIMITS = {
  /** Fewer than the pool's connections, so that other requests get some. */
  inAll: 6,
  perLane: 1,
  /** Admits a burst of a hundred placements; rejects further ones at once. */
  waitingPerLane: 100,
  waiting: 400,
};
/** A larger number saves little more, and a placement waits for all others that are admitted with it. */
const MOST_TOGETHER = 16;
/**
 * Total wait here, for a connection and for locks of other nodes' admissions, in case the database is slow. It leaves
 * time to store the placement before it times out.
 */
const LONGEST_WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

interface Waiter<Request, Result> extends Placement<Request> {
  outcome: PromiseWithResolvers<PromiseSettledResult<Result>>;
  /** Aborts when the wait at the gate is over: rejected, or admitted with another placement. */
  leaving: AbortController;
}

export function createPlacementQueue<Request, Result>({
  clock,
  admit,
  mayJoin,
}: PlacementQueueOptions<Request, Result>): PlacementQueue<Request, Result> {
  const gate = new Gate(LIMITS);
  /** By workspace, in order; never empty. */
  const lines = new Map<string, Set<Waiter<Request, Result>>>();

  function leave(workspaceId: string, waiter: Waiter<Request, Result>): void {
    const line = lines.get(workspaceId);
    line?.delete(waiter);
    if (line?.size === 0) lines.delete(workspaceId);
  }

  /** Takes the first waiter and those behind it that may join. The others keep their places. */
  function takeTogether(workspaceId: string, first: Waiter<Request, Result>): Waiter<Request, Result>[] {
    leave(workspaceId, first);
    const taken = [first];
    for (const next of lines.get(workspaceId) ?? []) {
      const others = taken.map(({ request }) => request);
      if (taken.length >= MOST_TOGETHER) break;
      if (!mayJoin(others, next.request)) continue;
      taken.push(next);
      leave(workspaceId, next);
      next.leaving.abort();
    }
    return taken;
  }

  async function admitTogether(waiters: readonly Waiter<Request, Result>[]): Promise<void> {
    const outcomes = await admit(waiters).catch((reason) =>
      waiters.map(() => ({ status: 'rejected' as const, reason })),
    );
    for (const [index, { outcome }] of waiters.entries()) outcome.resolve(outcomes[index]!);
  }

  async function outcomeOf(workspaceId: string, waiter: Waiter<Request, Result>): Promise<Result> {
    lines.set(workspaceId, (lines.get(workspaceId) ?? new Set()).add(waiter));
    try {
      const admitAll = () => admitTogether(takeTogether(workspaceId, waiter));
      await gate.run(admitAll, { lane: workspaceId, signal: waiter.leaving.signal });
    } catch (error) {
      // Not in the line any more: another placement has taken it along.
      if (lines.get(workspaceId)?.has(waiter)) {
        leave(workspaceId, waiter);
        throw error;
      }
    }
    const outcome = await waiter.outcome.promise;
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  }

  return {
    async run(workspaceId, request) {
      const refusal = new AbortController();
      const { signal: refused } = refusal;
      const leaving = new AbortController();
      const timer = clock.setTimeout(() => {
        refusal.abort(overloaded());
        leaving.abort(refused.reason);
      }, LONGEST_WAIT_MS);
      const turn: PlacementTurn = {
        refused,
        claim() {
          refused.throwIfAborted();
          clock.clearTimeout(timer);
        },
      };
      const waiter = { request, turn, leaving, outcome: Promise.withResolvers<PromiseSettledResult<Result>>() };
      try {
        return await raceAbort(outcomeOf(workspaceId, waiter), refused);
      } catch (error) {
        throw error instanceof GateFullError ? overloaded() : error;
      } finally {
        clock.clearTimeout(timer);
      }
    },
  };
}

function overloaded(): TandemError {
  const message = 'The server gets more placements than it can admit. Nothing was placed. Try again.';
  return new TandemError('PLACEMENTS_OVERLOADED', message, { retryAfterS: RETRY_AFTER_S });
}
