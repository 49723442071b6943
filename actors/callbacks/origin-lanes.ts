import { Gate } from '../../runtime/gate.ts';

/**
 * Limits tasks per receiver and in total. A task whose lane is full waits here without a job, lease or connection, so a
 * slow receiver delays only its own callbacks.
 */
export interface OriginLanes {
  /**
   * Runs `task` when its lane has room and resolves when it ends. Resolves at once with `parked` if it must wait.
   * Resolves with `refused` if too many wait in the lane, the key is already present or the lanes are closed.
   */
  run(request: { lane: string; key: string; task: () => Promise<void> }): Promise<'done' | 'parked' | 'refused'>;
  has(key: string): boolean;
  counts(): { running: number; waiting: number; lanes: number };
  /** Drops waiting tasks. Running tasks go on. */
  close(): void;
  /** Resolves when nothing is running. */
  idle(): Promise<void>;
}

export interface OriginLanesOptions {
  perLane: number;
  inAll: number;
  maxWaitingPerLane: number;
}

export function createOriginLanes({ perLane, inAll, maxWaitingPerLane }: OriginLanesOptions): OriginLanes {
  const gate = new Gate({ perLane, inAll, waitingPerLane: maxWaitingPerLane });
  const keys = new Set<string>();
  const closing = new AbortController();

  return {
    async run({ lane, key, task }) {
      const outlook = gate.outlook(lane);
      if (closing.signal.aborted || keys.has(key) || outlook === 'full') return 'refused';
      keys.add(key);
      const ended = gate.run(task, { lane, signal: closing.signal }).finally(() => keys.delete(key));
      if (outlook === 'free') {
        await ended;
        return 'done';
      }
      // Tasks report their own failures. Avoids an unhandled rejection.
      ended.catch(() => {});
      return 'parked';
    },
    has: (key) => keys.has(key),
    counts: () => gate.counts,
    close: () => closing.abort(),
    idle: () => gate.idle(),
  };
}
