import { WebSocket } from 'ws';

/** Sends messages to a client, as long as it reads them. */
export interface Outlet {
  send(message: object): void;
  /** Only the first call has an effect. */
  close(code: number, reason: string): void;
}

/** Limits the memory for a client that does not read. */
const MAX_BUFFERED_BYTES = 1024 * 1024;

export function createOutlet(socket: WebSocket, { maxBufferedBytes = MAX_BUFFERED_BYTES } = {}): Outlet {
  return {
    send(message) {
      if (socket.readyState !== WebSocket.OPEN) return;
      // A close frame would not be read either.
      if (socket.bufferedAmount > maxBufferedBytes) socket.terminate();
      else socket.send(JSON.stringify(message));
    },
    close(code, reason) {
      socket.close(code, reason);
    },
  };
}
