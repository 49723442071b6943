import { addressOfUpgrade } from '../client-address.ts';
import { type PhoneConnectionContext, servePhoneConnection } from './phone-connection.ts';
import { createSocketServer, type SocketServer, type SocketServerOptions } from './socket-server.ts';

export const PHONE_SOCKET_PATH = '/ws/phone';

/** DTLS and RTP parameters take a few kilobytes. */
const MAX_FRAME_BYTES = 64 * 1024;

interface PhoneSocketsOptions extends Pick<SocketServerOptions, 'refuseHandshake'> {
  context: PhoneConnectionContext;
  trustedProxies: readonly string[];
}

export function createPhoneSockets({ context, trustedProxies, refuseHandshake }: PhoneSocketsOptions): SocketServer {
  return createSocketServer({
    path: PHONE_SOCKET_PATH,
    maxFrameBytes: MAX_FRAME_BYTES,
    refuseHandshake,
    serve: (socket, request, closing) =>
      servePhoneConnection(socket, {
        context,
        query: new URLSearchParams(request.url?.split('?', 2)[1] ?? ''),
        address: addressOfUpgrade(request, trustedProxies),
        closing,
      }),
  });
}
