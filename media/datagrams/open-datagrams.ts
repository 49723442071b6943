import { DgramDatagrams } from './datagrams.dgram.ts';
import { EpollDatagrams } from './datagrams.epoll.ts';
import { IoUringDatagrams } from './datagrams.io-uring.ts';
import type { DatagramSocket, Datagrams } from './datagrams.ts';
import { Endpoint } from './endpoint.ts';
import { RingMappings } from './io-uring.ts';
import { PollContext } from './readiness-poll.ts';
import { openSystemCalls } from './system-calls.ts';

/** `auto` picks the fastest one that works. */
export type DatagramIo = 'auto' | 'io_uring' | 'epoll' | 'dgram';

export interface OpenedDatagrams {
  datagrams: Datagrams;
  /** Faster implementations that do not work here. */
  unavailable: { name: string; reason: string }[];
}

const IMPLEMENTATIONS: readonly { name: DatagramIo; open: (memory: SharedArrayBuffer) => Datagrams }[] = [
  { name: 'io_uring', open: (memory) => new IoUringDatagrams(openSystemCalls(), new RingMappings(memory)) },
  {
    name: 'epoll',
    open: (memory) => new EpollDatagrams(openSystemCalls(), new PollContext(memory, RingMappings.BYTES)),
  },
];

/** Memory in which a thread records what its replacement must free if the thread is terminated. */
export function datagramsMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(RingMappings.BYTES + PollContext.BYTES);
}

/**
 * Opens the given implementation, or the next slower one if it cannot deliver a datagram here.
 * @param memory from `datagramsMemory`; that of the thread that this one replaces, if any.
 */
export async function openDatagrams(io: DatagramIo, memory = datagramsMemory()): Promise<OpenedDatagrams> {
  const unavailable: OpenedDatagrams['unavailable'] = [];
  const first = IMPLEMENTATIONS.findIndex(({ name }) => name === io);
  const candidates = io === 'dgram' ? [] : IMPLEMENTATIONS.slice(Math.max(0, first));
  for (const { name, open } of candidates) {
    try {
      const datagrams = open(memory);
      try {
        await carryOne(datagrams);
        return { datagrams, unavailable };
      } catch (error) {
        datagrams.close();
        throw error;
      }
    } catch (error) {
      unavailable.push({ name, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { datagrams: new DgramDatagrams(), unavailable };
}

const PROBE_TIMEOUT_MS = 1000;

/** Sends one datagram to ourselves. @throws Error if it does not arrive. */
async function carryOne(datagrams: Datagrams): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sockets: DatagramSocket[] = [];
  const bind = async (host: string): Promise<DatagramSocket> => {
    const socket = await datagrams.bind({ host, port: 0, receive: () => resolve() });
    sockets.push(socket);
    return socket;
  };
  const timer = setTimeout(() => reject(new Error('a datagram to ourselves did not arrive')), PROBE_TIMEOUT_MS);
  try {
    // A machine may lack IPv4.
    const { host, receiver } = await bind('127.0.0.1').then(
      (socket) => ({ host: '127.0.0.1', receiver: socket }),
      async () => ({ host: '::1', receiver: await bind('::1') }),
    );
    const sender = await bind(host);
    sender.send(Buffer.from('probe'), Endpoint.of(host, receiver.port));
    await promise;
  } finally {
    clearTimeout(timer);
    await Promise.all(sockets.map((socket) => socket.close()));
  }
}
