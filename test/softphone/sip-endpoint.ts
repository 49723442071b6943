import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, isIPv6, type Server, type Socket } from 'node:net';
import {
  parseMessage,
  type SipMessage,
  StreamFramer,
  serializeMessage,
  uriHost,
  withoutBrackets,
} from '../../sip/message/index.ts';

/** Source or destination of a message; TCP responses use the connection of the request. */
export interface SipPeer {
  transport: 'udp' | 'tcp';
  host: string;
  port: number;
  connection?: Socket;
}

export interface SipEndpointOptions {
  host: string;
  /** 0: a port that is free for UDP and TCP. */
  port: number;
  onMessage: (message: SipMessage, from: SipPeer) => void;
}

/** One SIP port for UDP and TCP. Invalid messages are counted and dropped. */
export class SipEndpoint {
  readonly host: string;
  /** Bound address as in URIs, with brackets for IPv6. */
  readonly uriHost: string;
  readonly port: number;
  unreadable = 0;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #connections = new Map<string, Socket>();
  readonly #sockets = new Set<Socket>();
  readonly #onMessage: SipEndpointOptions['onMessage'];
  #closed: Promise<void> | null = null;

  private constructor(options: SipEndpointOptions, udp: UdpSocket, tcp: Server) {
    this.host = options.host;
    this.uriHost = uriHost(options.host);
    this.port = udp.address().port;
    this.#onMessage = options.onMessage;
    this.#udp = udp;
    this.#tcp = tcp;
    udp.on('message', (bytes, remote) =>
      this.#receive(bytes, { transport: 'udp', host: remote.address, port: remote.port }),
    );
    // ICMP errors of an unreachable peer.
    udp.on('error', () => {});
    tcp.on('connection', (connection) => this.#adopt(connection));
  }

  static async open(options: SipEndpointOptions): Promise<SipEndpoint> {
    for (let attempt = 0; ; attempt++) {
      const udp = createSocket(isIPv6(options.host) ? 'udp6' : 'udp4');
      const tcp = createServer();
      try {
        udp.bind(options.port, options.host);
        await once(udp, 'listening');
        tcp.listen(udp.address().port, options.host);
        await once(tcp, 'listening');
        return new SipEndpoint(options, udp, tcp);
      } catch (error) {
        udp.close();
        tcp.close();
        if (options.port !== 0 || attempt === 20) throw error;
      }
    }
  }

  send(message: SipMessage, to: SipPeer): void {
    if (this.#closed !== null) return;
    const bytes = serializeMessage(message);
    if (to.transport === 'udp') {
      this.#udp.send(bytes, to.port, withoutBrackets(to.host), () => {});
      return;
    }
    this.#connectionTo(to).write(bytes);
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#closed ??= Promise.all([
      new Promise<void>((resolve) => this.#udp.close(() => resolve())),
      new Promise<void>((resolve) => this.#tcp.close(() => resolve())),
    ]).then(() => {});
    return this.#closed;
  }

  #connectionTo(to: SipPeer): Socket {
    if (to.connection !== undefined && !to.connection.destroyed) return to.connection;
    const existing = this.#connections.get(`${to.host}:${to.port}`);
    if (existing !== undefined && !existing.destroyed) return existing;
    const connection = connect(to.port, withoutBrackets(to.host));
    this.#adopt(connection, to);
    return connection;
  }

  #adopt(connection: Socket, to?: { host: string; port: number }): void {
    const framer = new StreamFramer();
    const remote = to ?? { host: connection.remoteAddress ?? '', port: connection.remotePort ?? 0 };
    const name = `${remote.host}:${remote.port}`;
    this.#connections.set(name, connection);
    this.#sockets.add(connection);
    connection.setNoDelay(true);
    connection.on('error', () => {});
    connection.on('close', () => {
      this.#sockets.delete(connection);
      if (this.#connections.get(name) === connection) this.#connections.delete(name);
    });
    connection.on('data', (chunk) => {
      try {
        for (const frame of framer.push(chunk)) {
          if (frame.type === 'ping') connection.write('\r\n');
          else this.#receive(frame.bytes, { transport: 'tcp', ...remote, connection });
        }
      } catch {
        this.unreadable++;
        connection.destroy();
      }
    });
  }

  #receive(bytes: Buffer, from: SipPeer): void {
    // Keep-alives (RFC 5626 section 4.4.1) are CRLFCRLF.
    if (bytes.length <= 4) return;
    let message: SipMessage;
    try {
      message = parseMessage(bytes);
    } catch {
      this.unreadable++;
      return;
    }
    this.#onMessage(message, from);
  }
}
