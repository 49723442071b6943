export interface WireAddress {
  /** An IP address without brackets, or the host name of `SIP_HOST`. */
  host: string;
  port: number;
}

/** One SIP message as it was on the wire, with its secrets masked. Plain data, which crosses threads. */
export interface WireMessage {
  /** The Call-ID header. */
  sipCallId: string;
  /** Wall time, in milliseconds since the epoch. */
  atMs: number;
  direction: 'sent' | 'received';
  /** Such as `udp`. */
  transport: string;
  /** Null where a drachtio-server does not say. */
  local: WireAddress | null;
  remote: WireAddress | null;
  /** The bytes, one character each (Latin-1), so that any body survives. */
  text: string;
}

/** A message of a call. */
export interface CallMessage extends WireMessage {
  callId: string;
  /** `agent`, `customer` or the id of a further leg. */
  leg: string;
}
