import { header, LEAST_SESSION_S, parseSessionExpires, type SipResponse } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import type { Dialog, EndDialog } from './dialogs.ts';

interface SessionTimersOptions {
  clock: Clock;
  endDialog: EndDialog;
  /** Requests this number of further seconds from the peer. A rejection is passed to `refused`. */
  refresh: (dialog: Dialog, seconds: number) => void;
}

/** RFC 4028: refreshes sessions when that is our role, and ends sessions that were not refreshed in time. */
export class SessionTimers {
  readonly #options: SessionTimersOptions;

  constructor(options: SessionTimersOptions) {
    this.#options = options;
  }

  /**
   * Applies the agreement of a 2xx to an INVITE or UPDATE, replacing an earlier one. Without an interval the session
   * does not expire (§7.2).
   * @param isOurRequest whether we are the UAC of that request
   */
  agree(dialog: Dialog, response: SipResponse, isOurRequest: boolean): void {
    dialog.stopSessionTimers();
    const agreed = parseSessionExpires(header(response, 'session-expires'));
    if (agreed === null || dialog.state === 'ended') return;
    const { clock, endDialog } = this.#options;
    const seconds = Math.max(LEAST_SESSION_S, agreed.seconds);
    const isOurs = ((agreed.refresher ?? 'uac') === 'uac') === isOurRequest;
    // The waiting side sends its BYE first (§10).
    const graceS = isOurs ? 0 : Math.min(MOST_GRACE_S, seconds / 3);
    const stopExpiry = clock.after((seconds - graceS) * 1000, () => endDialog(dialog, EXPIRED));
    let stopRefresh = (): void => {};
    const refreshAfter = (delayS: number): void => {
      stopRefresh = clock.after(delayS * 1000, () => {
        refreshAfter(Math.min(RETRY_S, seconds / 9));
        this.#options.refresh(dialog, seconds);
      });
    };
    if (isOurs) refreshAfter(seconds / 2);
    dialog.stopSessionTimers = () => {
      stopExpiry();
      stopRefresh();
    };
  }

  /** Handles a rejected refresh. If the peer still has the dialog, another attempt follows. */
  refused(dialog: Dialog, response: SipResponse): void {
    const { statusCode } = response;
    if (statusCode === 408 || statusCode === 481) this.#options.endDialog(dialog, EXPIRED);
  }
}

const MOST_GRACE_S = 32;
/** Longer than the timeout of a refresh. */
const RETRY_S = 40;
const EXPIRED = { cause: 408, text: 'The session expired' };
