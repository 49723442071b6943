import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { within } from '../runtime/waiting.ts';

/** Time for running requests to finish once the server closes. */
const FINISH_MS = 2_000;

export interface RunningRequests {
  /** Tracks a request from its arrival until its response is sent. */
  track(response: ServerResponse): void;
  isAnswering(socket: Duplex): boolean;
  finish(): Promise<void>;
}

export function createRunningRequests(): RunningRequests {
  // Not a set: V8 keeps the old tables of a set that changes often, and all responses in them, until the next full
  // garbage collection.
  const running: ServerResponse[] = [];
  let whenIdle: () => void = () => undefined;

  return {
    track(response) {
      running.push(response);
      response.once('close', () => {
        running.splice(running.indexOf(response), 1);
        if (running.length === 0) whenIdle();
      });
    },
    isAnswering: (socket) => running.some((response) => response.socket === socket && response.headersSent),
    async finish() {
      if (running.length === 0) return;
      const { promise: idle, resolve } = Promise.withResolvers<void>();
      whenIdle = resolve;
      await within(idle, { ms: FINISH_MS });
    },
  };
}
