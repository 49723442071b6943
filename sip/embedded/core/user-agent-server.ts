import {
  appendHeader,
  hasHeader,
  header,
  SipParseError,
  type SipRequest,
  type SipResponse,
  tagOf,
} from '../../message/index.ts';
import { cancelOf } from '../transactions/hop-requests.ts';
import { InviteServerTransaction } from '../transactions/invite-server.ts';
import type { IncomingTransaction } from '../transactions/layer.ts';
import type { Remote } from '../transport/remote.ts';
import type { Application, SendResult } from './application.ts';
import type { CoreContext } from './context.ts';
import {
  callerUri,
  contactUri,
  type Dialog,
  type EndDialog,
  keepAllowed,
  keepConnection,
  keepDescription,
  keepPeerDescription,
  routeSetOf,
} from './dialogs.ts';
import { addApplicationHeaders, defaultContact, isSips, newTag, sequenceOf } from './outgoing.ts';
import { responseTo } from './responses.ts';
import { type Refusal, refusalOf } from './validation.ts';

/** A request that waits for the application's response. */
interface Pending {
  readonly incoming: IncomingTransaction;
  readonly application: Application;
  toTag: string;
  /** Dialog of an in-dialog request, or the one created by the first response to an INVITE. */
  dialog: Dialog | null;
}

export interface UserAgentServerOptions {
  context: CoreContext;
  endDialog: EndDialog;
  route: (method: string) => Application | null;
}

/** Incoming requests (RFC 3261 §8.2, §12.2.2, §13.3, §14.2, §15.1.2), and the applications' responses. */
export class UserAgentServer {
  readonly #context: CoreContext;
  readonly #options: UserAgentServerOptions;
  readonly #pending = new Map<string, Pending>();
  /** Dialogs whose 2xx waits for its ACK, by transaction of the INVITE. */
  readonly #answered = new Map<string, Dialog>();

  constructor(options: UserAgentServerOptions) {
    this.#context = options.context;
    this.#options = options;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  isExpected(request: SipRequest): boolean {
    return this.#dialogOf(request) !== null;
  }

  receive(incoming: IncomingTransaction): void {
    const { request } = incoming;
    const wrong = refusalOf(request);
    if (wrong) refuse(incoming, wrong);
    else if (request.method === 'CANCEL') this.#receiveCancel(incoming);
    else if (tagOf(header(request, 'to')) !== null) this.#receiveInDialog(incoming);
    else this.#receiveNew(incoming);
  }

  /** Handles the ACK of a 2xx. The first one goes to the application. */
  receiveAck(request: SipRequest, source: Remote): void {
    if (refusalOf(request)) return;
    const dialog = this.#dialogOf(request);
    const invite = dialog?.incomingInvite;
    if (!dialog || !invite || !(invite.server instanceof InviteServerTransaction)) return;
    if (sequenceOf(request) !== sequenceOf(invite.request) || invite.server.state !== 'accepted') return;
    invite.server.acknowledged();
    dialog.incomingInvite = null;
    keepPeerDescription(dialog, request);
    keepConnection(dialog, source);
    this.#answered.delete(invite.id);
    dialog.application.deliverRequest({ request, source, transactionId: invite.id, dialogId: dialog.id });
  }

  respond(application: Application, transactionId: string, draft: SipResponse): SendResult {
    const pending = this.#pending.get(transactionId);
    if (!pending || pending.application !== application) {
      return { ok: false, reason: 'unable to find transaction for transaction id provided' };
    }
    const { incoming } = pending;
    // Until the first response, the application may choose the tag.
    if (!pending.dialog) pending.toTag = tagOf(header(draft, 'to')) ?? pending.toTag;
    const response = this.#response(pending, draft);
    if (!response) return { ok: false, reason: 'a header cannot be read, or the body has no Content-Type' };
    const isBye = incoming.request.method === 'BYE';
    if (incoming.request.method === 'INVITE' && draft.statusCode > 100) this.#followInvite(pending, response);
    if (incoming.request.method === 'UPDATE' && isSuccess(draft) && pending.dialog) {
      // A target refresh, as in a re-INVITE (RFC 3311 §5.2).
      pending.dialog.remoteTarget = contactUri(incoming.request) ?? pending.dialog.remoteTarget;
      keepDescription(pending.dialog, response);
      keepPeerDescription(pending.dialog, incoming.request);
      this.#context.sessionTimers.agree(pending.dialog, response, false);
    }
    if (draft.statusCode >= 200) this.#pending.delete(transactionId);
    incoming.server.respond(response);
    const dialogId = isBye ? null : (pending.dialog?.id ?? null);
    return { ok: true, message: response, remote: incoming.remote, transactionId, dialogId };
  }

