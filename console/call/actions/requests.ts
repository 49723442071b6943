import { api, dataOf } from '../../app/api.ts';

/** Requests on a live call. Each resolves once the server has acted. @throws ApiError */

const pathOf = (id: string) => ({ params: { path: { id } } });

export function hangUp(callId: string) {
  return dataOf(api.POST('/dialer/click2call/{id}/hangup', pathOf(callId)));
}

export function setMuted(callId: string, leg: string, muted: boolean) {
  const request = { ...pathOf(callId), body: { leg } };
  return dataOf(
    muted ? api.POST('/dialer/click2call/{id}/mute', request) : api.POST('/dialer/click2call/{id}/unmute', request),
  );
}

export function setHeld(callId: string, leg: string, held: boolean) {
  const request = { ...pathOf(callId), body: { leg } };
  return dataOf(
    held ? api.POST('/dialer/click2call/{id}/hold', request) : api.POST('/dialer/click2call/{id}/resume', request),
  );
}

export interface Transfer {
  leg: string;
  mode: 'blind' | 'attended';
  /** Null: the browser of this user. */
  number: string | null;
}

export function transfer(callId: string, { leg, mode, number }: Transfer) {
  const endpoint = number === null ? { type: 'webrtc' as const } : { type: 'phone' as const, number };
  const body = { leg, mode, endpoint };
  return dataOf(api.POST('/dialer/click2call/{id}/transfer', { ...pathOf(callId), body }));
}

export function completeTransfer(callId: string) {
  return dataOf(api.POST('/dialer/click2call/{id}/transfer/complete', pathOf(callId)));
}

export function cancelTransfer(callId: string) {
  return dataOf(api.DELETE('/dialer/click2call/{id}/transfer', pathOf(callId)));
}
