import { Gate } from '../../runtime/gate.ts';

/**
 * Limits tasks per receiver and in all. A task whose lane is full waits here and holds no job, no lease and no
 * connection, so a receiver that takes 15 s over everything delays its own callbacks and nobody else's.
 */
export interface OriginLanes {
  /**
   * Runs `task` when its lane has room. Resolves when the task has ended, or at once with `parked` when it has to
   * wait, or `refused` when too many wait in the lane, the key is here already, or the lanes are closed.
   */
  run(request: { lane: string; key: string; task: () => Promise<void> }): Promise<'done' | 'parked' | 'refused'>;
  has(key: string): boolean;
  counts(): { running: number; waiting: number; lanes: number };
  /** Drops waiting tasks. Running tasks go on. */
  close(): void;
  /** Resolves when nothing runs. */
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
      // Tasks report their own failures; nobody waits for this one.
      ended.catch(() => {});
      return 'parked';
    },
    has: (key) => keys.has(key),
    counts: () => gate.counts,
    close: () => closing.abort(),
    idle: () => gate.idle(),
  };
}