  notAcknowledged(incoming: IncomingTransaction): void {
    const dialog = this.#answered.get(incoming.id);
    if (!dialog) return;
    this.#answered.delete(incoming.id);
    if (dialog.incomingInvite === incoming) this.#options.endDialog(dialog, { cause: 408, text: 'ACK timeout' });
  }

  terminated(incoming: IncomingTransaction): void {
    this.#pending.delete(incoming.id);
    this.#answered.delete(incoming.id);
  }

  /** Rejects the pending requests of an application that is gone. */
  abandon(application: Application): void {
    for (const pending of [...this.#pending.values()]) {
      if (pending.application === application) this.#refusePending(pending, UNAVAILABLE);
    }
  }

  #receiveNew(incoming: IncomingTransaction): void {
    const { request } = incoming;
    if (this.#context.layer.isMerged(incoming)) {
      refuse(incoming, { statusCode: 482, reasonPhrase: 'Loop Detected' });
    } else if (IN_DIALOG_ONLY.has(request.method)) refuse(incoming, NO_SUCH_CALL);
    else {
      const application = this.#options.route(request.method);
      if (!application) refuse(incoming, this.#refusalOfMethod(request.method));
      else this.#hand(incoming, application, null);
    }
  }

  /** Rejection of a method without application: 503 until one handles calls (RFC 3261 §8.2.1, §21.4.6, §21.5.2). */
  #refusalOfMethod(method: string): Refusal {
    const { route } = this.#options;
    const isKnown = KNOWN_METHODS.has(method);
    if (isKnown && (route('INVITE') === null || method === 'INVITE' || method === 'OPTIONS')) return UNAVAILABLE;
    const allowed = [...KNOWN_METHODS].filter((each) => ALWAYS_ALLOWED.has(each) || route(each) !== null);
    const headers: [string, string][] = [['Allow', allowed.join(', ')]];
    if (!isKnown) return { statusCode: 501, reasonPhrase: 'Not Implemented', headers };
    return { statusCode: 405, reasonPhrase: 'Method Not Allowed', headers };
  }

