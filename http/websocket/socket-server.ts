import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { TandemError } from '../../machines/errors.ts';

/** Wait for the client's close frame. */
const CLOSE_WITHIN_MS = 2_000;

export interface SocketServerOptions {
  path: string;
  maxFrameBytes: number;
  /** Time for a connection to finish when the server closes. Default: 0. */
  endWithinMs?: number;
  /** Rejects an invalid handshake over HTTP. */
  refuseHandshake: (socket: Duplex, message: string) => void;
  /** Rejects over HTTP a handshake with an objection. */
  refuseUpgrade?: (socket: Duplex, refusal: TandemError) => void;
  /** Returns an error to reject a handshake, or null. */
  objectionTo?: (request: IncomingMessage) => TandemError | null;
  /** Serves one client. Resolves when its connection has ended, which `closing` requests. */
  serve: (socket: WebSocket, request: IncomingMessage, closing: AbortSignal) => Promise<void>;
}

export interface SocketServer {
  /** Whether to upgrade this request. Others are answered without the upgrade (RFC 9110 §7.8). */
  wants(request: IncomingMessage): boolean;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): Promise<void>;
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { path, maxFrameBytes, endWithinMs = 0, refuseHandshake, refuseUpgrade, objectionTo, serve } = options;
  const closing = new AbortController();
  const serving = new Map<WebSocket, Promise<void>>();
  // A separate constant, because the library's types lack `closeTimeout`.
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
      const objection = objectionTo?.(request) ?? null;
      if (objection !== null && refuseUpgrade) {
        refuseUpgrade(socket, objection);
        return;
      }
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
