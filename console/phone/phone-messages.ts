import type { types } from 'mediasoup-client';

/** Messages of `/ws/phone`, see `docs/phone.md`. */

export interface ServerCall {
  call_id: string;
  reference_id: string;
  leg_id: string;
  role: 'agent' | 'party' | 'supervisor';
  customer_number: string | null;
  state: 'ringing' | 'connecting' | 'answered';
  held: boolean;
}

export type Notice =
  | { type: 'welcome'; resume_token: string; call: ServerCall | null }
  | { type: 'incoming'; call: ServerCall }
  | { type: 'answered' | 'held' | 'resumed'; call_id: string }
  | { type: 'ended'; call_id: string; hangup_cause: string };

/** Fields of each request besides `id` and `type`, and of its reply. */
export interface Requests {
  answer: [{ call_id: string }, { router_rtp_capabilities: types.RtpCapabilities }];
  decline: [{ call_id: string }, object];
  hangup: [{ call_id: string }, object];
  create_transport: [{ call_id: string; direction: 'send' | 'recv' }, { transport: types.TransportOptions }];
  connect_transport: [{ call_id: string; transport_id: string; dtls_parameters: types.DtlsParameters }, object];
  produce: [{ call_id: string; transport_id: string; rtp_parameters: types.RtpParameters }, { producer_id: string }];
  consume: [{ call_id: string; transport_id: string }, { consumer: types.ConsumerOptions }];
  resume_consumer: [{ call_id: string; consumer_id: string }, object];
  restart_ice: [{ call_id: string; transport_id: string }, { ice_parameters: types.IceParameters }];
  ping: [object, object];
  bye: [object, object];
}

export type SendRequest = <Type extends keyof Requests>(
  type: Type,
  fields: Requests[Type][0],
) => Promise<Requests[Type][1]>;
