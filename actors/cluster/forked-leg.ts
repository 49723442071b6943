import type { HangupCause, LegEvent } from '../../machines/events.ts';
import type { LegDialog } from '../../sip/sip-gateway.ts';
import { BUSY, hungUp, type RingingLeg, type RingRequest, UNREACHED, type Unreached } from '../phones/browser-leg.ts';
import type { OpenPhoneMedia } from '../phones/phone-media.ts';

export interface ForkOptions extends Pick<RingRequest, 'signal' | 'onEvent'> {
  openMedia: OpenPhoneMedia;
}

/** Rings the phones of one node. Calls back only after it returns. */
export type StartBranch = (options: BranchOptions) => RingingLeg;

export interface BranchOptions extends Pick<RingRequest, 'signal' | 'onEvent'> {
  openMedia: OpenPhoneMedia;
  onUnreached: (reason: Unreached) => void;
}

/**
 * Rings a user's phones on several nodes, as one leg: it rings when the first phone rings, the first phone to answer
 * gets it, and it is refused when no phone of any node can be reached.
 */
export function forkLeg({ signal, onEvent, openMedia }: ForkOptions, starts: readonly StartBranch[]): LegDialog {
  const branches = new Set<RingingLeg>();
  const unreached = new Map<RingingLeg, Unreached>();
  /** Branch of the phone that answered. */
  let answering: RingingLeg | null = null;
  let isRinging = false;
  let isAnswered = false;
  let isOver = false;

  for (const start of starts) {
    const branch: RingingLeg = start({
      signal,
      onEvent: (event) => receive(branch, event),
      openMedia: (options) => answer(branch, options),
      onUnreached(reason) {
        unreached.set(branch, reason);
        refuseIfUnreached();
      },
    });
    branches.add(branch);
  }
  signal.addEventListener('abort', () => end('NORMAL_CLEARING', null), { once: true });

  async function answer(branch: RingingLeg, options: Parameters<OpenPhoneMedia>[0]) {
    if (!branches.has(branch)) return null;
    answering = branch;
    for (const other of branches) {
      if (other === branch) continue;
      branches.delete(other);
      other.answeredElsewhere();
    }
    return await openMedia(options);
  }

  function receive(branch: RingingLeg, event: LegEvent): void {
    if (!branches.has(branch)) return;
    switch (event.type) {
      case 'leg.ringing':
        unreached.delete(branch);
        if (!isRinging) onEvent(event);
        isRinging = true;
        return;
      case 'leg.refused':
      case 'leg.ended':
      case 'leg.lost':
        branches.delete(branch);
        end(event.type === 'leg.lost' ? 'NETWORK_OUT_OF_ORDER' : event.hangupCause, event);
        return;
      case 'leg.answered':
        isAnswered = true;
    }
    onEvent(event);
  }

  function refuseIfUnreached(): void {
    if (answering !== null || [...branches].some((branch) => !unreached.has(branch))) return;
    const refusal = [...unreached.values()].includes(BUSY) ? BUSY : UNREACHED;
    end(refusal.hangupCause, { type: 'leg.refused', ...refusal });
  }

  function end(cause: HangupCause, event: LegEvent | null): void {
    if (isOver) return;
    isOver = true;
    const rest = [...branches];
    branches.clear();
    for (const branch of rest) branch.hangup(cause);
    if (event !== null && !signal.aborted) onEvent(event);
  }

  return {
    hangup: (cause) => end(cause, hungUp(cause, isAnswered)),
    hold(isHeld) {
      if (isAnswered) answering?.hold(isHeld);
    },
    offerAgain() {},
  };
}
