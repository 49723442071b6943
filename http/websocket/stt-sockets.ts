import { addressOfUpgrade } from '../client-address.ts';
import type { KeepAliveTimes } from './keep-alive.ts';
import { cookieObjection, socketCredentialsOf } from './socket-admission.ts';
import { createSocketServer, type SocketServer, type SocketServerOptions } from './socket-server.ts';
import { type SttConnectionContext, serveSttConnection } from './stt-connection.ts';

export const STT_SOCKET_PATH = '/ws/stt';

/** Two seconds of the largest audio format, as base64. */
const MAX_FRAME_BYTES = 256 * 1024;

interface SttSocketsOptions extends Pick<SocketServerOptions, 'refuseHandshake' | 'refuseUpgrade'> {
  context: SttConnectionContext;
  trustedProxies: readonly string[];
  times?: SttSocketTimes;
}

export interface SttSocketTimes extends KeepAliveTimes {
  /** Limit of unread messages of a client. Default 1 MiB. */
  maxBufferedBytes?: number;
}

/** Time to recognise the last words and store the result. */
const LAST_WORDS_MS = 15_000;

export function createSttSockets(options: SttSocketsOptions): SocketServer {
  const { context, trustedProxies, refuseHandshake, refuseUpgrade, times = {} } = options;
  const { maxBufferedBytes, ...keepAliveTimes } = times;
  return createSocketServer({
    path: STT_SOCKET_PATH,
    maxFrameBytes: MAX_FRAME_BYTES,
    endWithinMs: LAST_WORDS_MS,
    refuseHandshake,
    refuseUpgrade,
    objectionTo: (request) => cookieObjection(request, context),
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
