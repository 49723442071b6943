import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { SipParseError, StreamFramer } from '../../message/index.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Remote, SentOver } from './remote.ts';
import type { TlsSecurity } from './tls-security.ts';

export interface TcpTransportOptions {
  host: string;
  port: number;
  clock?: Clock;
  security?: TlsSecurity;
  /** TLS: a peer did not prove its name, or aborted the handshake. */
  onUntrusted?: (name: string, reason: string) => void;
  /** A connection was closed: pending requests over it are lost. */
  onClosed?: (host: string, port: number, connectionId: number) => void;
  onFrame: (bytes: Buffer, host: string, port: number, connectionId: number) => void;
}

export interface TcpTransport {
  /** 0: it does not listen. */
  readonly port: number;
  /**
   * A request was not answered. New requests to that address use another connection, unless the present one has just
   * received a message: some carriers ignore OPTIONS. The old connection stays for its calls.
   */
  distrust(remote: Pick<Remote, 'host' | 'port'>): void;
  /** Uses the connection with that id if open, else one to that address and name, else a new one. */
  send(bytes: Buffer, remote: Omit<Remote, 'transport'>, onFailure: () => void): SentOver | null;
  close(): Promise<void>;
  dump(): unknown;
}

interface Connection {
  id: number;
  host: string;
  port: number;
  /** Lookup key for requests; null for inbound TLS connections, whose name is not proven. */
  key: string | null;
  socket: net.Socket;
  /** Accepted, or connected with its handshake done. */
  isEstablished: boolean;
  /** Beyond that, the peer counts as one that does not read. */
  mostUnsentBytes: number;
  /** Monotonic time of the last message; null before the first. */
  receivedAtMs: number | null;
  /** Deadline of the current message, or of a stranger's first one. */
  deadline: (() => void) | null;
  failures: Set<() => void>;
}

