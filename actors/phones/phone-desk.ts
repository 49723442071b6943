import type { BrowserVoice, Direction } from '../../media/webrtc/webrtc-plane.ts';

/** Browsers as phones of users. Implemented in `phone-desk.actor.ts`. */
export interface PhoneDesk {
  /** Null while browsers can take part in calls; else why not, and what to do. */
  readonly unavailable: string | null;
  /**
   * A token that connects one phone, once.
   * @throws TandemError WEBRTC_NOT_AVAILABLE
   */
  mint(holder: PhoneHolder): { token: string; expiresAt: Date };
  /** Takes a token of `mint`. Null: unknown, used or expired. */
  connect(token: string, outlet: PhoneOutlet): ConnectedPhone | null;
  /** Takes the token of a `welcome`, within ten seconds after its socket was lost. Null: unknown, used or expired. */
  resume(token: string, outlet: PhoneOutlet): ConnectedPhone | null;
}

/** A phone rings for the legs of its user: those of agents and third parties, or those of supervisors. */
export interface PhoneHolder {
  workspaceId: string;
  userId: number;
  purpose: PhonePurpose;
  /** Rings for this call alone. Null: for every call. */
  callId: string | null;
}

export type PhonePurpose = 'agent' | 'supervise';

/** The socket of a phone. */
export interface PhoneOutlet {
  send(notice: PhoneNotice): void;
  close(code: number, reason: string): void;
}

export interface ConnectedPhone {
  /** The one that `mint` got. */
  readonly holder: PhoneHolder;
  /**
   * Carries out a request; resolves with the fields of the reply.
   * @throws TandemError CALL_NOT_LIVE, VALIDATION_FAILED, WEBRTC_NOT_AVAILABLE
   */
  request(request: PhoneRequest): Promise<object>;
  /** The socket was lost. Without a `resume` within ten seconds the phone is gone, and its call with it. */
  detach(): void;
  /** The phone is gone. Idempotent. */
  leave(): void;
}

/** Requests about a call name it: one that crosses the end of its call does not meet the next. */
export type PhoneRequest =
  | { type: 'answer' | 'decline' | 'hangup'; callId: string }
  | { type: 'create_transport'; callId: string; direction: Direction }
  | { type: 'connect_transport'; callId: string; transportId: string; dtlsParameters: DtlsParameters }
  | { type: 'restart_ice'; callId: string; transportId: string }
  | { type: 'produce'; callId: string; transportId: string; voice: BrowserVoice }
  | { type: 'consume'; callId: string; transportId: string }
  | { type: 'resume_consumer'; callId: string; consumerId: string }
  | { type: 'dtmf'; callId: string; digit: string; durationMs: number };

/** As a browser has them (RFC 8122). */
export interface DtlsParameters {
  role: 'auto' | 'client' | 'server';
  fingerprints: { algorithm: 'sha-1' | 'sha-224' | 'sha-256' | 'sha-384' | 'sha-512'; value: string }[];
}

/** What a phone is sent without a request. */
export type PhoneNotice =
  | { type: 'welcome'; resume_token: string; purpose: PhonePurpose; call: PhoneCall | null }
  | { type: 'incoming'; call: PhoneCall }
  /** Audio flows. */
  | { type: 'answered'; call_id: string }
  | { type: 'held' | 'resumed'; call_id: string }
  | { type: 'ended'; call_id: string; hangup_cause: string };

/** The call of a phone, as a page shows it. */
export interface PhoneCall {
  call_id: string;
  reference_id: string;
  leg_id: string;
  role: 'agent' | 'party' | 'supervisor';
  customer_number: string | null;
  state: 'ringing' | 'connecting' | 'answered';
  held: boolean;
}
