/**
 * So many tasks at once per receiver, so many in all. What finds its lane full waits here, holding no job, no lease
 * and no connection, so that a receiver who takes 15 s over everything delays its own callbacks and nobody else's.
 */
export interface OriginLanes {
  /**
   * Runs `task` when its lane has room. Resolves when the task has ended, or at once with `parked` when it has to
   * wait, or `refused` when the lane's waiting room is full, the key is here already, or the lanes are closed.
   */
  run(request: { lane: string; key: string; task: () => Promise<void> }): Promise<'done' | 'parked' | 'refused'>;
  has(key: string): boolean;
  counts(): { running: number; waiting: number; lanes: number };
  /** Forgets what waits. What runs goes on. */
  close(): void;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

export interface OriginLanesOptions {
  perLane: number;
  inAll: number;
  maxWaitingPerLane: number;
}

interface Waiting {
  key: string;
  task: () => Promise<void>;
}

interface Lane {
  running: number;
  waiting: Waiting[];
}

export function createOriginLanes({ perLane, inAll, maxWaitingPerLane }: OriginLanesOptions): OriginLanes {
  const lanes = new Map<string, Lane>();
  const keys = new Set<string>();
  let running = 0;
  let closed = false;
  let idle: PromiseWithResolvers<void> | null = null;

  async function execute(name: string, lane: Lane, { key, task }: Waiting): Promise<void> {
    lane.running += 1;
    running += 1;
    try {
      await task();
    } finally {
      lane.running -= 1;
      running -= 1;
      keys.delete(key);
      if (lane.running === 0 && lane.waiting.length === 0) lanes.delete(name);
      startWaiting();
      if (running === 0) idle?.resolve();
    }
  }

  /** In turns over the lanes: a lane that was served goes to the end of the map. */
  function startWaiting(): void {
    for (const [name, lane] of [...lanes]) {
      if (running >= inAll) return;
      if (lane.running >= perLane) continue;
      const next = lane.waiting.shift();
      if (next === undefined) continue;
      lanes.delete(name);
      lanes.set(name, lane);
      // A task reports its own failures; nobody else waits for this one.
      execute(name, lane, next).catch(() => {});
    }
  }

  return {
    async run({ lane: name, key, task }) {
      if (closed || keys.has(key)) return 'refused';
      const lane = lanes.get(name) ?? { running: 0, waiting: [] };
      if (lane.running < perLane && running < inAll) {
        keys.add(key);
        lanes.set(name, lane);
        await execute(name, lane, { key, task });
        return 'done';
      }
      if (lane.waiting.length >= maxWaitingPerLane) return 'refused';
      keys.add(key);
      lanes.set(name, lane);
      lane.waiting.push({ key, task });
      return 'parked';
    },
    has: (key) => keys.has(key),
    counts() {
      let waiting = 0;
      for (const lane of lanes.values()) waiting += lane.waiting.length;
      return { running, waiting, lanes: lanes.size };
    },
    close() {
      closed = true;
      for (const [name, lane] of lanes) {
        for (const { key } of lane.waiting.splice(0)) keys.delete(key);
        if (lane.running === 0) lanes.delete(name);
      }
    },
    async idle() {
      if (running === 0) return;
      idle ??= Promise.withResolvers<void>();
      await idle.promise;
    },
  };
}
