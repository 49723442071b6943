import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { addressOfUpgrade } from '../client-address.ts';
import type { KeepAliveTimes } from './keep-alive.ts';
import { type SttConnectionContext, serveSttConnection } from './stt-connection.ts';

export const STT_SOCKET_PATH = '/ws/stt';

/** Two seconds of the largest samples in base64. */
const MAX_FRAME_BYTES = 256 * 1024;

/** How long a client may take to answer a close. */
const CLOSE_WITHIN_MS = 2_000;

/** Not written where it is used, because the types of the library do not know `closeTimeout` yet. */
const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  maxPayload: MAX_FRAME_BYTES,
  // Audio does not compress, and a bomb does.
  perMessageDeflate: false,
  closeTimeout: CLOSE_WITHIN_MS,
};

export interface SttSocketsOptions {
  context: SttConnectionContext;
  trustedProxies: readonly string[];
  /** Answers a handshake that is none, in HTTP. */
  refuseHandshake: (socket: Duplex, message: string) => void;
  times?: SttSocketTimes;
}

export interface SttSocketTimes extends KeepAliveTimes {
  /** Of what a client has not read; default 1 MiB. */
  mostBufferedBytes?: number;
}

/** The WebSocket end of live transcription, on the server of the API. */
export interface SttSockets {
  /** Whether a request with an Upgrade header is for us; others are answered as if they had none (RFC 9110 §7.8). */
  wants(request: IncomingMessage): boolean;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Connections that are open, or whose session is. */
  count(): number;
  /** Tells everybody, and waits until they are gone. */
  close(): Promise<void>;
}

export function createSttSockets(options: SttSocketsOptions): SttSockets {
  const { context, trustedProxies, refuseHandshake, times = {} } = options;
  const closing = new AbortController();
  const serving = new Map<WebSocket, Promise<void>>();
  const server = new WebSocketServer(SERVER_OPTIONS);
  server.on('wsClientError', (error, socket) => refuseHandshake(socket, error.message));

  function serve(socket: WebSocket, request: IncomingMessage): void {
    const { mostBufferedBytes, ...keepAliveTimes } = times;
    const served = serveSttConnection(socket, {
      context,
      query: new URLSearchParams(request.url?.split('?', 2)[1] ?? ''),
      address: addressOfUpgrade(request, trustedProxies),
      closing: closing.signal,
      times: keepAliveTimes,
      ...(mostBufferedBytes !== undefined && { mostBufferedBytes }),
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
