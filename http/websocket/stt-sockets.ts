import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { addressOfUpgrade } from '../client-address.ts';
import type { KeepAliveTimes } from './keep-alive.ts';
import { type SttConnectionContext, serveSttConnection } from './stt-connection.ts';

export const STT_SOCKET_PATH = '/ws/stt';

/** Two seconds of audio in the largest format, as base64. */
const MAX_FRAME_BYTES = 256 * 1024;

/** How long to wait for the close frame of the client. */
const CLOSE_WITHIN_MS = 2_000;

/** A constant of its own, because the types of the library do not have `closeTimeout` yet. */
const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  maxPayload: MAX_FRAME_BYTES,
  // Audio does not compress, and this avoids compression bombs.
  perMessageDeflate: false,
  closeTimeout: CLOSE_WITHIN_MS,
};

export interface SttSocketsOptions {
  context: SttConnectionContext;
  trustedProxies: readonly string[];
  /** Responds to an invalid handshake over HTTP. */
  refuseHandshake: (socket: Duplex, message: string) => void;
  times?: SttSocketTimes;
}

export interface SttSocketTimes extends KeepAliveTimes {
  /** Limit for unread messages of a client. Default 1 MiB. */
  maxBufferedBytes?: number;
}

/** WebSocket server for live transcription, on the HTTP server of the API. */
export interface SttSockets {
  /** Whether to upgrade this request. Others are answered as if they had no Upgrade header (RFC 9110 §7.8). */
  wants(request: IncomingMessage): boolean;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Connections whose socket or session is open. */
  count(): number;
  /** Ends all sessions, and waits until their sockets are closed. */
  close(): Promise<void>;
}

export function createSttSockets(options: SttSocketsOptions): SttSockets {
  const { context, trustedProxies, refuseHandshake, times = {} } = options;
  const closing = new AbortController();
  const serving = new Map<WebSocket, Promise<void>>();
  const server = new WebSocketServer(SERVER_OPTIONS);
  server.on('wsClientError', (error, socket) => refuseHandshake(socket, error.message));

  function serve(socket: WebSocket, request: IncomingMessage): void {
    const { maxBufferedBytes, ...keepAliveTimes } = times;
    const served = serveSttConnection(socket, {
      context,
      query: new URLSearchParams(request.url?.split('?', 2)[1] ?? ''),
      address: addressOfUpgrade(request, trustedProxies),
      closing: closing.signal,
      times: keepAliveTimes,
      ...(maxBufferedBytes !== undefined && { maxBufferedBytes }),
    }).finally(() => serving.delete(socket));
    serving.set(socket, served);
  }

  return {
    wants: ({ method, url, headers }) =>
      method === 'GET' && url?.split('?', 1)[0] === STT_SOCKET_PATH && headers.upgrade?.toLowerCase() === 'websocket',
    accept(request, socket, head) {
      socket.on('error', () => socket.destroy());
      server.handleUpgrade(request, socket, head, serve);
    },
    count: () => serving.size,
    async close() {
      closing.abort();
      const timer = setTimeout(() => {
        for (const socket of serving.keys()) socket.terminate();
      }, CLOSE_WITHIN_MS);
      await Promise.all(serving.values());
      clearTimeout(timer);
    },
  };
}
