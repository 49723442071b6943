import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net';

/** A TCP proxy that can drop connections, and refuse new ones for a while. */
export interface CuttableProxy {
  readonly port: number;
  /** Drops all connections, and refuses new ones until the returned function is called. */
  block(): () => void;
  close(): Promise<void>;
}

/** @param target returns the address for new connections */
export async function openCuttableProxy(target: () => NetConnectOpts): Promise<CuttableProxy> {
  const sockets = new Set<Socket>();
  let blocks = 0;
  const server = createServer((near) => {
    if (blocks > 0) return void near.destroy();
    const far = connect(target());
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    block() {
      blocks += 1;
      cut();
      return () => {
        blocks -= 1;
      };
    },
    async close() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      cut();
      await closed;
    },
  };
}
