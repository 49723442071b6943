import { header, type SipRequest, type SipResponse, tagOf } from '../../message/index.ts';
import { cancelOf } from '../transactions/hop-requests.ts';
import type { InviteClientTransaction } from '../transactions/invite-client.ts';
import type { Remote } from '../transport/remote.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import type { Application, SendResult } from './application.ts';
import type { CoreContext } from './context.ts';
import {
  contactUri,
  type Dialog,
  type EndReason,
  keepAllowed,
  keepDescription,
  keepPeerDescription,
  routeSetOf,
} from './dialogs.ts';
import { sequenceOf } from './outgoing.ts';
import { synthesizedResponse } from './responses.ts';

/** An INVITE that we sent, until its transaction ends. */
interface OutgoingInvite {
  readonly id: string;
  readonly application: Application;
  readonly dialogId: string;
  readonly request: SipRequest;
  readonly remote: Remote;
  readonly transaction: InviteClientTransaction;
  /** By To tag. A re-INVITE has only its own dialog. */
  readonly forks: Map<string, Dialog>;
  /** The dialog of a re-INVITE; null for a new call. */
  readonly reinvited: Dialog | null;
  /** Delivered reliable responses without a PRACK, oldest first. */
  readonly reliable: { dialog: Dialog; sequence: number }[];
  /** The fork with the first 2xx, which belongs to the application. */
  winner: Dialog | null;
  /** The CANCEL, sent or held; null if not cancelled. */
  cancel: SipRequest | null;
}

interface Answer {
  response: SipResponse;
  source: Remote;
}

/**
 * INVITEs that we send (RFC 3261 §13.2, §14.1): early and forked dialogs, CANCEL held until the first 1xx, ACK and BYE
 * for unwanted forks.
 */
export class Invites {
  readonly #context: CoreContext;
  readonly #acknowledgements: Acknowledgements;
  readonly #invites = new Map<string, OutgoingInvite>();

  constructor(context: CoreContext, acknowledgements: Acknowledgements) {
    this.#context = context;
    this.#acknowledgements = acknowledgements;
  }

  get size(): number {
    return this.#invites.size;
  }

