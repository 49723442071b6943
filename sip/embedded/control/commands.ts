import { parseMessage, type SipMessage, SipParseError } from '../../message/index.ts';
import type { SipCommand } from '../core/sip-core.ts';

/** A client command of drachtio's wire protocol. */
export type ControlCommand =
  | { id: string; kind: 'authenticate'; secret: string }
  | { id: string; kind: 'route' | 'remove_route'; verb: string }
  | { id: string; kind: 'ping' }
  | { id: string; kind: 'sip'; command: SipCommand }
  | { id: string; kind: 'refused'; reason: string };

/** Parses a payload. Null if it lacks an id for the answer. */
export function parseCommand(payload: Buffer): ControlCommand | null {
  const lineEnd = payload.indexOf('\r\n', 0, 'latin1');
  const line = payload.toString('utf8', 0, lineEnd === -1 ? payload.length : lineEnd);
  const [id, kind, ...rest] = line.split('|');
  if (id === undefined || !/^[\w-]{1,64}$/.test(id) || kind === undefined) return null;
  switch (kind) {
    case 'authenticate':
      // The last part is tags; a secret may contain `|`.
      return { id, kind, secret: rest.length > 1 ? rest.slice(0, -1).join('|') : (rest[0] ?? '') };
    case 'route':
    case 'remove_route':
      return VERB.test(rest[0] ?? '')
        ? { id, kind, verb: (rest[0] ?? '').toLowerCase() }
        : { id, kind: 'refused', reason: 'invalid route' };
    case 'ping':
      return { id, kind };
    case 'sip':
      return parseSip(id, rest, lineEnd === -1 ? Buffer.alloc(0) : payload.subarray(lineEnd + 2));
    default:
      return { id, kind: 'refused', reason: kind === 'proxy' ? 'proxy is not supported' : 'unknown command' };
  }
}

/** `sip|txnId|dialogId[|proxyUri]` and a message. */
function parseSip(id: string, fields: readonly string[], bytes: Buffer): ControlCommand {
  const [transactionId = '', dialogId = '', ...proxy] = fields;
  const message = readMessage(bytes);
  if (!message) return { id, kind: 'refused', reason: 'invalid sip message' };
  const command = commandOf(message, transactionId, dialogId, proxy.join('|'));
  return command
    ? { id, kind: 'sip', command }
    : { id, kind: 'refused', reason: 'a response must include a transaction id' };
}

function commandOf(message: SipMessage, transactionId: string, dialogId: string, proxy: string): SipCommand | null {
  if (message.kind === 'response') {
    return transactionId === '' ? null : { type: 'response', transactionId, message };
  }
  if (dialogId !== '') return { type: 'in-dialog', dialogId, message };
  if (transactionId !== '' && message.method === 'CANCEL') return { type: 'cancel', transactionId, message };
  return { type: 'new', proxyUri: proxy === '' ? null : proxy, message };
}

/** drachtio-srf counts the characters of a body, not its bytes, so the frame ends it. */
function readMessage(bytes: Buffer): SipMessage | null {
  try {
    return parseMessage(bytes, { bodyIsRest: true });
  } catch (error) {
    if (error instanceof SipParseError) return null;
    throw error;
  }
}

const VERB = /^(?:[a-z]{1,32}|cdr:(?:attempt|start|stop))$/i;
