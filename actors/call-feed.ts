import { EventEmitter } from 'node:events';
import type { PublicCallEvent } from './call-view.ts';

/** Committed events of live calls, handed to whoever watches in this process. Nothing is published before it is stored. */
export interface CallFeed {
  publish(callId: string, event: PublicCallEvent): void;
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void;
}

export function createCallFeed(): CallFeed {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);
  return {
    publish: (callId, event) => emitter.emit(`call:${callId}`, event),
    watch(callId, listener, signal) {
      if (signal.aborted) return;
      emitter.on(`call:${callId}`, listener);
      signal.addEventListener('abort', () => emitter.off(`call:${callId}`, listener), { once: true });
    },
  };
}
