import { SipParseError, type SipRequest } from '../../message/index.ts';
import { giveUpMs } from '../sip-timers.ts';
import type { TransportName } from '../transport/remote.ts';
import { AUTOMATIC_ACK, type SendResult } from './application.ts';
import { type CoreContext, reachableHop, resolveWithin } from './context.ts';
import { type Dialog, type EndDialog, type EndReason, keepDescription } from './dialogs.ts';
import { dialogNextHop, inDialogRequest, sequenceOf } from './outgoing.ts';

/**
 * ACKs of 2xx responses to our INVITEs (RFC 3261 §13.2.2.4), sent at the application's request and retransmitted by us.
 */
export class Acknowledgements {
  readonly #context: CoreContext;
  readonly #endDialog: EndDialog;

  constructor(context: CoreContext, endDialog: EndDialog) {
    this.#context = context;
    this.#endDialog = endDialog;
  }

  /** Starts waiting for the application's ACK. On timeout, acknowledges and hangs up the peer. */
  expect(dialog: Dialog, invite: SipRequest, transactionId: string): void {
    dialog.unacknowledged?.stopTimer();
    const stopTimer = this.#context.clock.after(giveUpMs(this.#context.timers), () => {
      this.sendAndEnd(dialog, invite, { cause: 408, text: 'The application did not acknowledge the answer' });
    });
    dialog.unacknowledged = { invite, transactionId, endAfterAck: null, stopTimer };
  }

  /** Sends the application's ACK, or a bare one without `draft`. */
  send(dialog: Dialog, draft: SipRequest | null, done: (result: SendResult) => void): void {
    const pending = dialog.unacknowledged;
    if (!pending) {
      done({ ok: false, reason: AUTOMATIC_ACK });
      return;
    }
    this.#send(dialog, pending.invite, draft, (result) => {
      done(result.ok ? { ...result, transactionId: pending.transactionId } : result);
      // A call that cannot be acknowledged would never end.
      if (!result.ok) this.#endDialog(dialog, { cause: 503, text: 'The remote target cannot be reached' });
      else if (pending.endAfterAck) this.#endSoon(dialog, pending.endAfterAck);
    });
  }

  /** Leaves the BYE to an application that hangs up itself, because only it can answer a challenge to the BYE. */
  #endSoon(dialog: Dialog, reason: EndReason): void {
    if (!reason.isApplications) this.#endDialog(dialog, reason);
    else {
      this.#context.clock.after(4 * this.#context.timers.t1Ms, () => {
        if (!dialog.isHungUp) this.#endDialog(dialog, reason);
      });
    }
  }

  /** For unwanted answers. */
  sendAndEnd(dialog: Dialog, invite: SipRequest, reason: EndReason): void {
    this.#send(dialog, invite, null, () => this.#endDialog(dialog, reason));
  }

  /** Handles a repeated 2xx: our ACK was lost (RFC 3261 §13.2.2.4). */
  repeat(dialog: Dialog, invite: SipRequest): void {
    const { lastAck } = dialog;
    if (lastAck?.sequence === sequenceOf(invite)) this.#context.layer.send(lastAck.request, lastAck.remote);
    // A BYE overtook the application's ACK, which then came too late.
    else if (dialog.state === 'ended') this.#send(dialog, invite, null, () => {});
  }

  #send(dialog: Dialog, invite: SipRequest, draft: SipRequest | null, done: (result: SendResult) => void): void {
    const { layer } = this.#context;
    dialog.unacknowledged?.stopTimer();
    dialog.unacknowledged = null;
    const hop = reachableHop(this.#context, dialogNextHop(dialog));
    if (!hop) {
      done({ ok: false, reason: 'the remote target cannot be reached' });
      return;
    }
    const request = this.#make(dialog, invite, draft, hop.transport);
    resolveWithin(this.#context, dialog, hop, (remote) => {
      if (remote) {
        dialog.lastAck = { sequence: sequenceOf(invite), request, remote };
        keepDescription(dialog, request);
        layer.send(request, remote);
        done({ ok: true, message: request, remote, transactionId: '', dialogId: dialog.id });
      } else done({ ok: false, reason: 'the remote target cannot be resolved' });
    });
  }

  /** If the application's headers cannot be sent, sends the ACK without them. */
  #make(dialog: Dialog, invite: SipRequest, draft: SipRequest | null, transport: TransportName): SipRequest {
    const options = { dialog, method: 'ACK', invite, local: this.#context.local, transport };
    try {
      return inDialogRequest({ ...options, draft });
    } catch (error) {
      if (!(error instanceof SipParseError)) throw error;
      return inDialogRequest({ ...options, draft: null });
    }
  }
}
