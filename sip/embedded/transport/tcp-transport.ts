import { once } from 'node:events';
import net from 'node:net';
import { SipParseError, StreamFramer } from '../../message/index.ts';

export interface TcpTransportOptions {
  host: string;
  port: number;
  /** How long a stranger may take over its first message; 32 000. */
  firstMessageWithinMs?: number;
  onFrame: (bytes: Buffer, host: string, port: number, connectionId: number) => void;
}

export interface TcpTransport {
  readonly port: number;
  /** New requests to that address get another connection; the old one is left to its calls. */
  distrust(host: string, port: number): void;
  /** Uses the connection with that id while it is open, else any to that address, else a new one. */
  send(bytes: Buffer, host: string, port: number, connectionId: number | null, onFailure: () => void): void;
  close(): Promise<void>;
  dump(): unknown;
}

interface Connection {
  id: number;
  key: string;
  socket: net.Socket;
  /** It has sent something whole. */
  hasSpoken: boolean;
  /** Of what was written while connecting: called when it fails. */
  failures: Set<() => void>;
}

/** @throws the `listen` error, `EADDRINUSE` included. */
export async function openTcpTransport(options: TcpTransportOptions): Promise<TcpTransport> {
  const connections = new Map<number, Connection>();
  const byAddress = new Map<string, Connection>();
  let nextId = 1;
  let closed = false;

  const server = net.createServer({ noDelay: true }, (socket) => {
    if (connections.size >= MAX_CONNECTIONS) socket.destroy();
    else expectMessage(adopt(socket, socket.remoteAddress ?? '', socket.remotePort ?? 0));
  });
  server.listen({ host: options.host, port: options.port });
  await once(server, 'listening');
  server.on('error', () => {});

  /** Whoever only holds connections open must not keep others out, one byte at a time or none. */
  function expectMessage(connection: Connection): void {
    const { socket } = connection;
    const timer = setTimeout(() => {
      if (!connection.hasSpoken) socket.destroy();
    }, options.firstMessageWithinMs ?? FIRST_MESSAGE_WITHIN_MS);
    socket.once('close', () => clearTimeout(timer));
  }

  function adopt(socket: net.Socket, host: string, port: number): Connection {
    const connection: Connection = {
      id: nextId++,
      key: `${host}:${port}`,
      socket,
      hasSpoken: false,
      failures: new Set(),
    };
    connections.set(connection.id, connection);
    byAddress.set(connection.key, connection);
    const framer = new StreamFramer();
    // A peer that vanished without a word is noticed within a minute, not with the next call.
    socket.setKeepAlive(true, KEEPALIVE_AFTER_MS);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on('data', (chunk) => readChunk(framer, chunk, connection, host, port));
    socket.on('error', () => {});
    socket.on('close', () => {
      connections.delete(connection.id);
      if (byAddress.get(connection.key) === connection) byAddress.delete(connection.key);
      for (const fail of connection.failures) fail();
    });
    return connection;
  }

  function readChunk(framer: StreamFramer, chunk: Buffer, connection: Connection, host: string, port: number): void {
    try {
      for (const frame of framer.push(chunk)) {
        connection.hasSpoken = true;
        if (frame.type === 'message') options.onFrame(frame.bytes, host, port, connection.id);
        else connection.socket.write('\r\n');
      }
    } catch (error) {
      if (!(error instanceof SipParseError)) throw error;
      // Where the next message starts is no longer known.
      connection.socket.destroy();
    }
  }

  function connectionTo(host: string, port: number): Connection {
    const existing = byAddress.get(`${host}:${port}`);
    if (existing) return existing;
    return adopt(net.connect({ host, port, noDelay: true }), host, port);
  }

  return {
    port: (server.address() as net.AddressInfo).port,
    send(bytes, host, port, connectionId, onFailure) {
      if (closed) return;
      const connection = (connectionId === null ? null : connections.get(connectionId)) ?? connectionTo(host, port);
      const { socket, failures } = connection;
      if (socket.writableLength > MAX_UNSENT_BYTES) {
        socket.destroy();
        setImmediate(onFailure);
        return;
      }
      failures.add(onFailure);
      // The callback may come before `close` does: whoever is first takes the failure away.
      socket.write(bytes, (error) => {
        if (failures.delete(onFailure) && error) onFailure();
      });
    },
    distrust(host, port) {
      byAddress.delete(`${host}:${port}`);
    },
    async close() {
      closed = true;
      for (const { socket, failures } of connections.values()) {
        failures.clear();
        if (socket.connecting) socket.destroy();
        else socket.destroySoon();
      }
      // Whoever does not read would keep us open for as long as he likes.
      const timer = setTimeout(() => {
        for (const { socket } of connections.values()) socket.destroy();
      }, CLOSE_GRACE_MS);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(timer);
    },
    dump: () => ({ connections: connections.size }),
  };
}

const MAX_CONNECTIONS = 2048;
/** Beyond what the kernel holds already: only a peer that does not read at all gets there. */
const MAX_UNSENT_BYTES = 256 * 1024;
const FIRST_MESSAGE_WITHIN_MS = 32_000;
const CLOSE_GRACE_MS = 500;
const KEEPALIVE_AFTER_MS = 30_000;
/** Longer than the keepalive of any RFC 5626 peer, and than most calls; a closed connection is opened again. */
const IDLE_MS = 30 * 60_000;
