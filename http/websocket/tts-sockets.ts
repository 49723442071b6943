import { addressOfUpgrade } from '../client-address.ts';
import { cookieObjection, socketCredentialsOf } from './socket-admission.ts';
import { createSocketServer, type SocketServer, type SocketServerOptions } from './socket-server.ts';
import { serveTtsConnection, type TtsConnectionContext, type TtsSocketTimes } from './tts-connection.ts';

export const TTS_SOCKET_PATH = '/ws/tts';

/** 5000 characters, escaped as JSON. */
const MAX_FRAME_BYTES = 64 * 1024;
/** Time to synthesise received text and store the result. */
const LAST_WORDS_MS = 15_000;

interface TtsSocketsOptions extends Pick<SocketServerOptions, 'refuseHandshake' | 'refuseUpgrade'> {
  context: TtsConnectionContext;
  trustedProxies: readonly string[];
  times?: TtsSocketTimes;
}

export function createTtsSockets(options: TtsSocketsOptions): SocketServer {
  const { context, trustedProxies, refuseHandshake, refuseUpgrade, times = {} } = options;
  return createSocketServer({
    path: TTS_SOCKET_PATH,
    maxFrameBytes: MAX_FRAME_BYTES,
    endWithinMs: LAST_WORDS_MS,
    refuseHandshake,
    refuseUpgrade,
    objectionTo: (request) => cookieObjection(request, context),
    serve: (socket, request, closing) =>
      serveTtsConnection(socket, {
        ...{ context, closing, times },
        credentials: socketCredentialsOf(request),
        query: new URLSearchParams(request.url?.split('?', 2)[1] ?? ''),
        address: addressOfUpgrade(request, trustedProxies),
      }),
  });
}
