import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

/** How long to wait for the close frame of the client. */
const CLOSE_WITHIN_MS = 2_000;

export interface SocketServerOptions {
  path: string;
  maxFrameBytes: number;
  /** How long a connection may take to end its work when the server closes. Default: 0. */
  endWithinMs?: number;
  /** Responds to an invalid handshake over HTTP. */
  refuseHandshake: (socket: Duplex, message: string) => void;
  /** Serves one client. Resolves when its connection has ended; `closing` asks for that. */
  serve: (socket: WebSocket, request: IncomingMessage, closing: AbortSignal) => Promise<void>;
}

/** WebSockets of one path, on the HTTP server of the API. */
export interface SocketServer {
  /** Whether to upgrade this request. Others are answered as if they had no Upgrade header (RFC 9110 §7.8). */
  wants(request: IncomingMessage): boolean;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends all connections, and waits until their sockets are closed. */
  close(): Promise<void>;
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { path, maxFrameBytes, endWithinMs = 0, refuseHandshake, serve } = options;
  const closing = new AbortController();
  const serving = new Map<WebSocket, Promise<void>>();
  // A constant of its own, because the types of the library do not have `closeTimeout` yet.
  const limits = {
    noServer: true,
    clientTracking: false,
    maxPayload: maxFrameBytes,
    // Audio does not compress, and this avoids compression bombs.
    perMessageDeflate: false,
    closeTimeout: CLOSE_WITHIN_MS,
  };
  const server = new WebSocketServer(limits);
  server.on('wsClientError', (error, socket) => refuseHandshake(socket, error.message));

  return {
    wants: ({ method, url, headers }) =>
      method === 'GET' && url?.split('?', 1)[0] === path && headers.upgrade?.toLowerCase() === 'websocket',
    accept(request, socket, head) {
      socket.on('error', () => socket.destroy());
      server.handleUpgrade(request, socket, head, (accepted) => {
        const served = serve(accepted, request, closing.signal).finally(() => serving.delete(accepted));
        serving.set(accepted, served);
      });
    },
    async close() {
      closing.abort();
      const timer = setTimeout(() => {
        for (const socket of serving.keys()) socket.terminate();
      }, endWithinMs + CLOSE_WITHIN_MS);
      await Promise.all(serving.values());
      clearTimeout(timer);
    },
  };
}