  /** Sends an INVITE. `reinvited` is the dialog of a re-INVITE, null for a new call. */
  start(options: {
    id: string;
    application: Application;
    dialogId: string;
    request: SipRequest;
    remote: Remote;
    reinvited: Dialog | null;
  }): void {
    const { id, request, remote, reinvited } = options;
    const transaction = this.#context.layer.createInvite(request, remote, {
      onResponse: (response, source) => this.#receive(invite, response, source),
      onFailure: (why) => this.#rejected(invite, synthesizedResponse(request, why), null),
      onCancellable: () => this.#sendCancel(invite),
      isWanted: () => invite.cancel === null,
      onTerminated: () => this.#forget(invite),
    });
    const forks = new Map(reinvited ? [[reinvited.remoteTag, reinvited]] : []);
    const invite: OutgoingInvite = { ...options, transaction, forks, reliable: [], winner: null, cancel: null };
    if (reinvited) reinvited.isInviting = true;
    else this.#context.dialogs.reserve(invite.dialogId);
    this.#invites.set(id, invite);
    transaction.start();
  }

  /**
   * Cancels an INVITE. Holds the CANCEL until the first 1xx (RFC 3261 §9.1). After a 2xx that is not yet acknowledged,
   * the dialog ends after its ACK instead.
   */
  cancel(application: Application, id: string, draft: SipRequest | null): SendResult {
    const invite = this.#invites.get(id);
    if (!invite || invite.application !== application) {
      return { ok: false, reason: 'unable to find transaction to cancel' };
    }
    const { state } = invite.transaction;
    const pending = state === 'accepted' && !invite.reinvited ? invite.winner?.unacknowledged : null;
    if (state !== 'calling' && state !== 'proceeding' && !pending) {
      return { ok: false, reason: 'the request to cancel has been answered' };
    }
    const isFirst = invite.cancel === null;
    const cancel = invite.cancel ?? cancelWith(invite.request, draft);
    invite.cancel = cancel;
    if (pending) pending.endAfterAck ??= CROSSED_CANCEL;
    else if (isFirst && state === 'proceeding') this.#sendCancel(invite);
    return { ok: true, message: cancel, remote: invite.remote, transactionId: id, dialogId: null };
  }

  /** Cancels the INVITEs of an application that is gone. */
  abandon(application: Application): void {
    for (const invite of [...this.#invites.values()]) {
      if (invite.application === application) this.cancel(application, invite.id, null);
    }
  }

  /** The fork that a PRACK belongs to. The application knows only the id that all forks share. Null if unknown. */
  takePracked(prack: SipRequest, id: string): Dialog | null {
    const sequence = Number.parseInt(header(prack, 'rack') ?? '', 10);
    for (const { dialogId, reliable } of this.#invites.values()) {
      const at = dialogId === id ? reliable.findIndex((each) => each.sequence === sequence) : -1;
      const [taken] = at < 0 ? [] : reliable.splice(at, 1);
      if (taken !== undefined) return taken.dialog.state === 'ended' ? null : taken.dialog;
    }
    return null;
  }

  #receive(invite: OutgoingInvite, response: SipResponse, source: Remote): void {
    // A re-INVITE needs no user, so a 1xx does not extend the timeout.
    if (invite.reinvited && response.statusCode < 200) invite.transaction.expectEnd();
    if (response.statusCode === 100) return;
    if (response.statusCode >= 300) this.#rejected(invite, response, source);
    else if (response.statusCode >= 200) this.#accepted(invite, response, source);
    else {
      const tag = tagOf(header(response, 'to'));
      const dialog = tag === null || invite.reinvited ? null : this.#progress(invite, tag, { response, source });
      if (dialog === null || acceptInOrder(invite, dialog, response)) this.#deliver(invite, response, source);
    }
  }

  /** A 1xx creates or refreshes an early dialog (RFC 3261 §12.1.2). */
  #progress(invite: OutgoingInvite, tag: string, answer: Answer): Dialog | null {
    const known = invite.forks.get(tag);
    if (known === undefined) return invite.forks.size < MAX_FORKS ? this.#fork(invite, tag, answer) : null;
    known.remoteTarget = contactUri(answer.response) ?? known.remoteTarget;
    keepPeerDescription(known, answer.response);
    return known;
  }

  #accepted(invite: OutgoingInvite, response: SipResponse, source: Remote): void {
    const tag = tagOf(header(response, 'to')) ?? '';
    const mayFork = !invite.reinvited && invite.forks.size < MAX_FORKS;
    const dialog = invite.forks.get(tag) ?? (mayFork ? this.#fork(invite, tag, { response, source }) : null);
    if (!dialog) return;
    if (invite.winner === null) this.#acceptedFirst(invite, dialog, { response, source });
    else this.#acceptedAgain(invite, dialog, response);
  }

  /** The first 2xx: its fork belongs to the application, which sends the ACK. */
  #acceptedFirst(invite: OutgoingInvite, dialog: Dialog, { response, source }: Answer): void {
    invite.winner = dialog;
    if (invite.reinvited && dialog.state === 'ended') {
      // It crossed a BYE: the application has no dialog for its ACK.
      this.#acknowledgements.repeat(dialog, invite.request);
      this.#deliver(invite, response, source);
      return;
    }
    if (invite.reinvited) {
      dialog.isInviting = false;
      dialog.remoteTarget = contactUri(response) ?? dialog.remoteTarget;
    } else {
      confirm(dialog, response);
      // Other forks may have rung since; the id now refers to this one.
      this.#context.dialogs.add(dialog);
    }
    keepDescription(dialog, invite.request);
    keepPeerDescription(dialog, response);
    keepAllowed(dialog, response);
    this.#context.sessionTimers.agree(dialog, response, true);
    this.#acknowledgements.expect(dialog, invite.request, invite.id);
    if (!invite.reinvited && dialog.unacknowledged) dialog.unacknowledged.endAfterAck = reasonToEnd(invite, response);
    this.#deliver(invite, response, source);

    // A closed application acknowledges nothing.
    if (invite.reinvited || invite.application.isOpen) return;
    this.#acknowledgements.sendAndEnd(dialog, invite.request, NO_APPLICATION);
  }

  /** A later 2xx: ends another fork, or acknowledges a retransmission. */
  #acceptedAgain(invite: OutgoingInvite, dialog: Dialog, response: SipResponse): void {
    if (dialog !== invite.winner && dialog.state === 'early') {
      confirm(dialog, response);
      this.#acknowledgements.sendAndEnd(dialog, invite.request, FORK_LOST);
    } else this.#acknowledgements.repeat(dialog, invite.request);
  }

  #rejected(invite: OutgoingInvite, response: SipResponse, source: Remote | null): void {
    if (invite.reinvited) invite.reinvited.isInviting = false;
    else for (const dialog of invite.forks.values()) this.#context.dialogs.remove(dialog);
    this.#deliver(invite, response, source);
  }

  #fork(invite: OutgoingInvite, tag: string, { response, source }: Answer): Dialog {
    const { request } = invite;
    const dialog: Dialog = {
      id: invite.dialogId,
      role: 'uac',
      application: invite.application,
      callId: header(request, 'call-id') ?? '',
      localTag: tagOf(header(request, 'from')) ?? '',
      remoteTag: tag,
      localAddress: header(request, 'from') ?? '',
      remoteAddress: header(response, 'to') ?? '',
      state: 'early',
      localSequence: sequenceOf(request),
      remoteSequence: null,
      remoteTarget: contactUri(response) ?? request.uri,
      routeSet: routeSetOf(response, 'uac'),
      unacknowledged: null,
      lastAck: null,
      isInviting: false,
      isHungUp: false,
      incomingInvite: null,
      stopSessionTimers: () => {},
      localDescription: null,
      peerDescription: null,
      peerTakesUpdate: true,
      reliableSequence: 0,
      flow: { ...source, ...(invite.remote.name === undefined ? {} : { name: invite.remote.name }) },
    };
    keepPeerDescription(dialog, response);
    invite.forks.set(tag, dialog);
    if (invite.winner === null) this.#context.dialogs.add(dialog);
    return dialog;
  }

  #sendCancel(invite: OutgoingInvite): void {
    if (!invite.cancel) return;
    const ignored = { onResponse: () => {}, onFailure: () => {} };
    this.#context.layer.createRequest(invite.cancel, invite.remote, ignored).start();
    invite.transaction.expectEnd();
  }

  #forget(invite: OutgoingInvite): void {
    this.#invites.delete(invite.id);
    if (!invite.reinvited) this.#context.dialogs.release(invite.dialogId);
    for (const dialog of invite.forks.values()) {
      if (dialog.state === 'early') this.#context.dialogs.remove(dialog);
    }
  }

  #deliver(invite: OutgoingInvite, response: SipResponse, source: Remote | null): void {
    const { application, id: transactionId, dialogId } = invite;
    application.deliverResponse({ response, source, transactionId, dialogId });
  }
}

