import { notifyFailed } from '../parts/notify.ts';
import { agentPhone } from './agent-phone.ts';
import { holdLegOf } from './call-progress.ts';
import type { PhoneCall } from './phone-state.ts';

/** Whether the leg that "hold" controls is on hold: the other party, or this phone in a conference. */
export function isOnHold({ progress, legId }: PhoneCall): boolean {
  return progress.heldLegs.includes(holdLegOf(progress, legId));
}

/** True if both parties talk and no transfer is in progress. */
export function canControl({ phase, progress }: PhoneCall): boolean {
  return phase === 'answered' && progress.stage === 'talking';
}

/** Actions of buttons and shortcuts. Failures show as a notification. */
export const callActions = {
  answer: () => void agentPhone.answer(),
  hangUp: () => void agentPhone.hangUp(),

  toggleMute(): void {
    const { call } = agentPhone.getState();
    if (call !== null && call.phase !== 'ringing') agentPhone.setMuted(!call.isMuted);
  },

  async toggleHold(): Promise<void> {
    const { call } = agentPhone.getState();
    if (call === null || !canControl(call)) return;
    await tried(isOnHold(call) ? agentPhone.controls?.resume() : agentPhone.controls?.hold());
  },

  async press(key: string): Promise<void> {
    await tried(agentPhone.controls?.press(key));
  },

  async completeTransfer(): Promise<void> {
    await tried(agentPhone.controls?.completeTransfer());
  },

  async cancelTransfer(): Promise<void> {
    await tried(agentPhone.controls?.cancelTransfer());
  },
};

async function tried(action: Promise<void> | undefined): Promise<void> {
  try {
    await action;
  } catch (error) {
    notifyFailed(error);
  }
}
