import { addressOfUpgrade } from '../client-address.ts';
import type { KeepAliveTimes } from './keep-alive.ts';
import { socketCredentialsOf } from './socket-admission.ts';
import { createSocketServer, type SocketServer, type SocketServerOptions } from './socket-server.ts';
import { type SttConnectionContext, serveSttConnection } from './stt-connection.ts';

export const STT_SOCKET_PATH = '/ws/stt';

/** Two seconds of audio in the largest format, as base64. */
const MAX_FRAME_BYTES = 256 * 1024;

interface SttSocketsOptions extends Pick<SocketServerOptions, 'refuseHandshake'> {
  context: SttConnectionContext;
  trustedProxies: readonly string[];
  times?: SttSocketTimes;
}

export interface SttSocketTimes extends KeepAliveTimes {
  /** Limit for unread messages of a client. Default 1 MiB. */
  maxBufferedBytes?: number;
}

/** For the words that were spoken last, and for storing what became of the session. */
const LAST_WORDS_MS = 15_000;

/** WebSocket server for live transcription. */
export function createSttSockets(options: SttSocketsOptions): SocketServer {
  const { context, trustedProxies, refuseHandshake, times = {} } = options;
  const { maxBufferedBytes, ...keepAliveTimes } = times;
  return createSocketServer({
    path: STT_SOCKET_PATH,
    maxFrameBytes: MAX_FRAME_BYTES,
    endWithinMs: LAST_WORDS_MS,
    refuseHandshake,
    serve: (socket, request, closing) =>
      serveSttConnection(socket, {
        context,
        credentials: socketCredentialsOf(request),
        address: addressOfUpgrade(request, trustedProxies),
        closing,
        times: keepAliveTimes,
        ...(maxBufferedBytes !== undefined && { maxBufferedBytes }),
      }),
  });
}
