import { once } from 'node:events';
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * `refuse` closes the connection before reading the request, `cut` after half of its body; `slowDown` answers like a
 * busy store; `corrupt` changes a byte of the body; `hold` delays the body until `release`.
 */
export type Fault = 'refuse' | 'cut' | 'slowDown' | 'corrupt' | 'hold' | 'truncateAnswer';

/** A proxy that injects faults between a client and a store. */
export interface FaultProxy {
  readonly endpoint: string;
  /** Chooses the fault of each later request; null forwards it. */
  spoil(choose: (request: { method: string; path: string; count: number }) => Fault | null): void;
  /** Requests so far without query, such as `PUT /bucket/key`. */
  readonly requests: string[];
  held(): Promise<void>;
  release(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startFaultProxy(port: number): Promise<FaultProxy> {
  let choose: Parameters<FaultProxy['spoil']>[0] = () => null;
  const requests: string[] = [];
  let count = 0;
  let isHeld = Promise.withResolvers<void>();
  let released = Promise.withResolvers<void>();

  const server = createServer(async (incoming, answer) => {
    const method = incoming.method ?? '';
    const path = incoming.url ?? '';
    requests.push(`${method} ${path.split('?')[0]}`);
    count += 1;
    const fault = choose({ method, path, count });
    if (fault === 'refuse') return incoming.socket.destroy();
    if (fault === 'slowDown') {
      incoming.resume();
      await once(incoming, 'end');
      const code = '<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';
      return answer.writeHead(503, { 'content-type': 'application/xml' }).end(code);
    }
    const body = await bodyOf(incoming).catch(() => null);
    if (body === null) return;
    if (fault === 'hold') {
      isHeld.resolve();
      await released.promise;
    }
    if (fault === 'corrupt' && body.length > 0) body[body.length - 1]! ^= 1;
    const { headers } = incoming;
    const outgoing = sendRequest({ host: '127.0.0.1', port, method, path, headers, agent: false });
    outgoing.on('error', () => incoming.socket.destroy());
    if (fault === 'cut') {
      outgoing.write(body.subarray(0, body.length >> 1), () => {
        outgoing.destroy();
        incoming.socket.destroy();
      });
      return;
    }
    outgoing.end(body);
    const reply = await once(outgoing, 'response').then(
      ([response]) => response as IncomingMessage,
      () => null,
    );
    const content = reply && (await bodyOf(reply).catch(() => null));
    // The client was disconnected too.
    if (reply === null || content === null) return incoming.socket.destroy();
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    if (fault !== 'truncateAnswer') return answer.end(method === 'HEAD' ? undefined : content);
    answer.write(content.subarray(0, content.length >> 1), () => incoming.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    spoil(next) {
      choose = next;
      count = 0;
    },
    held: () => isHeld.promise,
    release() {
      released.resolve();
      isHeld = Promise.withResolvers();
      released = Promise.withResolvers();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
