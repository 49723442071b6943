import type { WebSocket } from 'ws';

/** Reports that the client has gone. Call it before anything waits, because it also handles the errors of the socket. */
export function departureOf(socket: WebSocket): { gone: AbortSignal; left: Promise<void> } {
  const gone = new AbortController();
  const left = Promise.withResolvers<void>();
  socket.on('error', () => {
    // The ws library closes the connection after a violation of RFC 6455 or an oversized frame.
  });
  socket.on('close', () => {
    gone.abort();
    left.resolve();
  });
  return { gone: gone.signal, left: left.promise };
}
