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

/** Where a message came from or goes to. */
export interface Remote {
  transport: TransportName;
  /** An IP address, without brackets. */
  host: string;
  port: number;
  /** TCP and TLS: the connection a request came on, which its responses use while it is open (RFC 3261 §18.2.2). */
  connectionId: number | null;
  /** TLS: the name or address that the peer's certificate must prove. Default: `host`. */
  name?: string;
}

/** What the SIP core needs from the network. */
export interface Network {
  /** `onFailure` is called at most once, and never before `send` has returned. */
  send(bytes: Buffer, remote: Remote, onFailure: () => void): void;
  /** A peer that owed an answer gave none: its connection may be dead, so the next request opens another one. */
  distrust(remote: Remote): void;
}

export interface NetworkListener {
  onMessage(message: SipMessage, source: Remote): void;
  /** True if a message belongs to a call or a request of ours. */
  isExpected(message: SipMessage): boolean;
  /** Nobody listens there (ICMP), or the connection was closed: requests in flight to it are lost. */
  onUnreachable(remote: Remote): void;
}

/** RFC 3261 §19.1.2. */
export function defaultPort(transport: TransportName): number {
  return transport === 'tls' ? 5061 : 5060;
}

export function remoteKey(remote: Remote): string {
  return `${remote.transport}:${remote.host}:${remote.port}`;
}

/** Notes the real source in the top Via, which later tells where responses go (RFC 3261 §18.2.1, RFC 3581 §4). */
export function stampSource(request: SipRequest, via: Via, source: Remote): void {
  const wantsPort = via.params.has('rport');
  if (wantsPort) via.params.set('rport', String(source.port));
  if (wantsPort || via.host !== uriHost(source.host)) via.params.set('received', source.host);
  replaceTopVia(request, via);
}

/** Where the response to a request goes whose Via was stamped (RFC 3261 §18.2.2). */
export function responseRemote(request: SipRequest, source: Remote): Remote {
  const via = parseVia(header(request, 'via') ?? '');
  // Should its connection be closed by then, the peer listens where its Via says.
  if (source.transport !== 'udp') return { ...source, port: via.port ?? defaultPort(source.transport) };
  // `maddr` is not followed: it would let anybody aim our responses at a third party.
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

/** Length of the first element of a Via line; Via values hold no quoted commas worth the name. */
function topValueLength(line: string): number {
  const comma = line.indexOf(',');
  return comma === -1 ? line.length : comma;
}
