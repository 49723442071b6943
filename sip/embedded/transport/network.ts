import { header, headers, parseMessage, parseVia, type SipMessage, SipParseError } from '../../message/index.ts';
import { type Network, type NetworkListener, type Remote, stampSource, type TransportName } from './remote.ts';
import { openTcpTransport, type TcpTransport } from './tcp-transport.ts';
import { openUdpTransport, type UdpTransport } from './udp-transport.ts';

export interface NetworkOptions {
  host: string;
  port: number;
  transports: readonly TransportName[];
  listener: NetworkListener;
  /** A request that cannot be read, but can be answered. Its Via is stamped. */
  onBroken: (error: SipParseError, source: Remote) => void;
  /** A message made us throw: a fault of ours. It is dropped, so that one message cannot end every call. */
  onFault: (error: unknown) => void;
}

export interface OpenNetwork extends Network {
  readonly port: number;
  close(): Promise<void>;
  dump(): unknown;
}

/** Opens the SIP sockets, UDP and TCP on the same port. @throws the error of `bind` or `listen`. */
export async function openNetwork(options: NetworkOptions): Promise<OpenNetwork> {
  let dropped = 0;
  const receive = (bytes: Buffer, source: Remote): void => {
    // Keepalives (CRLF, zeros), STUN and RTP start with no letter (RFC 5626 §4.4, RFC 5389 §6).
    if (bytes.length < SHORTEST_MESSAGE || !isLetter(bytes[0])) {
      dropped++;
      return;
    }
    try {
      const message = parseMessage(bytes);
      if (message.kind === 'request') stampTopVia(message, source);
      options.listener.onMessage(message, source);
    } catch (error) {
      dropped++;
      if (!(error instanceof SipParseError)) options.onFault(error);
      else if (error.request && canAnswer(error.request, source)) options.onBroken(error, source);
    }
  };

  /** What sockets call back, where a throw would end the thread. */
  const contained = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      options.onFault(error);
    }
  };

  const wantsUdp = options.transports.includes('udp');
  const wantsTcp = options.transports.includes('tcp');
  const openUdp = (): Promise<UdpTransport> =>
    openUdpTransport({
      host: options.host,
      port: options.port,
      onDatagram: (bytes, host, port) => receive(bytes, { transport: 'udp', host, port, connectionId: null }),
      onUnreachable: (host, port) =>
        contained(() => options.listener.onUnreachable({ transport: 'udp', host, port, connectionId: null })),
    });
  const openTcp = (port: number): Promise<TcpTransport> =>
    openTcpTransport({
      host: options.host,
      port,
      onFrame: (bytes, host, port, connectionId) => receive(bytes, { transport: 'tcp', host, port, connectionId }),
    });

  const { udp, tcp } = await openSamePort(wantsUdp ? openUdp : null, wantsTcp ? openTcp : null, options.port);
  return {
    port: udp?.port ?? tcp?.port ?? 0,
    send(bytes, remote, whenFailed) {
      const onFailure = (): void => contained(whenFailed);
      if (remote.transport === 'udp' && udp) {
        // Responses go wherever requests claim to come from, which must not cost a socket each.
        const wantsErrors = bytes.toString('latin1', 0, 4) !== 'SIP/';
        udp.send({ bytes, host: remote.host, port: remote.port, wantsErrors, onFailure });
      } else if (remote.transport === 'tcp' && tcp) {
        tcp.send(bytes, remote.host, remote.port, remote.connectionId, onFailure);
      } else setImmediate(onFailure);
    },
    distrust(remote) {
      if (remote.transport === 'tcp') tcp?.distrust(remote.host, remote.port);
    },
    async close() {
      await Promise.all([udp?.close(), tcp?.close()]);
    },
    dump: () => ({ dropped, udp: udp?.dump() ?? null, tcp: tcp?.dump() ?? null }),
  };
}

/** With "any port", the one that UDP was given may be taken for TCP: then another is tried. */
async function openSamePort(
  openUdp: (() => Promise<UdpTransport>) | null,
  openTcp: ((port: number) => Promise<TcpTransport>) | null,
  port: number,
): Promise<{ udp: UdpTransport | null; tcp: TcpTransport | null }> {
  for (let attempt = 1; ; attempt++) {
    const udp = openUdp ? await openUdp() : null;
    try {
      return { udp, tcp: openTcp ? await openTcp(udp?.port ?? port) : null };
    } catch (error) {
      await udp?.close();
      if (port !== 0 || udp === null || attempt === MAX_PORT_ATTEMPTS) throw error;
    }
  }
}

function stampTopVia(request: SipMessage & { kind: 'request' }, source: Remote): void {
  const via = header(request, 'via');
  if (via === undefined) throw new SipParseError('BAD_VIA', 'A request has no Via');
  stampSource(request, parseVia(via), source);
}

/** Without a Via there is no way back, and an ACK is never answered. */
function canAnswer(request: SipMessage & { kind: 'request' }, source: Remote): boolean {
  if (request.method === 'ACK' || headers(request, 'via').length === 0) return false;
  try {
    stampTopVia(request, source);
    return true;
  } catch {
    return false;
  }
}

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a));
}

const SHORTEST_MESSAGE = 16;
const MAX_PORT_ATTEMPTS = 10;
