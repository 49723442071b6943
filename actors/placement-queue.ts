import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { Gate, GateFullError } from '../runtime/gate.ts';
import { LATE, within } from '../runtime/waiting.ts';

/**
 * Where placements wait to be admitted. The admissions of a workspace exclude one another in the database, so what cannot
 * be admitted soon is refused here, before anything is stored and any phone rings.
 */
export interface PlacementQueue {
  /**
   * Runs an admission when its turn comes.
   * @throws TandemError PLACEMENTS_OVERLOADED; what `admit` throws
   */
  run<T>(workspaceId: string, admit: () => Promise<T>): Promise<T>;
}

const LIMITS = {
  /** Below the connections of the pool, so that other requests get some. */
  inAll: 8,
  /** One decides while the next one is on its way to the database. */
  perLane: 2,
  /** A burst of a hundred placements is admitted; what exceeds that is refused at once. */
  waitingPerLane: 100,
  waiting: 400,
};
/** For when the database is slow. A caller still gets to know of the call before the placement times out. */
const LONGEST_WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

export function createPlacementQueue({ clock }: { clock: Clock }): PlacementQueue {
  const gate = new Gate(LIMITS);
  return {
    async run(workspaceId, admit) {
      const gaveUp = new AbortController();
      const entering = gate.enter({ lane: workspaceId, signal: gaveUp.signal });
      const release = await within(entering, { ms: LONGEST_WAIT_MS, clock }).catch((error) => {
        throw error instanceof GateFullError ? overloaded() : error;
      });
      if (release === LATE) {
        gaveUp.abort();
        // The pass may have come at the same moment.
        void entering.then((pass) => pass()).catch(() => {});
        throw overloaded();
      }
      try {
        return await admit();
      } finally {
        release();
      }
    },
  };
}

function overloaded(): TandemError {
  const message = 'The server gets more placements than it can admit. Nothing was placed. Try again.';
  return new TandemError('PLACEMENTS_OVERLOADED', message, { retryAfterS: RETRY_AFTER_S });
}