/**
 * drachtio-srf acknowledges an answer without a usable Contact, rejects it and never hangs up. The BYE must follow that
 * ACK: together with the answer it would arrive before the application listens.
 */
function reasonToEnd(invite: OutgoingInvite, answer: SipResponse): EndReason | null {
  if (contactUri(answer) === null) return NO_CONTACT;
  return invite.cancel ? CROSSED_CANCEL : null;
}

/**
 * Accepts reliable responses in order (RFC 3262 §4) and records their RSeq. Returns false for a retransmission, and for
 * a response ahead of a lost one, which the peer will send again. Other responses are always accepted.
 */
function acceptInOrder({ reliable }: OutgoingInvite, dialog: Dialog, response: SipResponse): boolean {
  const sequence = Number.parseInt(header(response, 'rseq') ?? '', 10);
  if (Number.isNaN(sequence)) return true;
  if (dialog.reliableSequence !== 0 && sequence !== dialog.reliableSequence + 1) return false;
  dialog.reliableSequence = sequence;
  reliable.push({ dialog, sequence });
  return true;
}

/** The 2xx, not an earlier 1xx, defines the route (RFC 3261 §13.2.2.4). */
function confirm(dialog: Dialog, response: SipResponse): void {
  dialog.state = 'confirmed';
  dialog.remoteTarget = contactUri(response) ?? dialog.remoteTarget;
  dialog.routeSet = routeSetOf(response, 'uac');
}

function cancelWith(invite: SipRequest, draft: SipRequest | null): SipRequest {
  const cancel = cancelOf(invite);
  for (const each of draft?.headers ?? []) {
    if (each.key === 'reason' || each.key.startsWith('x-')) cancel.headers.push(each);
  }
  return cancel;
}

/** Limit of forks per INVITE, above what rings at once in practice. Each late answer costs an ACK and a BYE. */
const MAX_FORKS = 32;
const FORK_LOST = { cause: 200, text: 'Call completed elsewhere' };
const CROSSED_CANCEL = { cause: 487, text: 'The answer crossed a CANCEL', isApplications: true };
const NO_CONTACT = { cause: 500, text: 'The answer has no Contact' };
const NO_APPLICATION = { cause: 503, text: 'The application is gone' };
