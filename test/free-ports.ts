import { createSocket } from 'node:dgram';
import { type EventEmitter, once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports below the ephemeral range, so that no one takes them between search and use. Each test worker searches its own
 * thousand.
 */
const FIRST_PORT = 10_000;
const PORTS_PER_WORKER = 1_000;
const WORKERS = 10;

/** Random start, since child processes search the same thousand. */
let next = 2 * Math.floor((Math.random() * PORTS_PER_WORKER) / 2);

/** First of `count` consecutive ports, starting even, that are free for UDP and TCP on loopback. */
export async function freePorts(count: number): Promise<number> {
  const worker = Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS;
  const step = count + (count % 2);
  for (let searched = 0; searched < 2 * PORTS_PER_WORKER; searched += step) {
    if (next + step > PORTS_PER_WORKER) next = 0;
    const first = FIRST_PORT + worker * PORTS_PER_WORKER + next;
    // Reserved at once, so that concurrent searches use others.
    next += step;
    const ports = Array.from({ length: count }, (_, index) => first + index);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return first;
  }
  throw new Error(`no ${count} free ports in a row`);
}

async function isFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  const server = createServer();
  const isUdpFree = await opens(socket, () => socket.bind({ port, address: '127.0.0.1', exclusive: true }));
  const isTcpFree = await opens(server, () => server.listen(port, '127.0.0.1'));
  await Promise.all([socket, server].map((each) => new Promise<void>((resolve) => each.close(() => resolve()))));
  return isUdpFree && isTcpFree;
}

async function opens(emitter: EventEmitter, open: () => void): Promise<boolean> {
  try {
    open();
    await once(emitter, 'listening');
    return true;
  } catch {
    return false;
  }
}
