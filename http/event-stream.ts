import type { PublicCallEvent } from '../actors/call-view.ts';
import { within } from '../runtime/waiting.ts';

export interface CallEventStreamOptions {
  /** Last sequence that the client received; 0 for none. */
  afterSequence: number;
  /** Subscribes to future events, until the signal aborts. */
  watch: (listener: (event: PublicCallEvent) => void, signal: AbortSignal) => void;
  /** Loads stored events after a sequence, in order. */
  loadEvents: (afterSequence: number) => Promise<PublicCallEvent[]>;
  heartbeatMs: number;
  /** Ends the stream when the client disconnects or the server closes. */
  signal: AbortSignal;
}

/**
 * Streams the events of one call as Server-Sent Events (WHATWG HTML §9.2), each once and in order, up to the one that
 * leaves the call in a final state. Subscribes before it loads stored events, so that none is missed: the sequence
 * identifies duplicates, and gaps are loaded from storage.
 */
export async function* streamCallEvents(options: CallEventStreamOptions): AsyncGenerator<string> {
  const { loadEvents, heartbeatMs, signal } = options;
  const live = new Mailbox();
  options.watch((event) => live.put(event), signal);
  let last = options.afterSequence;

  // Sent immediately, so that the client knows that it is connected.
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
      // Events of another node may be lost on their way.
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

/** Limits the memory for a slow client: beyond this, older events are dropped and later loaded from storage. */
const MAX_WAITING = 64;

class Mailbox {
  #events: PublicCallEvent[] = [];
  #wake: () => void = () => undefined;

  put(event: PublicCallEvent): void {
    if (this.#events.length >= MAX_WAITING) this.#events = [];
    this.#events.push(event);
    this.#wake();
  }

  /** Waits for the oldest event. Null after the timeout, or when the signal aborts. */
  async take({ timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal }): Promise<PublicCallEvent | null> {
    if (this.#events.length === 0 && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await within(promise, { ms: timeoutMs, signal }).catch(() => {});
    }
    return this.#events.shift() ?? null;
  }
}
