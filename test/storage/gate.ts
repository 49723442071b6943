import { connect, createServer, type Server, type Socket } from 'node:net';
import { addressOf, throughPort } from './database-address.ts';

/** A proxy for `url` that simulates outages. */
export interface Gate {
  url: string;
  open(): Promise<void>;
  /** Closes every connection and rejects new ones. */
  shut(): Promise<void>;
  /** Accepts connections but forwards nothing, until `shut`. */
  freeze(): void;
}

export async function openGate(serverUrl: string): Promise<Gate> {
  const sockets = new Set<Socket>();
  let frozen = false;
  let port = 0;
  let server: Server;

  async function open(): Promise<void> {
    frozen = false;
    server = createServer((client) => {
      const upstream = connect(addressOf(serverUrl));
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
      }
      client.on('data', (bytes) => frozen || upstream.write(bytes));
      upstream.on('data', (bytes) => frozen || client.write(bytes));
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = (server.address() as { port: number }).port;
  }

  async function shut(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  function freeze(): void {
    frozen = true;
  }

  await open();
  return { url: throughPort(serverUrl, port), open, shut, freeze };
}
