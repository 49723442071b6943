import { TandemError } from '../../machines/errors.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';

/** Sends messages one by one, because the relay does not keep their order. */
export function oneAfterTheOther(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}

const MOST_ATTEMPTS = 3;

/**
 * Sends a command up to three times, as long as the other node, which may be busy, does not acknowledge it in time. It
 * then does not execute it either.
 * @throws TandemError as `Cluster.send`
 */
export async function insistently<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      if (attempt === MOST_ATTEMPTS || !isUnacknowledged(error)) throw error;
    }
  }
}

export function isUnacknowledged(error: unknown): boolean {
  return error instanceof TandemError && error.code === 'NODE_UNREACHABLE';
}

/** Reports that another node did not acknowledge. */
export interface UnheardReports {
  /** Repeats a report whenever this node's lease is renewed, until it succeeds or the other node is lost. */
  repeat(boot: string, report: () => Promise<unknown>): void;
}

export function createUnheardReports(nodes: Pick<NodeDirectory, 'onRenewed'>): UnheardReports {
  const unheard = new Set<{ boot: string; report: () => Promise<unknown> }>();
  nodes.onRenewed((peers) => {
    for (const entry of unheard) {
      if (!peers.some(({ boot }) => boot === entry.boot)) unheard.delete(entry);
      else {
        entry.report().then(
          () => unheard.delete(entry),
          () => {},
        );
      }
    }
  });
  return { repeat: (boot, report) => void unheard.add({ boot, report }) };
}
