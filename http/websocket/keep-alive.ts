import type { WebSocket } from 'ws';

export interface KeepAliveTimes {
  /** Default 30 000 (platform specification, Limits). */
  pingEveryMs?: number;
  /** Default 10 000. */
  pongWithinMs?: number;
}

/**
 * Terminates a connection that neither answers a ping nor sends anything else.
 * @param readsWithinMs additional time, because a ping waits behind messages that the client has not read yet
 */
export function keepAlive(
  socket: WebSocket,
  { pingEveryMs = 30_000, pongWithinMs = 10_000 }: KeepAliveTimes,
  signal: AbortSignal,
  readsWithinMs: () => number = () => 0,
): void {
  let overdue: NodeJS.Timeout | null = null;
  const onActivity = () => {
    if (overdue !== null) clearTimeout(overdue);
    overdue = null;
  };
  socket.on('pong', onActivity);
  socket.on('message', onActivity);
  const pinging = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return;
    overdue ??= setTimeout(() => socket.terminate(), pongWithinMs + readsWithinMs());
    socket.ping();
  }, pingEveryMs);
  signal.addEventListener(
    'abort',
    () => {
      clearInterval(pinging);
      onActivity();
    },
    { once: true },
  );
}
