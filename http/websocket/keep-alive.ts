import type { WebSocket } from 'ws';

export interface KeepAliveTimes {
  /** Default 30 000 (platform specification, Limits). */
  pingEveryMs?: number;
  /** Default 10 000. */
  pongWithinMs?: number;
}

/** Ends a connection whose other end is gone without a word: it answers no ping and sends nothing either. */
export function keepAlive(
  socket: WebSocket,
  { pingEveryMs = 30_000, pongWithinMs = 10_000 }: KeepAliveTimes,
  signal: AbortSignal,
): void {
  let overdue: NodeJS.Timeout | null = null;
  const hear = () => {
    if (overdue !== null) clearTimeout(overdue);
    overdue = null;
  };
  socket.on('pong', hear);
  socket.on('message', hear);
  const pinging = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return;
    overdue ??= setTimeout(() => socket.terminate(), pongWithinMs);
    socket.ping();
  }, pingEveryMs);
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(pinging);
      hear();
    },
    { once: true },
  );
}
