import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';

/** A server that answers each request with this text and then loses the connection. Empty: it sends no answer at all. */
export async function startBreakingServer(text: string) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body);
      if (text === '') {
        response.destroy();
        return;
      }
      response.writeHead(200, { 'content-length': String(text.length + 1) });
      response.write(text, () => response.destroy());
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    /** Those of the requests so far. */
    bodies,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
