import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { within } from '../runtime/waiting.ts';

/** How long running requests may take to finish once the server closes. */
const FINISH_MS = 2_000;

export interface RunningRequests {
  /** Tracks a request from its arrival until its response is sent. */
  track(response: ServerResponse): void;
  /** Whether a response has been partly sent on the connection. */
  isAnswering(socket: Duplex): boolean;
  /** Waits until all have finished, for a limited time. */
  finish(): Promise<void>;
}

export function createRunningRequests(): RunningRequests {
  const running = new Set<ServerResponse>();
  let whenIdle: () => void = () => undefined;

  return {
    track(response) {
      running.add(response);
      response.once('close', () => {
        running.delete(response);
        if (running.size === 0) whenIdle();
      });
    },
    isAnswering: (socket) => [...running].some((response) => response.socket === socket && response.headersSent),
    async finish() {
      if (running.size === 0) return;
      const { promise: idle, resolve } = Promise.withResolvers<void>();
      whenIdle = resolve;
      await within(idle, { ms: FINISH_MS });
    },
  };
}
