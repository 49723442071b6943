import { SipParseError, type SipRequest } from '../../message/index.ts';
import { giveUpMs } from '../sip-timers.ts';
import type { TransportName } from '../transport/remote.ts';
import { AUTOMATIC_ACK, type SendResult } from './application.ts';
import { type CoreContext, reachableHop, resolveWithin } from './context.ts';
import { type Dialog, type EndDialog, type EndReason, keepDescription } from './dialogs.ts';
import { dialogNextHop, inDialogRequest, sequenceOf } from './outgoing.ts';

/** ACKs of the 2xx responses to our INVITEs (RFC 3261 §13.2.2.4): made on the application's word, repeated by us. */
export class Acknowledgements {
  readonly #context: CoreContext;
  readonly #endDialog: EndDialog;

  constructor(context: CoreContext, endDialog: EndDialog) {
    this.#context = context;
    this.#endDialog = endDialog;
  }

  /** From now on the application owes an ACK. Without one, the peer is acknowledged and hung up. */
  expect(dialog: Dialog, invite: SipRequest, transactionId: string): void {
    dialog.unacknowledged?.stopTimer();
    const stopTimer = this.#context.clock.after(giveUpMs(this.#context.timers), () => {
      this.sendAndEnd(dialog, invite, { cause: 408, text: 'The application did not acknowledge the answer' });
    });
    dialog.unacknowledged = { invite, transactionId, endAfterAck: null, stopTimer };
  }

  /** The application's ACK, or a bare one without `asked`. */
  send(dialog: Dialog, asked: SipRequest | null, done: (result: SendResult) => void): void {
    const pending = dialog.unacknowledged;
    if (!pending) {
      done({ ok: false, reason: AUTOMATIC_ACK });
      return;
    }
    this.#send(dialog, pending.invite, asked, (result) => {
      done(result.ok ? { ...result, transactionId: pending.transactionId } : result);
      // Nobody would hear of a call that cannot even be acknowledged.
      if (!result.ok) this.#endDialog(dialog, { cause: 503, text: 'The remote target cannot be reached' });
      else if (pending.endAfterAck) this.#endDialog(dialog, pending.endAfterAck);
    });
  }

  /** For answers that nobody wants. */
  sendAndEnd(dialog: Dialog, invite: SipRequest, reason: EndReason): void {
    this.#send(dialog, invite, null, () => this.#endDialog(dialog, reason));
  }

  /** The 2xx came again: our ACK was lost (RFC 3261 §13.2.2.4). */
  repeat(dialog: Dialog, invite: SipRequest): void {
    const { lastAck } = dialog;
    if (lastAck?.sequence === sequenceOf(invite)) this.#context.layer.send(lastAck.request, lastAck.remote);
    // A BYE overtook the application's ACK, for which it was too late then.
    else if (dialog.state === 'ended') this.#send(dialog, invite, null, () => {});
  }

  #send(dialog: Dialog, invite: SipRequest, asked: SipRequest | null, done: (result: SendResult) => void): void {
    const { layer } = this.#context;
    dialog.unacknowledged?.stopTimer();
    dialog.unacknowledged = null;
    const hop = reachableHop(this.#context, dialogNextHop(dialog));
    if (!hop) {
      done({ ok: false, reason: 'the remote target cannot be reached' });
      return;
    }
    const request = this.#make(dialog, invite, asked, hop.transport);
    resolveWithin(this.#context, dialog, hop, (remote) => {
      if (remote) {
        dialog.lastAck = { sequence: sequenceOf(invite), request, remote };
        keepDescription(dialog, request);
        layer.send(request, remote);
        done({ ok: true, message: request, remote, transactionId: '', dialogId: dialog.id });
      } else done({ ok: false, reason: 'the remote target cannot be resolved' });
    });
  }

  /** An ACK goes out in any case, without what the application wrote when that cannot be sent. */
  #make(dialog: Dialog, invite: SipRequest, asked: SipRequest | null, transport: TransportName): SipRequest {
    const options = { dialog, method: 'ACK', invite, local: this.#context.local, transport };
    try {
      return inDialogRequest({ ...options, asked });
    } catch (error) {
      if (!(error instanceof SipParseError)) throw error;
      return inDialogRequest({ ...options, asked: null });
    }
  }
}
