import {
  formatVia,
  header,
  parseVia,
  type SipMessage,
  type SipRequest,
  uriHost,
  type Via,
} from '../../message/index.ts';

export type TransportName = 'udp' | 'tcp' | 'tls';

/** Source or destination of a message. */
export interface Remote {
  transport: TransportName;
  /** An IP address, without brackets. */
  host: string;
  port: number;
  /** TCP and TLS: the connection of a request, which its responses use while it is open (RFC 3261 §18.2.2). */
  connectionId: number | null;
  /** TLS: the name or address that the peer's certificate must prove. Default: `host`. */
  name?: string;
}

/** The TCP or TLS connection that a message was written to. */
export interface SentOver {
  connectionId: number;
  /** It was established before, so the peer may have closed it already. */
  isReused: boolean;
}

/** The network port of the SIP core. */
export interface Network {
  /** Calls `onFailure` at most once, always asynchronously. Returns null without a connection. */
  send(bytes: Buffer, remote: Remote, onFailure: () => void): SentOver | null;
  /** A peer did not respond: its connection may be dead, so the next request opens another one. */
  distrust(remote: Remote): void;
}

export interface NetworkListener {
  onMessage(message: SipMessage, source: Remote): void;
  /** Whether a message belongs to a call or a request of ours. */
  isExpected(message: SipMessage): boolean;
  /** The port is closed (ICMP), or this connection was: pending requests over it are lost. */
  onUnreachable(remote: Remote): void;
}

/** RFC 3261 §19.1.2. */
export function defaultPort(transport: TransportName): number {
  return transport === 'tls' ? 5061 : 5060;
}

export function remoteKey(remote: Remote): string {
  return `${remote.transport}:${remote.host}:${remote.port}`;
}

/** Writes the actual source into the top Via, for routing responses (RFC 3261 §18.2.1, RFC 3581 §4). */
export function stampSource(request: SipRequest, via: Via, source: Remote): void {
  const wantsPort = via.params.has('rport');
  if (wantsPort) via.params.set('rport', String(source.port));
  if (wantsPort || via.host !== uriHost(source.host)) via.params.set('received', source.host);
  replaceTopVia(request, via);
}

/** Destination of the response to a request with a stamped Via (RFC 3261 §18.2.2). */
export function responseRemote(request: SipRequest, source: Remote): Remote {
  const via = parseVia(header(request, 'via') ?? '');
  // If its connection has closed by then, the peer listens at the port in its Via.
  if (source.transport !== 'udp') return { ...source, port: via.port ?? defaultPort(source.transport) };
  // Ignores `maddr`, which could direct our responses at a third party.
  if (via.params.has('rport')) return source;
  return { ...source, port: via.port ?? 5060 };
}

function replaceTopVia(request: SipRequest, via: Via): void {
  const index = request.headers.findIndex(({ key }) => key === 'via');
  const line = request.headers[index];
  if (!line) return;
  const comma = topValueLength(line.value);
  request.headers[index] = { ...line, value: formatVia(via) + line.value.slice(comma) };
}

/** Length of the first element of a Via line. Quoted commas do not occur in Via. */
function topValueLength(line: string): number {
  const comma = line.indexOf(',');
  return comma === -1 ? line.length : comma;
}
