import { useSyncExternalStore } from 'react';
import { api, bodyOf } from '../app/api.ts';
import { PhoneClient } from './phone-client.ts';
import { recall, remember } from './phone-memory.ts';
import type { PhoneState } from './phone-state.ts';

/** References of calls placed by this page, which it answers at once. */
const placed = new Set<string>();

/** The phone of this tab's user. It outlives the console's pages. */
export const agentPhone = new PhoneClient({
  purpose: 'agent',
  answersItself: ({ reference_id: reference }) => placed.has(reference),
  remember,
});

export function usePhone(): PhoneState {
  return useSyncExternalStore(agentPhone.subscribe, agentPhone.getState);
}

let recalling: Promise<void> | null = null;

/** Resumes the phone after a reload. */
export function continuePhone(): Promise<void> {
  recalling ??= recall().then((remembered) => {
    if (remembered !== null) agentPhone.start(remembered);
  });
  return recalling;
}

/** Lets calls ring. A rejected microphone shows in the state and can be allowed later. */
export async function goAvailable(): Promise<void> {
  await agentPhone.checkMicrophone().catch(() => {});
  agentPhone.start();
}

interface Placing {
  number: string;
  record: boolean;
}

/** Rings this browser, which answers automatically, and then dials the number. @throws ApiError, MicrophoneError */
export async function placeCall({ number, record }: Placing): Promise<void> {
  // Without a microphone the call would fail after dialing.
  await agentPhone.checkMicrophone();
  const reference = `phone-${crypto.randomUUID()}`;
  placed.add(reference);
  try {
    const body = {
      agent_endpoint: { type: 'webrtc' as const },
      customer_number: number,
      reference_id: reference,
      record,
    };
    await bodyOf(api.POST('/dialer/click2call', { body }));
  } catch (error) {
    placed.delete(reference);
    throw error;
  }
}

/** A phone belongs to one workspace. After a switch it reconnects once its call is over. */
export function followWorkspace(id: string): void {
  const { link, call } = agentPhone.getState();
  // Until it is online, the phone may still resume a call.
  if (link !== 'online' || call !== null || agentPhone.workspaceId === id) return;
  agentPhone.stop();
  agentPhone.start();
}
