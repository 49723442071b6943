import type { CallMessage, WireMessage } from './wire-message.ts';

/**
 * Assigns messages on the wire to calls. Messages may arrive before the leg is known, because an INVITE is sent before
 * the server confirms it; they wait for up to a minute, within limits.
 */
export interface CallTracer {
  take(messages: readonly WireMessage[]): void;
  /** Assigns the SIP dialogs with this Call-ID to a leg. */
  bind(sipCallId: string, leg: { callId: string; leg: string }): void;
  dump(): { bound: number; waiting: number; dropped: number };
}

export interface CallTracerOptions {
  /** Receives each message of a call, in order. Must not throw or block. */
  onMessage: (message: CallMessage) => void;
  /** Default: monotonic milliseconds. */
  nowMs?: () => number;
}

export function createCallTracer({ onMessage, nowMs = () => performance.now() }: CallTracerOptions): CallTracer {
  const legs = new Map<string, { callId: string; leg: string }>();
  const waiting = new Map<string, { sinceMs: number; messages: WireMessage[] }>();
  let waitingLength = 0;
  let dropped = 0;

  function drop(sipCallId: string): void {
    const messages = waiting.get(sipCallId)?.messages ?? [];
    waiting.delete(sipCallId);
    for (const { text } of messages) waitingLength -= text.length;
    dropped += messages.length;
  }

  function makeRoom(): void {
    for (const [sipCallId, { sinceMs }] of waiting) {
      const isDue = nowMs() - sinceMs > WAIT_MS || waitingLength > MOST_WAITING_LENGTH || waiting.size > MOST_WAITING;
      if (!isDue) return;
      drop(sipCallId);
    }
  }

  function keepWaiting(message: WireMessage): void {
    const { sipCallId, text } = message;
    const entry = waiting.get(sipCallId) ?? { sinceMs: nowMs(), messages: [] };
    waiting.set(sipCallId, entry);
    entry.messages.push(message);
    waitingLength += text.length;
    makeRoom();
  }

  return {
    take(messages) {
      for (const message of messages) {
        const leg = legs.get(message.sipCallId);
        if (leg === undefined) keepWaiting(message);
        else onMessage({ ...message, ...leg });
      }
    },
    bind(sipCallId, { callId, leg }) {
      // Ordered by last binding.
      legs.delete(sipCallId);
      legs.set(sipCallId, { callId, leg });
      if (legs.size > MOST_BOUND) legs.delete(legs.keys().next().value!);
      const messages = waiting.get(sipCallId)?.messages ?? [];
      waiting.delete(sipCallId);
      for (const message of messages) {
        waitingLength -= message.text.length;
        onMessage({ ...message, callId, leg });
      }
    },
    dump: () => ({ bound: legs.size, waiting: waiting.size, dropped }),
  };
}

/** Far longer than the server takes to confirm an INVITE. */
const WAIT_MS = 60_000;
const MOST_WAITING = 1_000;
const MOST_WAITING_LENGTH = 8_000_000;
/** More than the legs of one process. Late messages, such as the 200 to a BYE, still belong to the call. */
const MOST_BOUND = 20_000;
