import { randomUUID } from 'node:crypto';
import { createRequest, header, SipParseError, type SipRequest, type SipResponse, tagOf } from '../../message/index.ts';
import { giveUpMs } from '../sip-timers.ts';
import type { NextHop } from '../transport/next-hop.ts';
import type { Remote } from '../transport/remote.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { type Application, AUTOMATIC_ACK, NO_DIALOG, type SendResult } from './application.ts';
import { type CoreContext, reachableHop, resolveWithin } from './context.ts';
import { contactUri, type Dialog, dialogId, type EndReason, keepDescription, keepPeerDescription } from './dialogs.ts';
import { Invites } from './invites.ts';
import { dialogNextHop, inDialogRequest, newRequest } from './outgoing.ts';
import { Registrations } from './registrations.ts';
import { synthesizedResponse } from './responses.ts';

export type Done = (result: SendResult) => void;

type Refused = Extract<SendResult, { ok: false }>;

interface Ready {
  ok: true;
  request: SipRequest;
  hop: NextHop;
}

interface UpdateResult {
  request: SipRequest;
  response: SipResponse;
  seconds: number;
}

interface Routing {
  application: Application;
  ready: Ready;
  /** Null for a request outside any dialog. */
  dialog: Dialog | null;
  receive: (response: SipResponse, source: null) => void;
}

/** Outgoing requests: those of `sip` commands, and the server's own BYEs and refreshes. */
export class UserAgentClient {
  readonly #context: CoreContext;
  readonly #invites: Invites;
  readonly #acknowledgements: Acknowledgements;
  readonly #registrations = new Registrations();

  constructor(context: CoreContext) {
    this.#context = context;
    this.#acknowledgements = new Acknowledgements(context, (dialog, reason) => this.endDialog(dialog, reason));
    this.#invites = new Invites(context, this.#acknowledgements);
  }

  get inviteCount(): number {
    return this.#invites.size;
  }

