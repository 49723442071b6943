import { WebSocket } from 'ws';

export interface Outlet {
  send(message: object): void;
  /** Only the first call has an effect. */
  close(code: number, reason: string): void;
}

/** Limits memory for a client that does not read. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

export function createOutlet(socket: WebSocket, { maxBufferedBytes = MAX_BUFFERED_BYTES } = {}): Outlet {
  return {
    send(message) {
      if (socket.readyState !== WebSocket.OPEN) return;
      // The client would not read a close frame either.
      if (socket.bufferedAmount > maxBufferedBytes) socket.terminate();
      else socket.send(JSON.stringify(message));
    },
    close(code, reason) {
      socket.close(code, reason);
    },
  };
}
