import type { SipParseError } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import { createReception } from './reception.ts';
import type { Network, NetworkListener, Remote, TransportName } from './remote.ts';
import { type DroppedMessages, SourceLimits } from './source-limits.ts';
import { openTcpTransport, type TcpTransport } from './tcp-transport.ts';
import { createTlsSecurity, type TlsSettings } from './tls-security.ts';
import { openUdpTransport, type UdpTransport } from './udp-transport.ts';

/** `onUntrusted`, `onLimited` and `messagesPerSecond` are described at `EmbeddedSipServerOptions`. */
export interface NetworkOptions {
  host: string;
  port: number;
  transports: readonly ('udp' | 'tcp')[];
  /** Null: no TLS. */
  tls: TlsSettings | null;
  onUntrusted: (name: string, reason: string) => void;
  listener: NetworkListener;
  /** Receives a malformed request that can be answered. Its Via is stamped. */
  onBroken: (error: SipParseError, source: Remote) => void;
  /** A message made us throw. It is dropped, so that it cannot end every call. */
  onFault: (error: unknown) => void;
  messagesPerSecond: number;
  onLimited: (dropped: DroppedMessages) => void;
  /** Receives each sent and each accepted message. Must not throw. */
  onSeen?: (direction: 'sent' | 'received', bytes: Buffer, remote: Remote) => void;
  clock: Clock;
}

export interface OpenNetwork extends Network {
  readonly port: number;
  /** Null: no TLS listener. */
  readonly tlsPort: number | null;
  close(): Promise<void>;
  dump(): unknown;
}

/**
 * Opens the SIP sockets, UDP and TCP on the same port, TLS on its own.
 * @throws the error of `bind` or `listen`, or of an unusable certificate or key.
 */
export async function openNetwork(options: NetworkOptions): Promise<OpenNetwork> {
  const { listener, onBroken, onFault, onSeen, clock, messagesPerSecond } = options;
  const limits = new SourceLimits({ perSecond: messagesPerSecond, burst: 2 * messagesPerSecond });
  let stopReport: (() => void) | null = null;
  const reportSoon = (): void => {
    stopReport ??= clock.after(LIMITED_REPORT_MS, () => {
      stopReport = null;
      options.onLimited(limits.takeDropped());
    });
  };
  const reception = createReception({
    ...{ listener, onBroken, onFault, limits, onLimited: reportSoon },
    ...(onSeen && { onSeen: (bytes, source) => onSeen('received', bytes, source) }),
  });
  const { receive } = reception;

  /** Catches errors in socket callbacks, which would end the thread. */
  const contained = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      options.onFault(error);
    }
  };

  const unreachable =
    (transport: TransportName) =>
    (host: string, port: number, connectionId: number | null = null): void =>
      contained(() => options.listener.onUnreachable({ transport, host, port, connectionId }));

  const wantsUdp = options.transports.includes('udp');
  const wantsTcp = options.transports.includes('tcp');
  const openUdp = (): Promise<UdpTransport> =>
    openUdpTransport({
      host: options.host,
      port: options.port,
      onDatagram: (bytes, host, port) => receive(bytes, { transport: 'udp', host, port, connectionId: null }),
      onUnreachable: unreachable('udp'),
    });
  const openTcp = (port: number): Promise<TcpTransport> =>
    openTcpTransport({
      ...{ host: options.host, port, clock },
      onClosed: unreachable('tcp'),
      onFrame: (bytes, host, port, connectionId) => receive(bytes, { transport: 'tcp', host, port, connectionId }),
    });
  const openTls = (settings: TlsSettings): Promise<TcpTransport> =>
    openTcpTransport({
      ...{ host: options.host, port: settings.port, clock },
      security: createTlsSecurity(settings),
      onUntrusted: options.onUntrusted,
      onClosed: unreachable('tls'),
      onFrame: (bytes, host, port, connectionId) => receive(bytes, { transport: 'tls', host, port, connectionId }),
    });

  const { udp, tcp } = await openSamePort(wantsUdp ? openUdp : null, wantsTcp ? openTcp : null, options.port);
  const tls = options.tls && (await openTls(options.tls).catch((error: unknown) => closeAndThrow([udp, tcp], error)));
  return {
    port: udp?.port ?? tcp?.port ?? 0,
    tlsPort: tls?.port || null,
    send(bytes, remote, whenFailed) {
      onSeen?.('sent', bytes, remote);
      const onFailure = (): void => contained(whenFailed);
      if (remote.transport === 'udp' && udp) {
        // Responses to forged sources must not cost a socket each.
        const wantsErrors = bytes.toString('latin1', 0, 4) !== 'SIP/';
        udp.send({ bytes, host: remote.host, port: remote.port, wantsErrors, onFailure });
        return null;
      }
      const streams = remote.transport === 'tcp' ? tcp : tls;
      if (streams && remote.transport !== 'udp') return streams.send(bytes, remote, onFailure);
      setImmediate(onFailure);
      return null;
    },
    distrust(remote) {
      if (remote.transport === 'tcp') tcp?.distrust(remote);
      else if (remote.transport === 'tls') tls?.distrust(remote);
    },
    async close() {
      stopReport?.();
      await Promise.all([udp?.close(), tcp?.close(), tls?.close()]);
    },
    dump: () => ({ ...reception.dump(), udp: udp?.dump() ?? null, tcp: tcp?.dump() ?? null, tls: tls?.dump() ?? null }),
  };
}

async function closeAndThrow(opened: ({ close(): Promise<void> } | null)[], error: unknown): Promise<never> {
  await Promise.all(opened.map((each) => each?.close()));
  throw error;
}

/** With "any port", UDP's port may be in use for TCP, so another one is tried. */
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

const LIMITED_REPORT_MS = 10_000;
const MAX_PORT_ATTEMPTS = 10;
