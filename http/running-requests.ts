import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { within } from '../runtime/waiting.ts';

/** How long requests that are under way may take once the server closes. */
const FINISH_MS = 2_000;

export interface RunningRequests {
  /** From the arrival of a request until its response is out. */
  track(response: ServerResponse): void;
  /** Whether part of a response has gone out on the connection. */
  isAnswering(socket: Duplex): boolean;
  /** Waits for them, but not long. */
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
