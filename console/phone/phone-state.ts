import { type CallProgress, NO_PROGRESS } from './call-progress.ts';
import type { ServerCall } from './phone-messages.ts';
import type { Quality } from './quality.ts';

/** Immutable state of a phone. */
export interface PhoneState {
  /** `off`: does not ring. `reconnecting`: the socket is lost; a call continues. */
  readonly link: 'off' | 'connecting' | 'online' | 'reconnecting';
  /** Why the phone switched off. */
  readonly problem: PhoneProblem | null;
  readonly call: PhoneCall | null;
  readonly ended: EndedCall | null;
  readonly microphone: MicrophoneStatus;
  /** The browser blocks sound until the user clicks: `PhoneClient.play`. */
  readonly isPlaybackBlocked: boolean;
  /** Null before the first measurement, and without a call. */
  readonly quality: Quality | null;
}

/** `code` of the server's error, or `REPLACED`: another tab took over this phone. */
export interface PhoneProblem {
  readonly code: string;
  readonly message: string;
}

/** `unknown`: not used yet. */
export type MicrophoneStatus = 'unknown' | 'asking' | 'on' | MicrophoneFault;

/** `insecure`: the page is served over plain http. */
export type MicrophoneFault = 'denied' | 'missing' | 'busy' | 'insecure';

export function isFault(status: MicrophoneStatus): status is MicrophoneFault {
  return status !== 'unknown' && status !== 'asking' && status !== 'on';
}

export type Purpose = 'agent' | 'supervise';

export interface PhoneCall {
  readonly callId: string;
  readonly referenceId: string;
  /** `agent`, or the id of the leg. */
  readonly legId: string;
  readonly role: 'agent' | 'party' | 'supervisor';
  /** As the caller sent it. Null if it was withheld. */
  readonly customerNumber: string | null;
  /** `connecting`: answered, but audio does not flow yet. */
  readonly phase: 'ringing' | 'connecting' | 'answered' | 'ending';
  /** False until its audio is connected, for example after a reload. */
  readonly isAudible: boolean;
  readonly isHeld: boolean;
  readonly isMuted: boolean;
  /** Progress from the call's events. */
  readonly progress: CallProgress;
}

export interface EndedCall {
  readonly callId: string;
  readonly customerNumber: string | null;
  /** Cause for the leg of this phone. Null: it ended while the socket was lost. */
  readonly hangupCause: string | null;
  /** ISO 8601. */
  readonly at: string;
  readonly progress: CallProgress;
}

export const PHONE_OFF: PhoneState = {
  link: 'off',
  problem: null,
  call: null,
  ended: null,
  microphone: 'unknown',
  isPlaybackBlocked: false,
  quality: null,
};

export function callOf(known: ServerCall, { isMuted }: { isMuted: boolean }): PhoneCall {
  return {
    callId: known.call_id,
    referenceId: known.reference_id,
    legId: known.leg_id,
    role: known.role,
    customerNumber: known.customer_number,
    phase: known.state,
    isAudible: false,
    isHeld: known.held,
    isMuted,
    progress: NO_PROGRESS,
  };
}

export function endedOf({ callId, customerNumber, progress }: PhoneCall, hangupCause: string | null): EndedCall {
  return { callId, customerNumber, hangupCause, progress, at: new Date().toISOString() };
}

/** Whether a call ends for this phone, but perhaps not for the other party. */
export function isOnlyForPhone(hangupCause: string | null): boolean {
  return hangupCause === null || LEAVING.has(hangupCause);
}

const LEAVING = new Set(['ANSWERED_ELSEWHERE', 'BLIND_TRANSFER', 'ATTENDED_TRANSFER']);
