import type { Direction, ProducerParameters } from '../../media/webrtc/webrtc-plane.ts';

/** Uses browsers as phones. Implemented in `phone-desk.actor.ts`. */
export interface PhoneDesk {
  /** Null if browsers can take part in calls; otherwise the reason and the fix. */
  readonly unavailable: string | null;
  /**
   * Creates a token that connects one phone, once, to any node.
   * @throws TandemError WEBRTC_NOT_AVAILABLE; NODE_UNREACHABLE if the call's node does not respond
   */
  mint(holder: PhoneHolder): MintedToken | Promise<MintedToken>;
  /**
   * Connects with a token of `mint`. Null: unknown, used or expired.
   * @throws TandemError RATE_LIMITED; NODE_UNREACHABLE if the token's node does not respond
   */
  connect(token: string, outlet: PhoneOutlet): ConnectedPhone | null | Promise<ConnectedPhone | null>;
  /**
   * Reconnects with the token of a `welcome`, within ten seconds after the socket was lost. Null: unknown, used or
   * expired.
   */
  resume(token: string, outlet: PhoneOutlet): ConnectedPhone | null | Promise<ConnectedPhone | null>;
}

export interface MintedToken {
  token: string;
  expiresAt: Date;
}

/** Owner of a phone. The purpose decides whether it rings for agent and third-party legs or for supervisor legs. */
export interface PhoneHolder {
  workspaceId: string;
  userId: number;
  purpose: PhonePurpose;
  /** Null: rings for every call. */
  callId: string | null;
  /** Credentials of the request that created the token, for the socket's server. Plain JSON. */
  credentials: unknown;
}

export type PhonePurpose = 'agent' | 'supervise';

export interface PhoneOutlet {
  send(notice: PhoneNotice): void;
  close(code: number, reason: string): void;
}

export interface ConnectedPhone {
  readonly holder: PhoneHolder;
  /**
   * Carries out a request and resolves with the reply's fields.
   * @throws TandemError CALL_NOT_LIVE, VALIDATION_FAILED, WEBRTC_NOT_AVAILABLE, NODE_UNREACHABLE
   */
  request(request: PhoneRequest): Promise<object>;
  /** Call it when the socket is lost. Without a `resume` within ten seconds the phone and its call end. */
  detach(): void;
  /** Removes the phone. Idempotent. */
  leave(): void;
}

/** Requests name their call, so that a late one cannot reach the next call. */
export type PhoneRequest =
  | { type: 'answer' | 'decline' | 'hangup'; callId: string }
  | { type: 'create_transport'; callId: string; direction: Direction }
  | { type: 'connect_transport'; callId: string; transportId: string; dtlsParameters: DtlsParameters }
  | { type: 'restart_ice'; callId: string; transportId: string }
  | { type: 'produce'; callId: string; transportId: string; voice: ProducerParameters }
  | { type: 'consume'; callId: string; transportId: string }
  | { type: 'resume_consumer'; callId: string; consumerId: string }
  | { type: 'dtmf'; callId: string; digit: string; durationMs: number };

/** As in browsers (RFC 8122). */
export interface DtlsParameters {
  role: 'auto' | 'client' | 'server';
  fingerprints: { algorithm: 'sha-1' | 'sha-224' | 'sha-256' | 'sha-384' | 'sha-512'; value: string }[];
}

export type PhoneNotice =
  | { type: 'welcome'; resume_token: string; purpose: PhonePurpose; call: PhoneCall | null }
  | { type: 'incoming'; call: PhoneCall }
  /** Audio flows. */
  | { type: 'answered'; call_id: string }
  | { type: 'held' | 'resumed'; call_id: string }
  | { type: 'ended'; call_id: string; hangup_cause: string };

/** Call of a phone, as a page shows it. */
export interface PhoneCall {
  call_id: string;
  reference_id: string;
  leg_id: string;
  role: 'agent' | 'party' | 'supervisor';
  customer_number: string | null;
  state: 'ringing' | 'connecting' | 'answered';
  held: boolean;
}