  #receiveInDialog(incoming: IncomingTransaction): void {
    const { request } = incoming;
    const dialog = this.#dialogOf(request);
    if (!dialog) {
      refuse(incoming, NO_SUCH_CALL);
      return;
    }
    const sequence = sequenceOf(request);
    if (dialog.remoteSequence !== null && sequence < dialog.remoteSequence) {
      refuse(incoming, { statusCode: 500, reasonPhrase: 'Server Internal Error - CSeq went back' });
      return;
    }
    dialog.remoteSequence = sequence;
    keepConnection(dialog, incoming.source);
    if (request.method === 'INVITE') {
      const busy = refusalOfReinvite(dialog);
      if (busy) {
        refuse(incoming, busy);
        return;
      }
      dialog.incomingInvite = incoming;
    }
    if (request.method === 'BYE') {
      const unanswered = dialog.state === 'early' ? this.#pendingInvite(dialog) : undefined;
      if (unanswered !== undefined) {
        // drachtio-srf reports the end of an unanswered call only for a CANCEL.
        this.#cancelPending(unanswered, cancelOf(unanswered.incoming.request), incoming.source);
        incoming.server.respond(responseTo(request, 200, 'OK', null));
        return;
      }
      this.#endByPeer(dialog);
    }
    this.#hand(incoming, dialog.application, dialog);
  }

  /** Answers the CANCEL and, if it is not too late, the INVITE (RFC 3261 §9.2). */
  #receiveCancel(incoming: IncomingTransaction): void {
    const { request, source } = incoming;
    const invite = this.#context.layer.cancelledBy(request);
    if (!invite) {
      refuse(incoming, NO_SUCH_CALL);
      return;
    }
    const pending = this.#pending.get(invite.id);
    incoming.server.respond(responseTo(request, 200, 'OK', pending?.toTag ?? newTag()));
    if (!pending) return;
    this.#cancelPending(pending, request, source);
  }

  #cancelPending(pending: Pending, cancel: SipRequest, source: Remote): void {
    const { application, incoming } = pending;
    application.deliverRequest({ request: cancel, source, transactionId: incoming.id, dialogId: null });
    this.#refusePending(pending, { statusCode: 487, reasonPhrase: 'Request Terminated' });
  }

  /** The peer's INVITE in a dialog, while it waits for the application. */
  #pendingInvite({ incomingInvite }: Dialog): Pending | undefined {
    return incomingInvite === null ? undefined : this.#pending.get(incomingInvite.id);
  }

  #hand(incoming: IncomingTransaction, application: Application, dialog: Dialog | null): void {
    const { request, source, id } = incoming;
    this.#pending.set(id, { incoming, application, toTag: newTag(), dialog });
    // Immediately, so that the peer does not retransmit its INVITE to a busy application (RFC 3261 §17.2.1).
    if (request.method === 'INVITE') incoming.server.respond(responseTo(request, 100, 'Trying', null));
    application.deliverRequest({ request, source, transactionId: id, dialogId: dialog?.id ?? null });
  }

  /** Ends a dialog, and rejects the peer's pending requests in it (RFC 3261 §15.1.2). */
  #endByPeer(dialog: Dialog): void {
    const pending = this.#pendingInvite(dialog);
    if (pending) this.#refusePending(pending, { statusCode: 487, reasonPhrase: 'Request Terminated' });
    this.#context.dialogs.remove(dialog);
  }

  #refusePending(pending: Pending, refusal: Refusal): void {
    this.#pending.delete(pending.incoming.id);
    const response = responseTo(pending.incoming.request, refusal.statusCode, refusal.reasonPhrase, pending.toTag);
    if (pending.incoming.request.method === 'INVITE') this.#followInvite(pending, response);
    pending.incoming.server.respond(response);
  }

  /** Applies a response to an INVITE to its dialog. */
  #followInvite(pending: Pending, response: SipResponse): void {
    const { incoming, dialog: existing } = pending;
    const { statusCode } = response;
    const isInitial = tagOf(header(incoming.request, 'to')) === null;
    if (statusCode >= 300) {
      if (!existing) return;
      existing.incomingInvite = null;
      if (isInitial) this.#context.dialogs.remove(existing);
      return;
    }
    const dialog = existing ?? this.#createDialog(pending, response);
    pending.dialog = dialog;
    if (statusCode < 200) return;
    if (isInitial) dialog.state = 'confirmed';
    else dialog.remoteTarget = contactUri(incoming.request) ?? dialog.remoteTarget;
    keepDescription(dialog, response);
    keepPeerDescription(dialog, incoming.request);
    keepAllowed(dialog, incoming.request);
    this.#context.sessionTimers.agree(dialog, response, false);
    this.#answered.set(incoming.id, dialog);
  }

  #createDialog(pending: Pending, response: SipResponse): Dialog {
    const { request } = pending.incoming;
    const callId = header(request, 'call-id') ?? '';
    const remoteTag = tagOf(header(request, 'from')) ?? '';
    const dialog: Dialog = {
      id: this.#context.dialogs.freeId(callId, remoteTag),
      role: 'uas',
      application: pending.application,
      callId,
      localTag: pending.toTag,
      remoteTag,
      localAddress: header(response, 'to') ?? '',
      remoteAddress: header(request, 'from') ?? '',
      state: 'early',
      localSequence: 0,
      remoteSequence: sequenceOf(request),
      remoteTarget: callerUri(request) ?? '',
      routeSet: routeSetOf(request, 'uas'),
      unacknowledged: null,
      lastAck: null,
      isInviting: false,
      isHungUp: false,
      incomingInvite: pending.incoming,
      stopSessionTimers: () => {},
      localDescription: null,
      peerDescription: null,
      peerTakesUpdate: true,
      reliableSequence: 0,
      flow: pending.incoming.source,
    };
    this.#context.dialogs.add(dialog);
    return dialog;
  }

  #response(pending: Pending, draft: SipResponse): SipResponse | null {
    const { request, remote } = pending.incoming;
    const { statusCode } = draft;
    const response = responseTo(request, statusCode, draft.reasonPhrase, statusCode === 100 ? null : pending.toTag);
    response.body = draft.body;
    const makesDialog = statusCode > 100 && statusCode < 300 && DIALOG_FORMING.has(request.method);
    if (makesDialog) response.headers.push(...request.headers.filter(({ key }) => key === 'record-route'));
    try {
      addApplicationHeaders(response, draft, this.#context.local, remote.transport, isSips(request.uri));
    } catch (error) {
      if (error instanceof SipParseError) return null;
      throw error;
    }
    const needsContact = makesDialog || (request.method === 'UPDATE' && isSuccess(draft));
    if (needsContact && !hasHeader(response, 'contact')) {
      appendHeader(response, 'Contact', defaultContact(this.#context.local, remote.transport, isSips(request.uri)));
    }
    return response;
  }

  #dialogOf(request: SipRequest): Dialog | null {
    const localTag = tagOf(header(request, 'to')) ?? '';
    const remoteTag = tagOf(header(request, 'from')) ?? '';
    return this.#context.dialogs.withTags(header(request, 'call-id') ?? '', localTag, remoteTag);
  }
}

