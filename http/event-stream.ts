import type { PublicCallEvent } from '../actors/call-view.ts';
import { within } from '../runtime/waiting.ts';

export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // A kept-alive connection would delay closing the server.
  connection: 'close',
  // Stops nginx from buffering events.
  'x-accel-buffering': 'no',
} as const;

export interface CallEventStreamOptions {
  /** 0 for none. */
  afterSequence: number;
  /** Subscribes to future events, until the signal aborts. */
  watch: (listener: (event: PublicCallEvent) => void, signal: AbortSignal) => void;
  loadEvents: (afterSequence: number) => Promise<PublicCallEvent[]>;
  heartbeatMs: number;
  /** Ends the stream if the client disconnects or the server closes. */
  signal: AbortSignal;
}

/**
 * Streams the events of one call as Server-Sent Events (WHATWG HTML §9.2), each once and in order, until its final
 * state. Subscribes before loading stored events, so that none is missed. The sequence identifies duplicates; gaps are
 * loaded from storage.
 */
export async function* streamCallEvents(options: CallEventStreamOptions): AsyncGenerator<string> {
  const { loadEvents, heartbeatMs, signal } = options;
  const live = new Mailbox();
  options.watch((event) => live.put(event), signal);
  let last = options.afterSequence;

  // Send at once, so that the client knows that it is connected.
  yield 'retry: 3000\n\n';
  let batch = await loadEvents(last);
  while (!signal.aborted) {
    for (const event of batch) {
      if (event.sequence <= last) continue;
      last = event.sequence;
      yield frameOf(event);
      if (isFinal(event)) return;
    }
    const next = await live.take({ timeoutMs: heartbeatMs, signal });
    if (next === null) {
      if (signal.aborted) return;
      yield ': heartbeat\n\n';
      // Events of another node may have been lost.
      batch = await loadEvents(last);
    } else if (next.sequence > last + 1) batch = await loadEvents(last);
    else batch = [next];
  }
}

export function isFinal({ state }: Pick<PublicCallEvent, 'state'>): boolean {
  return state === 'completed' || state === 'failed' || state === 'rejected';
}

function frameOf(event: PublicCallEvent): string {
  return `id: ${event.sequence}\nevent: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Limits memory for a slow client: older events are dropped and later loaded from storage. */
const MAX_WAITING = 64;

class Mailbox {
  #events: PublicCallEvent[] = [];
  #wake: () => void = () => undefined;

  put(event: PublicCallEvent): void {
    if (this.#events.length >= MAX_WAITING) this.#events = [];
    this.#events.push(event);
    this.#wake();
  }

  /** Waits for the oldest event. Null after the timeout or an abort. */
  async take({ timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal }): Promise<PublicCallEvent | null> {
    if (this.#events.length === 0 && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await within(promise, { ms: timeoutMs, signal }).catch(() => {});
    }
    return this.#events.shift() ?? null;
  }
}
