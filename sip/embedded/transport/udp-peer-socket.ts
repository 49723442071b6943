import dgram from 'node:dgram';

export interface PeerSocketOptions {
  type: dgram.SocketType;
  /** Shared with the unconnected socket. */
  localHost: string;
  localPort: number;
  peerHost: string;
  peerPort: number;
  onDatagram: (bytes: Buffer, host: string, port: number) => void;
  /** An ICMP error: the port is closed. */
  onUnreachable: () => void;
  /** Takes over datagrams that this socket could not send because it never connected. */
  onUnsent: (bytes: Buffer, onFailure: () => void) => void;
  onClosed: () => void;
}

/** A socket connected to one peer. It queues datagrams while it connects, and closes after a minute without use. */
export class PeerSocket {
  readonly #options: PeerSocketOptions;
  readonly #socket: dgram.Socket;
  /** Null once it is connected, or closed. */
  #waiting: { bytes: Buffer; onFailure: () => void }[] | null = [];
  #idleTimer: NodeJS.Timeout;
  #closed: Promise<void> | null = null;

  constructor(options: PeerSocketOptions) {
    this.#options = options;
    const { type, localHost, localPort, peerHost, peerPort } = options;
    const socket = dgram.createSocket({ type, reusePort: true });
    this.#socket = socket;
    // Until it is connected this socket may receive datagrams of any peer, so it handles them like the main one.
    socket.on('message', (bytes, source) => options.onDatagram(bytes, source.address, source.port));
    socket.on('error', (error) => this.#failed(error));
    socket.on('connect', () => this.#connected());
    socket.bind({ port: localPort, address: localHost }, () => {
      if (!this.#closed) socket.connect(peerPort, peerHost);
    });
    this.#idleTimer = this.#closeWhenIdle();
  }

  send(bytes: Buffer, onFailure: () => void): void {
    if (this.#closed) {
      this.#options.onUnsent(bytes, onFailure);
      return;
    }
    clearTimeout(this.#idleTimer);
    this.#idleTimer = this.#closeWhenIdle();
    if (this.#waiting === null) this.#write(bytes, onFailure);
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push({ bytes, onFailure });
  }

  close(): Promise<void> {
    if (this.#closed) return this.#closed;
    clearTimeout(this.#idleTimer);
    this.#closed = new Promise((resolve) => this.#socket.close(() => resolve()));
    this.#options.onClosed();
    const unsent = this.#waiting ?? [];
    this.#waiting = null;
    for (const { bytes, onFailure } of unsent) this.#options.onUnsent(bytes, onFailure);
    return this.#closed;
  }

  #write(bytes: Buffer, onFailure: () => void): void {
    this.#socket.send(bytes, (error) => {
      if (!error) return;
      // A pending ICMP error is reported on the next send; other errors say nothing about the peer.
      if (isUnreachable(error)) this.#options.onUnreachable();
      onFailure();
    });
  }

  #connected(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const { bytes, onFailure } of waiting) this.#write(bytes, onFailure);
  }

  /** Connecting fails without descriptors or a route. Queued datagrams are then sent unconnected. */
  #failed(error: Error): void {
    if (this.#waiting !== null) void this.close();
    else if (isUnreachable(error)) this.#options.onUnreachable();
  }

  #closeWhenIdle(): NodeJS.Timeout {
    return setTimeout(() => void this.close(), IDLE_MS).unref();
  }
}

function isUnreachable(error: Error): boolean {
  return 'code' in error && UNREACHABLE.has(String(error.code));
}

const UNREACHABLE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH']);
const MAX_WAITING = 1000;
const IDLE_MS = 60_000;