function refuse(incoming: IncomingTransaction, refusal: Refusal): void {
  const response = responseTo(incoming.request, refusal.statusCode, refusal.reasonPhrase, newTag());
  for (const [name, value] of refusal.headers ?? []) appendHeader(response, name, value);
  incoming.server.respond(response);
}

function isSuccess(response: SipResponse): boolean {
  return response.statusCode >= 200 && response.statusCode < 300;
}

/** RFC 3261 §14.2. */
function refusalOfReinvite(dialog: Dialog): Refusal | null {
  if (dialog.isInviting) return { statusCode: 491, reasonPhrase: 'Request Pending' };
  if (!dialog.incomingInvite) return null;
  const retryAfter = String(Math.floor(Math.random() * 11));
  return { statusCode: 500, reasonPhrase: 'Server Internal Error', headers: [['Retry-After', retryAfter]] };
}

const DIALOG_FORMING: ReadonlySet<string> = new Set(['INVITE', 'SUBSCRIBE']);
const IN_DIALOG_ONLY: ReadonlySet<string> = new Set(['BYE', 'PRACK', 'UPDATE']);
/** Methods of RFC 3261 and its registered extensions (IANA "SIP Methods"). */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  ...['INVITE', 'ACK', 'BYE', 'CANCEL', 'OPTIONS', 'REGISTER', 'PRACK'],
  ...['SUBSCRIBE', 'NOTIFY', 'PUBLISH', 'INFO', 'REFER', 'MESSAGE', 'UPDATE'],
]);
/** Always allowed within dialogs. */
const ALWAYS_ALLOWED: ReadonlySet<string> = new Set(['ACK', 'BYE', 'CANCEL', 'PRACK', 'UPDATE']);
const NO_SUCH_CALL: Refusal = { statusCode: 481, reasonPhrase: 'Call/Transaction Does Not Exist' };
const UNAVAILABLE: Refusal = { statusCode: 503, reasonPhrase: 'Service Unavailable' };