  /** Sends a request outside any dialog. `proxyUri` is the next hop, without a Route header. */
  sendNew(application: Application, draft: SipRequest, proxyUri: string | null, done: Done): void {
    const ready = this.#prepareNew(draft, proxyUri);
    if (!ready.ok) {
      done(ready);
      return;
    }
    const { request } = ready;
    const isInvite = request.method === 'INVITE';
    const id = randomUUID();
    const callDialogId = dialogId(header(request, 'call-id') ?? '', tagOf(header(request, 'from')) ?? '');
    const receive = (response: SipResponse, source: Remote | null): void => {
      if (request.method === 'REGISTER') this.#registrations.follow(application, request, { response, source });
      application.deliverResponse({
        response,
        source,
        transactionId: id,
        dialogId: isInvite ? callDialogId : null,
      });
    };
    this.#route({ application, ready, dialog: null, receive }, (remote, isResolved) => {
      done({ ok: true, message: request, remote, transactionId: id, dialogId: null });
      if (!isResolved) return;
      if (isInvite) {
        this.#invites.start({ id, application, dialogId: callDialogId, request, remote, reinvited: null });
      } else this.#startRequest(request, remote, receive);
    });
  }

  /** Sends ACK, BYE, re-INVITE, INFO, PRACK and the like. */
  sendInDialog(application: Application, draft: SipRequest, id: string, done: Done): void {
    const fork = draft.method === 'PRACK' ? this.#invites.takePracked(draft, id) : null;
    const known = fork ?? this.#context.dialogs.withId(id);
    const dialog = known?.application === application ? known : null;
    if (draft.method === 'ACK') {
      // drachtio-srf also acknowledges rejections, which have no dialog.
      if (dialog) this.#acknowledgements.send(dialog, draft, done);
      else done({ ok: false, reason: AUTOMATIC_ACK });
      return;
    }
    const ready = dialog ? this.#prepareInDialog(draft, dialog) : refusal(NO_DIALOG);
    if (!ready.ok || !dialog) {
      done(ready.ok ? refusal(NO_DIALOG) : ready);
      return;
    }
    const { request } = ready;
    if (request.method === 'BYE') dialog.isHungUp = true;
    const transactionId = randomUUID();
    const receive = (response: SipResponse, source: Remote | null): void => {
      this.#followUp(dialog, request, response);
      application.deliverResponse({ response, source, transactionId, dialogId: id });
    };
    this.#route({ application, ready, dialog, receive }, (remote, isResolved) => {
      done({ ok: true, message: request, remote, transactionId, dialogId: id });
      if (!isResolved) return;
      if (request.method === 'INVITE') {
        this.#invites.start({ id: transactionId, application, dialogId: id, request, remote, reinvited: dialog });
      } else this.#startRequest(request, remote, receive);
    });
  }

  cancel(application: Application, transactionId: string, draft: SipRequest, done: Done): void {
    done(this.#invites.cancel(application, transactionId, draft));
  }

  /** Sends BYE, and delivers the same BYE to the application. */
  endDialog(dialog: Dialog, reason: EndReason): void {
    if (dialog.state === 'ended') return;
    const isApplications = this.#context.dialogs.withId(dialog.id) === dialog;
    dialog.unacknowledged?.stopTimer();
    dialog.unacknowledged = null;
    this.#context.dialogs.remove(dialog);
    const hop = reachableHop(this.#context, dialogNextHop(dialog));
    const { local } = this.#context;
    const transport = hop?.transport ?? 'udp';
    const bye = inDialogRequest({ dialog, method: 'BYE', draft: null, local, transport });
    bye.headers.push({ key: 'reason', name: 'Reason', value: `SIP;cause=${reason.cause};text="${reason.text}"` });
    if (hop) {
      resolveWithin(this.#context, dialog, hop, (remote) => {
        if (remote) this.#startRequest(bye, remote, () => {});
      });
    }
    if (isApplications) dialog.application.deliverOwn({ request: bye, dialogId: dialog.id });
  }

  /**
   * Requests this number of further seconds for the session (RFC 4028 §7.4): by an UPDATE without an offer, or a
   * re-INVITE that repeats our SDP if the peer lacks UPDATE.
   */
  refreshSession(dialog: Dialog, seconds: number): void {
    const description = dialog.peerTakesUpdate ? null : unencrypted(dialog.localDescription);
    const method = description ? 'INVITE' : 'UPDATE';
    // Another attempt follows in time.
    const isBusy = () => method === 'INVITE' && (dialog.isInviting || dialog.incomingInvite !== null);
    if (isBusy()) return;
    const hop = reachableHop(this.#context, dialogNextHop(dialog));
    if (!hop) return;
    const headers = [
      ['Supported', 'timer'],
      ['Session-Expires', `${seconds};refresher=uac`],
    ] as const;
    const draft = createRequest({ method, uri: 'sip:placeholder', headers, body: description ?? '' });
    const { local } = this.#context;
    const request = inDialogRequest({ dialog, method, draft, local, transport: hop.transport });
    resolveWithin(this.#context, dialog, hop, (remote) => {
      if (!remote || dialog.state === 'ended' || isBusy()) return;
      if (method === 'INVITE') this.#reinviteToRefresh(dialog, request, remote);
      else this.#startRequest(request, remote, (response) => this.#updated(dialog, { request, response, seconds }));
    });
  }

  #updated(dialog: Dialog, { request, response, seconds }: UpdateResult): void {
    this.#followUp(dialog, request, response);
    const { statusCode } = response;
    if (statusCode < 300) return;
    const isMethodUnknown = statusCode === 405 || statusCode === 501;
    if (!isMethodUnknown || dialog.state !== 'confirmed') this.#refreshRefused(dialog, request, response);
    else if (unencrypted(dialog.localDescription)) {
      dialog.peerTakesUpdate = false;
      this.refreshSession(dialog, seconds);
    } else this.#leaveToApplication(dialog, request);
  }

  #refreshRefused(dialog: Dialog, request: SipRequest, response: SipResponse): void {
    if (isChallenge(response)) this.#leaveToApplication(dialog, request);
    else this.#context.sessionTimers.refused(dialog, response);
  }

  /** Only the application has credentials and media keys. Its own refresh replaces ours. */
  #leaveToApplication(dialog: Dialog, request: SipRequest): void {
    if (this.#context.dialogs.withId(dialog.id) !== dialog) return;
    dialog.application.deliverOwn({ request, dialogId: dialog.id });
  }

  /**
   * Without the application, so we send the ACK. If the peer changed its media in the answer, the application makes an
   * offer to receive them.
   */
  #reinviteToRefresh(dialog: Dialog, request: SipRequest, remote: Remote): void {
    const before = dialog.peerDescription;
    const application: Application = {
      isOpen: true,
      deliverRequest: () => {},
      deliverOwn: () => {},
      deliverResponse: ({ response }) => {
        if (response.statusCode >= 300) this.#refreshRefused(dialog, request, response);
        else if (response.statusCode >= 200) {
          this.#acknowledgements.send(dialog, null, () => {
            if (dialog.peerDescription !== before) this.#leaveToApplication(dialog, request);
          });
        }
      },
    };
    this.#invites.start({
      id: randomUUID(),
      application,
      dialogId: dialog.id,
      request,
      remote,
      reinvited: dialog,
    });
  }

  /** Handles a closed port or connection. */
  unreachable(remote: Remote): void {
    if (remote.connectionId !== null) this.#registrations.unreachable(remote);
  }

  abandon(application: Application): void {
    this.#registrations.abandon(application);
    this.#invites.abandon(application);
    for (const dialog of this.#context.dialogs.of(application)) {
      if (dialog.state !== 'confirmed') continue;
      const pending = dialog.unacknowledged;
      if (pending) this.#acknowledgements.sendAndEnd(dialog, pending.invite, ABANDONED);
      else this.endDialog(dialog, ABANDONED);
    }
  }

  #prepareNew(draft: SipRequest, proxyUri: string | null): Ready | Refused {
    if (draft.method === 'ACK') return refusal(AUTOMATIC_ACK);
    if (draft.method === 'CANCEL') return refusal('a CANCEL needs the id of its transaction');
    const hop = reachableHop(this.#context, proxyUri === null ? draft.uri : asUri(proxyUri));
    if (!hop) return refusal(UNREACHABLE);
    return prepared(hop, () => newRequest(draft, this.#context.local, hop.transport));
  }

  #prepareInDialog(draft: SipRequest, dialog: Dialog): Ready | Refused {
    const { method } = draft;
    if (method === 'INVITE' && (dialog.isInviting || dialog.incomingInvite)) {
      return refusal('another INVITE is in progress within the dialog');
    }
    const hop = reachableHop(this.#context, dialogNextHop(dialog));
    if (!hop) return refusal(UNREACHABLE);
    const { local } = this.#context;
    return prepared(hop, () => inDialogRequest({ dialog, method, draft, local, transport: hop.transport }));
  }

  /** A name that does not resolve becomes a 503 for the application, after the echo of the unsent request. */
  #route(
    { application, ready: { request, hop }, dialog, receive }: Routing,
    go: (remote: Remote, isResolved: boolean) => void,
  ): void {
    const take = (remote: Remote | null): void => {
      if (!application.isOpen) return;
      go(remote ?? { transport: hop.transport, host: '', port: 0, connectionId: null }, remote !== null);
      if (!remote) this.#context.clock.after(0, () => receive(synthesizedResponse(request, 'transport'), null));
    };
    if (dialog) resolveWithin(this.#context, dialog, hop, take);
    else this.#context.resolve(hop, take);
  }

  #startRequest(
    request: SipRequest,
    remote: Remote,
    receive: (response: SipResponse, source: Remote | null) => void,
  ): void {
    const transaction = this.#context.layer.createRequest(request, remote, {
      onResponse: (response, source) => {
        if (response.statusCode > 100) receive(response, source);
      },
      onFailure: (why) => receive(synthesizedResponse(request, why), null),
    });
    transaction.start();
  }

  #followUp(dialog: Dialog, request: SipRequest, response: SipResponse): void {
    const { statusCode } = response;
    if (request.method === 'UPDATE' && statusCode >= 200 && statusCode < 300) {
      dialog.remoteTarget = contactUri(response) ?? dialog.remoteTarget;
      keepDescription(dialog, request);
      keepPeerDescription(dialog, response);
      this.#context.sessionTimers.agree(dialog, response, true);
    }
    if (request.method !== 'BYE' || statusCode < 200) return;
    const { clock, dialogs, timers } = this.#context;
    if (!isChallenge(response)) dialogs.remove(dialog);
    // The application may repeat the BYE with credentials in the same dialog. Without them, nothing else would end it.
    else clock.after(giveUpMs(timers), () => dialogs.remove(dialog));
  }
}

function isChallenge({ statusCode }: SipResponse): boolean {
  return statusCode === 401 || statusCode === 407;
}

/** Null for encrypted media: the answer may carry another key, which the application would not see. */
function unencrypted(description: Buffer | null): Buffer | null {
  return description?.includes('a=crypto:') ? null : description;
}

/** drachtio-srf also allows `address[:port]` as a proxy. */
function asUri(proxy: string): string {
  const bare = proxy.trim().replace(/^<([^>]*)>$/, '$1');
  return /^sips?:/i.test(bare) ? bare : `sip:${bare}`;
}

function refusal(reason: string): Refused {
  return { ok: false, reason };
}

function prepared(hop: NextHop, make: () => SipRequest): Ready | Refused {
  try {
    return { ok: true, hop, request: make() };
  } catch (error) {
    if (error instanceof SipParseError) return refusal(UNREADABLE);
    throw error;
  }
}

const UNREACHABLE = 'the next hop cannot be reached over the transports in use';
const UNREADABLE = 'a header cannot be read, or the body has no Content-Type';
const ABANDONED: EndReason = { cause: 503, text: 'The application is gone' };
