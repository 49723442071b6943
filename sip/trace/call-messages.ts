import { maskMessage } from './masking.ts';
import type { WireMessage } from './wire-message.ts';

/** A message that may belong to a call. `bytes`: unmasked. */
export type SeenMessage = Omit<WireMessage, 'sipCallId' | 'text'> & { bytes: Buffer };

/**
 * Filters and masks the messages of calls: those whose Call-ID came with an INVITE. Probes and registrations are not
 * part of a call.
 */
export function callMessages(): (message: SeenMessage) => WireMessage | null {
  /** Oldest first. */
  const invited = new Set<string>();
  return ({ bytes, ...seen }) => {
    const text = bytes.toString('latin1');
    const sipCallId = CALL_ID.exec(text)?.[1];
    if (sipCallId === undefined) return null;
    if (text.startsWith('INVITE ')) {
      invited.delete(sipCallId);
      invited.add(sipCallId);
      if (invited.size > MOST_CALL_IDS) invited.delete(invited.values().next().value!);
    } else if (!invited.has(sipCallId)) return null;
    return { ...seen, sipCallId, text: maskMessage(text) };
  };
}

/** `i` is the compact form (RFC 3261 §7.3.3). */
const CALL_ID = /\n(?:call-id|i)[ \t]*:[ \t]*(\S{1,512})/i;
/** More than the legs of one process; strangers can send INVITEs, too. */
const MOST_CALL_IDS = 20_000;