/** @throws the `listen` error, such as `EADDRINUSE`. */
export async function openTcpTransport(options: TcpTransportOptions): Promise<TcpTransport> {
  const connections = new Map<number, Connection>();
  const byAddress = new Map<string, Connection>();
  const clock = options.clock ?? systemClock;
  const counts = { refused: 0, tooSlow: 0, unreadable: 0 };
  let nextId = 1;
  let closed = false;

  const { security } = options;
  const accept = (socket: net.Socket): void => {
    if (connections.size >= MAX_CONNECTIONS) {
      counts.refused++;
      socket.destroy();
      return;
    }
    const { remoteAddress: host = '', remotePort: port = 0 } = socket;
    const key = security ? null : keyOf({ host, port });
    startDeadline(adopt(socket, { host, port, key, isEstablished: true, mostUnsentBytes: MAX_UNSENT_BYTES }));
  };
  const server = createServer(security, accept);
  if (server) {
    server.maxConnections = MAX_CONNECTIONS;
    server.on('drop', () => counts.refused++);
    server.on('tlsClientError', () => counts.refused++);
    server.listen({ host: options.host, port: options.port });
    await once(server, 'listening');
    server.on('error', () => {});
  }

  /** Closes connections that are idle or send byte by byte, which would keep others out. */
  function startDeadline(connection: Connection): void {
    connection.deadline ??= clock.after(MESSAGE_WITHIN_MS, () => {
      counts.tooSlow++;
      connection.socket.destroy();
    });
  }

  function clearDeadline(connection: Connection): void {
    connection.deadline?.();
    connection.deadline = null;
  }

  function adopt(
    socket: net.Socket,
    peer: Pick<Connection, 'host' | 'port' | 'key' | 'isEstablished' | 'mostUnsentBytes'>,
  ): Connection {
    const state = { receivedAtMs: null, deadline: null, failures: new Set<() => void>() };
    const connection: Connection = { id: nextId++, ...peer, socket, ...state };
    connections.set(connection.id, connection);
    if (connection.key !== null) byAddress.set(connection.key, connection);
    const framer = new StreamFramer();
    // Detects a vanished peer within a minute instead of at the next call.
    socket.setKeepAlive(true, KEEPALIVE_AFTER_MS);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on('data', (chunk) => readChunk(framer, chunk, connection));
    socket.on('error', () => {});
    socket.on('close', () => {
      clearDeadline(connection);
      connections.delete(connection.id);
      if (connection.key !== null && byAddress.get(connection.key) === connection) byAddress.delete(connection.key);
      const failures = [...connection.failures];
      connection.failures.clear();
      for (const fail of failures) fail();
      if (!closed) options.onClosed?.(connection.host, connection.port, connection.id);
    });
    return connection;
  }

  function readChunk(framer: StreamFramer, chunk: Buffer, connection: Connection): void {
    const { host, port, id } = connection;
    try {
      for (const frame of framer.push(chunk)) {
        clearDeadline(connection);
        if (frame.type === 'message') {
          connection.receivedAtMs = performance.now();
          options.onFrame(frame.bytes, host, port, id);
        } else answerPing(connection);
      }
      if (framer.isInMessage) startDeadline(connection);
    } catch (error) {
      if (!(error instanceof SipParseError)) throw error;
      counts.unreadable++;
      // The start of the next message is unknown.
      connection.socket.destroy();
    }
  }

  /** Drops a peer that pings without reading, like any that does not read. */
  function answerPing({ socket, mostUnsentBytes }: Connection): void {
    if (socket.writableLength > mostUnsentBytes) socket.destroy();
    else socket.write('\r\n');
  }

  function connectionTo(remote: Omit<Remote, 'transport'>): Connection {
    const { host, port } = remote;
    const key = keyOf(remote);
    const existing = byAddress.get(key);
    if (existing?.socket.writable) return existing;
    const peer = { host, port, key, isEstablished: false, mostUnsentBytes: MAX_UNSENT_AT_OURS };
    if (!security) {
      const connection = adopt(net.connect({ host, port, noDelay: true }), peer);
      connection.socket.once('connect', () => {
        connection.isEstablished = true;
      });
      return connection;
    }
    const name = remote.name ?? host;
    const socket = security.connect(host, port, name);
    const connection = adopt(socket, peer);
    socket.once('secureConnect', () => {
      connection.isEstablished = true;
    });
    socket.once('error', (error) => {
      if (!connection.isEstablished) options.onUntrusted?.(name, reasonOf(error));
    });
    return connection;
  }

  /** Null once the peer has closed its side: nothing more can be written. */
  function openConnection(connectionId: number | null): Connection | null {
    const connection = connectionId === null ? undefined : connections.get(connectionId);
    return connection?.socket.writable ? connection : null;
  }

  /** A TLS connection is valid only for the name that it was opened for (RFC 5922 §7.5). */
  function keyOf({ host, port, name }: Pick<Remote, 'host' | 'port' | 'name'>): string {
    return security ? `${name ?? host}@${host}:${port}` : `${host}:${port}`;
  }

  return {
    port: server ? (server.address() as net.AddressInfo).port : 0,
    send(bytes, remote, onFailure) {
      if (closed) return null;
      const connection = openConnection(remote.connectionId) ?? connectionTo(remote);
      const { socket, failures, mostUnsentBytes } = connection;
      const sentOver = { connectionId: connection.id, isReused: connection.isEstablished };
      if (socket.writableLength > mostUnsentBytes) {
        socket.destroy();
        setImmediate(onFailure);
        return sentOver;
      }
      failures.add(onFailure);
      // The callback may come before `close`: the first one reports the failure.
      socket.write(bytes, (error) => {
        if (failures.delete(onFailure) && error) onFailure();
      });
      return sentOver;
    },
    distrust({ host, port }) {
      for (const [key, connection] of byAddress) {
        if (connection.host !== host || connection.port !== port || isAnswering(connection)) continue;
        byAddress.delete(key);
        // No call uses it, and a probe every half minute would leave sixty of them.
        if (connection.receivedAtMs === null) startDeadline(connection);
      }
    },
    async close() {
      closed = true;
      for (const { socket, failures } of connections.values()) {
        failures.clear();
        if (socket.connecting) socket.destroy();
        else socket.destroySoon();
      }
      // A peer that does not read would delay the close indefinitely.
      const timer = setTimeout(() => {
        for (const { socket } of connections.values()) socket.destroy();
      }, CLOSE_GRACE_MS);
      const closing = [...connections.values()].map(
        ({ socket }) => new Promise((resolve) => socket.once('close', resolve)),
      );
      if (server) await new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(closing);
      clearTimeout(timer);
    },
    dump: () => ({ connections: connections.size, ...counts }),
  };
}

function createServer(security: TlsSecurity | undefined, accept: (socket: net.Socket) => void): net.Server | null {
  if (!security) return net.createServer({ noDelay: true }, accept);
  return security.server && tls.createServer({ ...security.server, noDelay: true }, accept);
}

/** Whether a message arrived since a request that has timed out. */
function isAnswering({ receivedAtMs }: Connection): boolean {
  return receivedAtMs !== null && performance.now() - receivedAtMs < MESSAGE_WITHIN_MS;
}

function reasonOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.message;
}

const MAX_CONNECTIONS = 2048;
/** On top of the kernel's buffers. Only a peer that reads nothing reaches it. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** On our connections, where thousands of trunks may register before a TLS handshake ends. */
const MAX_UNSENT_AT_OURS = 4 * 1024 * 1024;
/** For a stranger's first message, and for the rest of each started message: 64 * T1. */
const MESSAGE_WITHIN_MS = 32_000;
const CLOSE_GRACE_MS = 500;
const KEEPALIVE_AFTER_MS = 30_000;
/** Longer than the keepalive of any RFC 5626 peer, and than most calls; a closed connection is opened again. */
const IDLE_MS = 30 * 60_000;
