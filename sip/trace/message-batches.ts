import type { WireMessage } from './wire-message.ts';

/** Posts messages in batches, because crossing threads one by one is expensive. */
export interface MessageBatches {
  add(message: WireMessage): void;
  flush(): void;
}

const BATCH = 64;
const AT_LEAST_EVERY_MS = 50;

export function messageBatches(post: (messages: WireMessage[]) => void): MessageBatches {
  let waiting: WireMessage[] = [];
  let timer: NodeJS.Timeout | null = null;
  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) post(batch);
  }
  return {
    add(message) {
      waiting.push(message);
      if (waiting.length >= BATCH) flush();
      else timer ??= setTimeout(flush, AT_LEAST_EVERY_MS).unref();
    },
    flush,
  };
}
