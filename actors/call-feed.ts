import { EventEmitter } from 'node:events';
import type { PublicCallEvent } from './call-view.ts';
import type { Logger } from './logger.ts';

/**
 * Committed events of live calls, handed to whoever watches in this process. Nothing is published before it is stored.
 * Publishing never throws: a listener that does is dropped, the others hear on.
 */
export interface CallFeed {
  publish(callId: string, event: PublicCallEvent): void;
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void;
}

export function createCallFeed({ logger }: { logger?: Logger } = {}): CallFeed {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);
  return {
    publish: (callId, event) => emitter.emit(`call:${callId}`, event),
    watch(callId, listener, signal) {
      if (signal.aborted) return;
      const name = `call:${callId}`;
      const guarded = (event: PublicCallEvent) => {
        try {
          listener(event);
        } catch (error) {
          emitter.off(name, guarded);
          logger?.error({ callId, err: error }, 'call watcher threw and was removed');
        }
      };
      emitter.on(name, guarded);
      signal.addEventListener('abort', () => emitter.off(name, guarded), { once: true });
    },
  };
}
