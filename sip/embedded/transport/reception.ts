import { header, headers, parseMessage, parseVia, type SipMessage, SipParseError } from '../../message/index.ts';
import { type NetworkListener, type Remote, stampSource } from './remote.ts';
import type { SourceLimits } from './source-limits.ts';

/** `onBroken` and `onFault` are described at `NetworkOptions`. */
export interface ReceptionOptions {
  listener: Pick<NetworkListener, 'onMessage' | 'isExpected'>;
  onBroken: (error: SipParseError, source: Remote) => void;
  onFault: (error: unknown) => void;
  limits: SourceLimits;
  /** Receives the bytes of accepted and rejected messages. Must not throw. */
  onSeen?: (bytes: Buffer, source: Remote) => void;
  /** A message was dropped because its source exceeded its limit. Must not throw. */
  onLimited?: () => void;
}

export interface Reception {
  /** Never throws. */
  receive(bytes: Buffer, source: Remote): void;
  /** Dropped messages: noise, malformed ones, and those beyond a limit. */
  dump(): { noise: number; broken: number; limited: number; sources: number };
}

/** Filters and parses received bytes, and passes on SIP messages. */
export function createReception({
  listener,
  onBroken,
  onFault,
  limits,
  onSeen,
  onLimited,
}: ReceptionOptions): Reception {
  const counts = { noise: 0, broken: 0, limited: 0 };

  function drop(source: Remote): void {
    counts.limited++;
    limits.drop(source.host);
    onLimited?.();
  }

  function read(bytes: Buffer, source: Remote, expectedOnly: boolean): void {
    const message = parseMessage(bytes);
    if (listener.isExpected(message)) limits.refund(source.host);
    else if (expectedOnly) {
      drop(source);
      return;
    }
    onSeen?.(bytes, source);
    if (message.kind === 'request') stampTopVia(message, source);
    listener.onMessage(message, source);
  }

  return {
    receive(bytes, source) {
      // Keepalives (CRLF, zeros), STUN and RTP do not start with a letter (RFC 5626 §4.4, RFC 5389 §6).
      if (bytes.length < SHORTEST_MESSAGE || !startsMethod(bytes[0])) {
        counts.noise++;
        return;
      }
      const verdict = limits.take(source.host);
      if (verdict === 'rejected') {
        drop(source);
        return;
      }
      try {
        read(bytes, source, verdict === 'expected-only');
      } catch (error) {
        if (!(error instanceof SipParseError)) onFault(error);
        else {
          counts.broken++;
          if (verdict === 'accepted') onSeen?.(bytes, source);
          if (verdict === 'accepted' && error.request && canAnswer(error.request, source)) onBroken(error, source);
        }
      }
    },
    dump: () => ({ ...counts, sources: limits.size }),
  };
}

function stampTopVia(request: SipMessage & { kind: 'request' }, source: Remote): void {
  const via = header(request, 'via');
  if (via === undefined) throw new SipParseError('BAD_VIA', 'A request has no Via');
  stampSource(request, parseVia(via), source);
}

/** A request without a Via, and an ACK, cannot be answered. */
function canAnswer(request: SipMessage & { kind: 'request' }, source: Remote): boolean {
  if (request.method === 'ACK' || headers(request, 'via').length === 0) return false;
  try {
    stampTopVia(request, source);
    return true;
  } catch {
    return false;
  }
}

/** Methods are tokens (RFC 3261 §25.1), with all the characters that RFC 4475 §3.1.1.2 uses. */
function startsMethod(byte: number | undefined): boolean {
  return byte !== undefined && TOKEN_BYTES.has(byte);
}

const TOKEN_BYTES: ReadonlySet<number> = new Set(
  Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.!%*_+`'~", 'latin1'),
);
const SHORTEST_MESSAGE = 16;
