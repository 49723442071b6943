import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { Gate, GateFullError } from '../runtime/gate.ts';
import { raceAbort } from '../runtime/waiting.ts';

/**
 * Queue of placements before admission. The database admits one call of a workspace at a time. Rejecting late
 * placements here happens before anything is stored or any phone rings.
 */
export interface PlacementQueue {
  /**
   * Runs an admission in turn. If it does not claim the placement within five seconds, the placement is rejected. The
   * admission may still wait for the database, but stores nothing.
   * @throws TandemError PLACEMENTS_OVERLOADED; errors of `admit`
   */
  run<T>(workspaceId: string, admit: (turn: PlacementTurn) => Promise<T>): Promise<T>;
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
  inAll: 8,
  /** One decides while the next one is on its way to the database. */
  perLane: 2,
  /** Admits a burst of a hundred placements; rejects further ones at once. */
  waitingPerLane: 100,
  waiting: 400,
};
/**
 * Total wait here, for a connection and for locks of other nodes' admissions, in case the database is slow. It leaves
 * time to store the placement before it times out.
 */
const LONGEST_WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

export function createPlacementQueue({ clock }: { clock: Clock }): PlacementQueue {
  const gate = new Gate(LIMITS);
  return {
    async run(workspaceId, admit) {
      const refusal = new AbortController();
      const { signal: refused } = refusal;
      const timer = clock.setTimeout(() => refusal.abort(overloaded()), LONGEST_WAIT_MS);
      const turn: PlacementTurn = {
        refused,
        claim() {
          refused.throwIfAborted();
          clock.clearTimeout(timer);
        },
      };
      try {
        return await raceAbort(
          gate.run(() => admit(turn), { lane: workspaceId, signal: refused }),
          refused,
        );
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
