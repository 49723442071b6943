import { useSyncExternalStore } from 'react';
import { api, apiIn, dataOf } from '../app/api.ts';
import { ApiError } from '../app/api-error.ts';
import { PhoneClient } from './phone-client.ts';
import type { PhoneState } from './phone-state.ts';

/** A supervisor's browser listens to a call, whispers to the agent, or barges in. */

export type SupervisionMode = 'listen' | 'whisper' | 'barge';

export interface Supervision {
  readonly callId: string;
  readonly mode: SupervisionMode;
  /** Null until the server dials this browser. */
  readonly id: string | null;
  /** The supervisor's phone, which answers automatically. */
  readonly phone: PhoneClient;
}

let current: Supervision | null = null;
const watchers = new Set<() => void>();

/** The supervision of this tab, which continues on other pages. */
export function useSupervision(): Supervision | null {
  return useSyncExternalStore(subscribe, () => current);
}

/** State of its phone: `call.phase` is `answered` once the supervisor hears the call. */
export function usePhoneState(phone: PhoneClient): PhoneState {
  return useSyncExternalStore(phone.subscribe, phone.getState);
}

/** Rings this browser as a supervisor of a call. Replaces an earlier supervision. @throws ApiError, MicrophoneError */
export async function startSupervision(callId: string, mode: SupervisionMode): Promise<void> {
  await endSupervision();
  const phone = new PhoneClient({
    purpose: 'supervise',
    callId,
    answersItself: () => true,
    isSilent: mode === 'listen',
  });
  const started: Supervision = { callId, mode, id: null, phone };
  show(started);
  try {
    phone.start();
    await untilOnline(phone);
    const body = { mode, endpoint: { type: 'webrtc' as const } };
    const { supervision } = await dataOf(
      api.POST('/dialer/click2call/{id}/supervise', { params: { path: { id: callId } }, body }),
    );
    if (current !== started) return;
    show({ ...started, id: supervision.id });
    whenEnded(phone, () => leave(phone));
  } catch (error) {
    leave(phone);
    throw error;
  }
}

/** Changes the mode. The first audible mode opens the microphone. @throws ApiError, MicrophoneError */
export async function changeSupervision(mode: SupervisionMode): Promise<void> {
  if (current === null || current.id === null) return;
  const { callId, id, phone } = current;
  if (mode !== 'listen') await phone.speak();
  if (current?.phone !== phone) return;
  const path = { id: callId, supervision_id: id };
  const { PATCH } = apiIn(phone.workspaceId);
  await dataOf(PATCH('/dialer/click2call/{id}/supervise/{supervision_id}', { params: { path }, body: { mode } }));
  if (current?.phone === phone) show({ ...current, mode });
}

/** The call continues without the supervisor. */
export async function endSupervision(): Promise<void> {
  if (current === null) return;
  const { phone } = current;
  if (phone.getState().link === 'online') await phone.hangUp();
  leave(phone);
}

function leave(phone: PhoneClient): void {
  phone.stop();
  if (current?.phone === phone) show(null);
}

/** @throws ApiError if the phone cannot connect */
async function untilOnline(phone: PhoneClient): Promise<void> {
  const isSettled = ({ link, problem }: PhoneState) => link === 'online' || problem !== null || link === 'off';
  await until(phone, isSettled);
  const { link, problem } = phone.getState();
  if (link === 'online') return;
  throw new ApiError({ status: 0, code: problem?.code ?? 'CANCELLED', message: problem?.message ?? '' });
}

function whenEnded(phone: PhoneClient, then: () => void): void {
  void until(phone, ({ ended, link }) => ended !== null || link === 'off').then(then);
}

async function until(phone: PhoneClient, isTrue: (state: PhoneState) => boolean): Promise<void> {
  if (isTrue(phone.getState())) return;
  await new Promise<void>((resolve) => {
    const stop = phone.subscribe(() => {
      if (!isTrue(phone.getState())) return;
      stop();
      resolve();
    });
  });
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function show(next: Supervision | null): void {
  current = next;
  for (const watcher of watchers) watcher();
}
