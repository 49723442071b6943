import { WebSocket } from 'ws';

/** The way to a client, as long as it reads what it is told. */
export interface Outlet {
  tell(message: object): void;
  /** The first one counts. */
  close(code: number, reason: string): void;
}

/** A client that does not read must not make us keep more than this for it. */
const MOST_BUFFERED_BYTES = 1024 * 1024;

export function createOutlet(socket: WebSocket, { mostBufferedBytes = MOST_BUFFERED_BYTES } = {}): Outlet {
  return {
    tell(message) {
      if (socket.readyState !== WebSocket.OPEN) return;
      // It would not read why either.
      if (socket.bufferedAmount > mostBufferedBytes) socket.terminate();
      else socket.send(JSON.stringify(message));
    },
    close(code, reason) {
      socket.close(code, reason);
    },
  };
}
