export interface WireAddress {
  /** An IP address without brackets, or the host name of `SIP_HOST`. */
  host: string;
  port: number;
}

/** One SIP message on the wire, with its secrets masked. Plain data, which can cross threads. */
export interface WireMessage {
  sipCallId: string;
  /** Wall time, in milliseconds since the epoch. */
  atMs: number;
  direction: 'sent' | 'received';
  /** Such as `udp`. */
  transport: string;
  /** Null if a drachtio-server does not report it. */
  local: WireAddress | null;
  remote: WireAddress | null;
  /** The bytes, one character each (Latin-1), so that any body survives. */
  text: string;
}

export interface CallMessage extends WireMessage {
  callId: string;
  /** `agent`, `customer` or the id of an added leg. */
  leg: string;
}
