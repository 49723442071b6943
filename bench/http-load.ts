import { once } from 'node:events';
import { connect } from 'node:net';

/** A minimal HTTP/1.1 client, so that its own cost does not distort the measurement. */

export interface HttpLoadOptions {
  /** Loopback ports of the servers, used in turn. */
  ports: readonly number[];
  connections: number;
  request: Buffer;
  durationMs: number;
}

export function getRequest(path: string, authorization: string): Buffer {
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${authorization}\r\naccept: */*\r\n\r\n`,
  );
}

/**
 * Keeps every connection busy with one request at a time. Returns the durations in milliseconds.
 * @throws Error for a status other than 200
 */
export async function keepBusy({ ports, connections, ...options }: HttpLoadOptions): Promise<Float64Array> {
  const untilMs = performance.now() + options.durationMs;
  const each = await Promise.all(
    Array.from({ length: connections }, (_, index) =>
      keepAsking({ port: ports[index % ports.length]!, request: options.request, untilMs }),
    ),
  );
  return Float64Array.from(each.flat());
}

async function keepAsking(options: { port: number; request: Buffer; untilMs: number }): Promise<number[]> {
  const socket = connect(options.port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  const tookMs: number[] = [];
  const done = Promise.withResolvers<void>();
  let received = '';
  let sentAtMs = performance.now();
  socket.on('error', done.reject);
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    const headerEnd = received.indexOf('\r\n\r\n');
    if (headerEnd < 0) return;
    const bodyBytes = Number(/content-length: (\d+)/i.exec(received)?.[1]);
    if (received.length < headerEnd + 4 + bodyBytes) return;
    if (!received.startsWith('HTTP/1.1 200')) return done.reject(new Error(received.slice(0, 200)));
    received = '';
    const nowMs = performance.now();
    tookMs.push(nowMs - sentAtMs);
    if (nowMs >= options.untilMs) return done.resolve();
    sentAtMs = nowMs;
    socket.write(options.request);
  });
  socket.write(options.request);
  await done.promise;
  socket.destroy();
  return tookMs;
}
