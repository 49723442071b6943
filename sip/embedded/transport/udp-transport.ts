import dgram from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

export interface UdpTransportOptions {
  host: string;
  /** 0 for any. */
  port: number;
  onDatagram: (bytes: Buffer, host: string, port: number) => void;
  /** An ICMP error: nobody listens at that address. */
  onUnreachable: (host: string, port: number) => void;
}

export interface UdpTransport {
  readonly port: number;
  send(datagram: UdpDatagram): void;
  close(): Promise<void>;
  dump(): unknown;
}

export interface UdpDatagram {
  bytes: Buffer;
  host: string;
  port: number;
  /** True to be told of a closed port, at the price of a socket for that peer. */
  wantsErrors: boolean;
  onFailure: () => void;
}

/**
 * One unconnected socket that hears everybody, and beside it, bound to the same port, a connected socket for each peer
 * that was sent something lately: the kernel reports ICMP errors to connected sockets only, and without them a closed
 * port looks like a slow one for 32 seconds. Where ports cannot be shared, there is just the one socket.
 *
 * @throws the `bind` error, `EADDRINUSE` included.
 */
export async function openUdpTransport(options: UdpTransportOptions): Promise<UdpTransport> {
  const type = isIPv6(options.host) ? 'udp6' : 'udp4';
  // Sharing a port would let a second server start unnoticed beside the first, so the port is first taken alone.
  const exclusive = await bind(dgram.createSocket({ type }), options.host, options.port);
  const { port } = exclusive.address();
  let main = exclusive;
  let canShare = false;
  if (process.platform === 'linux') {
    await closeSocket(exclusive);
    main = await bind(dgram.createSocket({ type, reusePort: true }), options.host, port);
    canShare = true;
  }
  main.on('message', (bytes, source) => options.onDatagram(bytes, source.address, source.port));
  main.on('error', () => {});
  trySetBuffers(main);

  const peers = new Map<string, PeerSocket>();
  let closed = false;

  return {
    port,
    send({ bytes, host: peerHost, port: peerPort, wantsErrors, onFailure }) {
      if (closed) return;
      if (!canShare || !wantsErrors) {
        main.send(bytes, peerPort, peerHost, (error) => error && onFailure());
        return;
      }
      const key = `${peerHost}:${peerPort}`;
      let peer = peers.get(key);
      if (peer) peers.delete(key);
      else {
        evictOldest(peers);
        peer = new PeerSocket({ type, options, port, peerHost, peerPort, onClosed: () => peers.delete(key) });
      }
      peers.set(key, peer);
      peer.send(bytes, onFailure);
    },
    async close() {
      closed = true;
      await Promise.all([...peers.values()].map((peer) => peer.close()));
      await closeSocket(main);
    },
    dump: () => ({ port, peers: peers.size }),
  };
}

interface PeerSocketOptions {
  type: dgram.SocketType;
  options: UdpTransportOptions;
  port: number;
  peerHost: string;
  peerPort: number;
  onClosed: () => void;
}

/** A socket connected to one peer. Datagrams wait while it connects; it closes when unused for a minute. */
class PeerSocket {
  readonly #settings: PeerSocketOptions;
  readonly #socket: dgram.Socket;
  #waiting: (() => void)[] | null = [];
  #idleTimer: NodeJS.Timeout;
  #closed: Promise<void> | null = null;

  constructor(settings: PeerSocketOptions) {
    this.#settings = settings;
    const { type, options, port, peerHost, peerPort } = settings;
    const socket = dgram.createSocket({ type, reusePort: true });
    this.#socket = socket;
    // Until it is connected this socket may be handed anybody's datagrams, so it reads them like the main one.
    socket.on('message', (bytes, source) => options.onDatagram(bytes, source.address, source.port));
    socket.on('error', () => options.onUnreachable(peerHost, peerPort));
    socket.on('connect', () => this.#flush());
    socket.bind({ port, address: options.host }, () => {
      if (!this.#closed) socket.connect(peerPort, peerHost);
    });
    this.#idleTimer = this.#closeWhenIdle();
  }

  send(bytes: Buffer, onFailure: () => void): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = this.#closeWhenIdle();
    const write = (): void => {
      this.#socket.send(bytes, (error) => {
        if (!error) return;
        // A pending ICMP error is reported to whatever is sent next.
        this.#settings.options.onUnreachable(this.#settings.peerHost, this.#settings.peerPort);
        onFailure();
      });
    };
    if (this.#waiting === null) write();
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(write);
  }

  close(): Promise<void> {
    if (this.#closed) return this.#closed;
    clearTimeout(this.#idleTimer);
    this.#settings.onClosed();
    this.#closed = closeSocket(this.#socket);
    return this.#closed;
  }

  #flush(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const write of waiting) write();
  }

  #closeWhenIdle(): NodeJS.Timeout {
    return setTimeout(() => void this.close(), IDLE_MS).unref();
  }
}

function evictOldest(peers: Map<string, PeerSocket>): void {
  if (peers.size < MAX_PEERS) return;
  const oldest = peers.values().next().value;
  if (oldest) void oldest.close();
}

async function bind(socket: dgram.Socket, address: string, port: number): Promise<dgram.Socket> {
  socket.bind({ port, address });
  await once(socket, 'listening');
  return socket;
}

function closeSocket(socket: dgram.Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

/** Bursts of calls must not be lost while JavaScript is busy; a kernel that allows less is no reason to fail. */
function trySetBuffers(socket: dgram.Socket): void {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  } catch {
    // The default stays.
  }
}

const MAX_PEERS = 256;
const MAX_WAITING = 1000;
const IDLE_MS = 60_000;
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
