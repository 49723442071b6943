import { EventEmitter } from 'node:events';
import type { PublicCallEvent } from './call-view.ts';
import type { Logger } from './logger.ts';

/**
 * Publishes stored events of live calls to watchers in this process; `onPublished` sends them to other nodes. Publish
 * only stored events. `publish` never throws: a listener that throws is removed.
 */
export interface CallFeed {
  publish(callId: string, event: PublicCallEvent): void;
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): void;
}

export interface CallFeedOptions {
  logger?: Logger;
  /** Must not throw. */
  onPublished?: (callId: string, event: PublicCallEvent) => void;
}

export function createCallFeed({ logger, onPublished }: CallFeedOptions = {}): CallFeed {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);
  return {
    publish(callId, event) {
      emitter.emit(`call:${callId}`, event);
      onPublished?.(callId, event);
    },
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
