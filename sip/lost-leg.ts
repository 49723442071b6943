import type { HangupCause } from '../machines/events.ts';
import { reasonHeaderOf } from './failure-cause.ts';
import type { DialogHandle, LegHandle } from './sip-gateway.ts';
import type { SrfConnection } from './srf-connection.ts';
import type { SrfSentRequest } from './srf-types.ts';

/** What a handle is made of: a message of the dialog. */
interface DialogMessage {
  get(header: string): string | undefined;
}

interface DialogParts {
  dialogId: string;
  /** Which of our requests the message answers, or null for a request of the peer. */
  invite: SrfSentRequest | null;
  /** Has the peer's Contact and Record-Route: the 2xx, or the INVITE of the peer. */
  message: DialogMessage;
  /** Has both tags. Default: `message`. */
  tagged?: DialogMessage;
}

/** Null for a message that the SIP server should never have delivered. */
export function dialogHandle({ dialogId, invite, message, tagged = message }: DialogParts): DialogHandle | null {
  const target = /<([^>]+)>|^\s*([^\s;,]+)/.exec(message.get('Contact') ?? '');
  const uri = target?.[1] ?? target?.[2] ?? null;
  const [from, to] = [tagged.get('From'), tagged.get('To')];
  const callId = tagged.get('Call-ID');
  if (from === undefined || to === undefined || callId === undefined) return null;
  const recorded = (message.get('Record-Route') ?? '').match(/<[^>]*>[^,]*/g) ?? [];
  return {
    kind: 'dialog',
    dialogId,
    callId,
    ...(invite === null ? { local: to, remote: from } : { local: from, remote: to }),
    target: uri,
    routes: invite === null ? recorded : recorded.toReversed(),
    sequence: invite === null ? 0 : Number.parseInt(message.get('CSeq') ?? '0', 10),
  };
}

/** More requests than a leg makes. A number may be left out (RFC 3261 §12.2.2), but never used twice. */
const REQUESTS_SINCE = 10_000;
const CAUSE: HangupCause = 'NORMAL_TEMPORARY_FAILURE';

/**
 * Sends CANCEL or BYE. What the peer answers changes nothing: the leg is gone here. A SIP server that does not know the
 * dialog, because it started after it, gets a BYE with all its headers.
 */
export function endLostLeg(connection: SrfConnection, handle: LegHandle): void {
  const headers = { Reason: reasonHeaderOf(CAUSE) };
  if (handle.kind === 'invite') {
    const options = { method: 'CANCEL', stackTxnId: handle.transactionId, headers };
    connection.request('sip:placeholder', options, () => undefined);
    return;
  }
  const { dialogId, callId, local, remote, target, routes, sequence } = handle;
  connection.request('sip:placeholder', { method: 'BYE', stackDialogId: dialogId, headers }, ({ kind }) => {
    if (kind !== 'not-sent' || target === null) return;
    const dialog = { From: local, To: remote, 'Call-ID': callId, CSeq: `${sequence + REQUESTS_SINCE} BYE` };
    const Route = routes.join(', ');
    const options = { method: 'BYE', headers: { ...headers, ...dialog, ...(Route !== '' && { Route }) } };
    connection.request(target, { ...options, ...proxyOf(routes) }, () => undefined);
  });
}

/** The next hop of a route set. */
function proxyOf([first]: readonly string[]): { proxy?: string } {
  const uri = /<([^>]+)>/.exec(first ?? '')?.[1];
  return uri === undefined ? {} : { proxy: uri };
}
