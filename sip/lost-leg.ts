import type { HangupCause } from '../machines/events.ts';
import { reasonHeaderOf } from './failure-cause.ts';
import { parseNameAddr, splitList } from './message/index.ts';
import type { DialogHandle, LegHandle } from './sip-gateway.ts';
import { PLACEHOLDER, type SrfConnection } from './srf-connection.ts';
import type { SrfSentRequest } from './srf-types.ts';

/** A message of the dialog, the source of a handle. */
interface DialogMessage {
  get(header: string): string | undefined;
}

interface DialogParts {
  dialogId: string;
  /** Our request that the message answers, or null for a request of the peer. */
  invite: SrfSentRequest | null;
  /** Has the peer's Contact and Record-Route: the 2xx, or the peer's INVITE. */
  message: DialogMessage;
  /** Has both tags. Default: `message`. */
  tagged?: DialogMessage;
}

/** Null for an invalid message, which the SIP server should not deliver. */
export function dialogHandle({ dialogId, invite, message, tagged = message }: DialogParts): DialogHandle | null {
  const [from, to] = [tagged.get('From'), tagged.get('To')];
  const callId = tagged.get('Call-ID');
  if (from === undefined || to === undefined || callId === undefined) return null;
  const recorded = splitList(message.get('Record-Route') ?? '').filter((route) => uriOf(route) !== null);
  return {
    kind: 'dialog',
    dialogId,
    callId,
    ...(invite === null ? { local: to, remote: from } : { local: from, remote: to }),
    target: uriOf(splitList(message.get('Contact') ?? '')[0]),
    routes: invite === null ? recorded : recorded.toReversed(),
    sequence: invite === null ? 0 : Number.parseInt(message.get('CSeq') ?? '0', 10),
  };
}

/** Null for an invalid address. Takes linear time: the text is the peer's. */
function uriOf(address: string | undefined): string | null {
  try {
    return parseNameAddr(address ?? '').uri;
  } catch {
    return null;
  }
}

/** More requests than a leg makes. A number may be skipped (RFC 3261 §12.2.2), but never reused. */
const REQUESTS_SINCE = 10_000;
const CAUSE: HangupCause = 'NORMAL_TEMPORARY_FAILURE';

/**
 * Sends CANCEL or BYE, and ignores the response. An INVITE that was answered meanwhile is ended by its dialog. A SIP
 * server that does not know the dialog, because it started later, gets a BYE with all headers.
 */
export function endLostLeg(connection: SrfConnection, handle: LegHandle): void {
  const headers = { Reason: reasonHeaderOf(CAUSE) };
  const { dialogId } = handle;
  const bye = { method: 'BYE', stackDialogId: dialogId, headers };
  if (handle.kind === 'invite') {
    const cancel = { method: 'CANCEL', stackTxnId: handle.transactionId, headers };
    connection.request(PLACEHOLDER, cancel, ({ kind }) => {
      if (kind === 'not-sent') connection.request(PLACEHOLDER, bye, () => undefined);
    });
    return;
  }
  const { callId, local, remote, target, routes, sequence } = handle;
  connection.request(PLACEHOLDER, bye, ({ kind }) => {
    if (kind !== 'not-sent' || target === null) return;
    const dialog = { From: local, To: remote, 'Call-ID': callId, CSeq: `${sequence + REQUESTS_SINCE} BYE` };
    const Route = routes.join(', ');
    const options = { method: 'BYE', headers: { ...headers, ...dialog, ...(Route !== '' && { Route }) } };
    connection.request(target, { ...options, ...proxyOf(routes) }, () => undefined);
  });
}

function proxyOf([first]: readonly string[]): { proxy?: string } {
  const uri = uriOf(first);
  return uri === null ? {} : { proxy: uri };
}
