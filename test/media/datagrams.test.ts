import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it } from 'vitest';
import { DgramDatagrams } from '../../media/datagrams/datagrams.dgram.ts';
import { EpollDatagrams } from '../../media/datagrams/datagrams.epoll.ts';
import { IoUringDatagrams } from '../../media/datagrams/datagrams.io-uring.ts';
import type { DatagramSocket, Datagrams } from '../../media/datagrams/datagrams.ts';
import { Endpoint } from '../../media/datagrams/endpoint.ts';
import { RingMappings } from '../../media/datagrams/io-uring.ts';
import { datagramsMemory, openDatagrams } from '../../media/datagrams/open-datagrams.ts';
import { openSystemCalls } from '../../media/datagrams/system-calls.ts';
import { eventually } from '../eventually.ts';
import * as fc from '../properties.ts';

const ROUNDS = fc.isDeep ? 50 : 15;
/** Threads that die one after another; starting each takes 0.1 s. */
const DEATHS = fc.isDeep ? 16 : 6;

describe('endpoints', () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const ipv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));
  const port = fc.integer({ min: 0, max: 65_535 });

  it('return their IPv4 address in the form of either family', () => {
    fc.assert(
      fc.property(ipv4, port, (host, portOf) => {
        const endpoint = Endpoint.of(host, portOf);
        expect(endpoint.hostFor(4)).toBe(host);
        expect(endpoint.equals(Endpoint.of(endpoint.hostFor(6), portOf))).toBe(true);
      }),
    );
  });

  it('return their IPv6 address', () => {
    fc.assert(
      fc.property(fc.ipV6(), port, (host, portOf) => {
        const endpoint = Endpoint.of(host, portOf);
        expect(endpoint.equals(Endpoint.of(endpoint.hostFor(6), portOf))).toBe(true);
      }),
    );
    expect(Endpoint.of('2001:DB8:0::1', 1).hostFor(6)).toBe('2001:db8::1');
  });

  it('differ by host, port and scope', () => {
    const one = Endpoint.of('fe80::1%7', 4000);
    for (const other of [Endpoint.of('fe80::1%8', 4000), Endpoint.of('fe80::2%7', 4000), Endpoint.of('fe80::1%7', 2)]) {
      expect(one.equals(other)).toBe(false);
    }
  });

  it('reject a name', () => {
    expect(() => Endpoint.of('localhost', 1)).toThrow(RangeError);
    expect(() => Endpoint.of('', 1)).toThrow(RangeError);
  });
});

/** Containers often forbid io_uring. */
const [missing] = await openDatagrams('io_uring').then(({ datagrams, unavailable }) => {
  datagrams.close();
  return unavailable;
});
const withIoUring = missing === undefined ? 'io_uring' : `io_uring (not available here: ${missing.reason})`;

const implementations: { name: string; isMissing: boolean; open: () => Datagrams }[] = [
  { name: 'dgram', isMissing: false, open: () => new DgramDatagrams() },
  { name: 'epoll', isMissing: process.platform !== 'linux', open: () => new EpollDatagrams(openSystemCalls()) },
  { name: withIoUring, isMissing: missing !== undefined, open: () => new IoUringDatagrams(openSystemCalls()) },
];

describe.each(implementations)('datagrams by $name', { timeout: 30_000 }, ({ isMissing, open }) => {
  beforeEach(({ skip }) => skip(isMissing));

  it.each([
    { family: 'IPv4', host: '127.0.0.1' },
    { family: 'IPv6', host: '::1' },
  ])('carry bytes and addresses over $family in both directions', async ({ host }) => {
    await using bench = await Bench.open(open(), host);
    for (let size = 0; size < 200; size++) bench.peer.send(Buffer.alloc(size, size), bench.socket.port, host);
    await bench.received(200);
    expect(bench.inbox).toEqual(Array.from({ length: 200 }, (_, size) => Buffer.alloc(size, size)));
    expect(bench.lastSource.equals(bench.peerEndpoint)).toBe(true);
    for (let size = 0; size < 200; size++) bench.socket.send(Buffer.alloc(size, size), bench.peerEndpoint);
    await bench.peerReceived(200);
    expect(bench.peerInbox).toEqual(bench.inbox);
    expect(bench.peerSourcePort).toBe(bench.socket.port);
  });

  it('carry IPv4 over a socket bound to all IPv6 addresses', async () => {
    await using bench = await Bench.open(open(), '127.0.0.1', '::');
    bench.peer.send('there', bench.socket.port, '127.0.0.1');
    await bench.received(1);
    expect(bench.lastSource.equals(bench.peerEndpoint)).toBe(true);
    bench.socket.send(Buffer.from('and back'), bench.lastSource);
    await bench.peerReceived(1);
    expect(bench.peerInbox[0]!.toString()).toBe('and back');
  });

  it('can be modified and sent back while received', async () => {
    await using bench = await Bench.open(open());
    bench.onReceive = (datagram, source) => {
      datagram[0] = 0xff;
      bench.socket.send(datagram.subarray(0, 2), source);
    };
    for (let i = 0; i < 200; i++) bench.peer.send(Buffer.of(0, i, 7), bench.socket.port, '127.0.0.1');
    await bench.peerReceived(200);
    expect(bench.peerInbox).toEqual(Array.from({ length: 200 }, (_, i) => Buffer.of(0xff, i)));
  });

  it('survive an unreachable peer', async () => {
    await using bench = await Bench.open(open());
    const temporary = createSocket('udp4');
    temporary.bind(0, '127.0.0.1');
    await once(temporary, 'listening');
    const closed = Endpoint.of('127.0.0.1', temporary.address().port);
    temporary.close();
    for (let i = 0; i < 3; i++) {
      bench.socket.send(Buffer.from('lost'), closed);
      bench.socket.send(Buffer.from('refused'), Endpoint.of('127.0.0.1', 0));
      bench.socket.send(Buffer.from('unroutable'), Endpoint.of('255.255.255.255', 9));
      bench.socket.send(Buffer.from(`arrives ${i}`), bench.peerEndpoint);
      await bench.peerReceived(i + 1);
    }
    bench.peer.send('still here', bench.socket.port, '127.0.0.1');
    await bench.received(1);
    expect(bench.peerInbox.map(String)).toEqual(['arrives 0', 'arrives 1', 'arrives 2']);
  });

  it('report a port in use and a foreign address', async () => {
    const datagrams = open();
    await using bench = await Bench.open(datagrams);
    const bind = (host: string, port: number): Promise<DatagramSocket> =>
      datagrams.bind({ host, port, receive: () => {} });
    await expect(bind('127.0.0.1', bench.socket.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect(bind('192.0.2.1', 0)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });

  it('free the port on close, after pending sends, and drop later sends', async () => {
    const datagrams = open();
    await using bench = await Bench.open(datagrams);
    const { port } = bench.socket;
    bench.socket.send(Buffer.from('farewell'), bench.peerEndpoint);
    await Promise.all([bench.socket.close(), bench.socket.close()]);
    bench.socket.send(Buffer.from('too late'), bench.peerEndpoint);
    await using again = await Bench.open(datagrams, '127.0.0.1', '127.0.0.1', port);
    again.socket.send(Buffer.from('anew'), bench.peerEndpoint);
    await bench.peerReceived(2);
    expect(bench.peerInbox.map(String)).toEqual(['farewell', 'anew']);
    bench.peer.send('for the new one', port, '127.0.0.1');
    await again.received(1);
    expect(bench.inbox).toEqual([]);
  });

  it('leave no kernel access behind after close, with any pending operation', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const datagrams = open();
      const sockets = await Promise.all(
        [0, 1].map(() => datagrams.bind({ host: '127.0.0.1', port: 0, receive: () => {} })),
      );
      for (const socket of sockets) {
        for (let sent = 0; sent < 20; sent++) {
          socket.send(Buffer.from('late'), Endpoint.of('127.0.0.1', sockets[0]!.port));
        }
      }
      await Promise.all(sockets.map((socket) => socket.close()));
      datagrams.close();
      // Reuses the freed memory addresses.
      const next = open();
      const inbox = Promise.withResolvers<string>();
      const receive = (datagram: Buffer): void => inbox.resolve(datagram.toString());
      const socket = await next.bind({ host: '127.0.0.1', port: 0, receive });
      socket.send(Buffer.from('hello'), Endpoint.of('127.0.0.1', socket.port));
      expect(await inbox.promise).toBe('hello');
      await socket.close();
      next.close();
    }
  });

  it('allow a receiver to close its own socket and others', async () => {
    const datagrams = open();
    await using first = await Bench.open(datagrams);
    await using second = await Bench.open(datagrams);
    const closed = Promise.withResolvers<void>();
    first.onReceive = () => {
      Promise.all([first.socket.close(), second.socket.close()]).then(() => closed.resolve(), closed.reject);
    };
    for (let i = 0; i < 20; i++) {
      first.peer.send('close', first.socket.port, '127.0.0.1');
      second.peer.send('close', second.socket.port, '127.0.0.1');
    }
    await closed.promise;
    await using third = await Bench.open(datagrams);
    third.peer.send('open', third.socket.port, '127.0.0.1');
    await third.received(1);
    expect(first.inbox).toHaveLength(1);
  });
});

describe.each(implementations.slice(1))('thread with datagrams by $name', ({ name, isMissing }) => {
  it.skipIf(isMissing)(
    'dies under load without harm to other threads, and its successor frees its leftovers',
    async () => {
      const script = join(import.meta.dirname, 'thread-deaths.ts');
      const { stdout } = await promisify(execFile)(process.execPath, [script, name, String(DEATHS)]);
      expect(stdout).toBe(`${DEATHS} died, 0 kept\n`);
    },
  );
});

describe('opening datagrams', () => {
  it('falls back to dgram without system calls, and reports the reason', async () => {
    const { arch } = process;
    Object.defineProperty(process, 'arch', { value: 'mips' });
    try {
      const { datagrams, unavailable } = await openDatagrams('auto');
      expect(datagrams.name).toBe('dgram');
      expect(unavailable).toEqual([
        { name: 'io_uring', reason: expect.stringContaining('x64') },
        { name: 'epoll', reason: expect.stringContaining('x64') },
      ]);
    } finally {
      Object.defineProperty(process, 'arch', { value: arch });
    }
  });

  it('uses dgram on request', async () => {
    const { datagrams, unavailable } = await openDatagrams('dgram');
    expect(datagrams.name).toBe('dgram');
    expect(unavailable).toEqual([]);
  });
});

describe.skipIf(missing !== undefined)(withIoUring, () => {
  it('frees the ports of a terminated thread once a successor starts', async () => {
    const memory = datagramsMemory();
    const start = async (): Promise<{ thread: Worker; port: number }> => {
      const thread = new Worker(new URL('./datagrams-thread.ts', import.meta.url), { workerData: memory });
      const [port] = (await once(thread, 'message')) as [number];
      return { thread, port };
    };
    const probe = createSocket('udp4');
    let former = await start();
    for (let round = 0; round < 3; round++) {
      await expect(bound(probe, former.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
      await former.thread.terminate();
      const next = await start();
      const again = createSocket('udp4');
      // The kernel frees a ring in the background.
      await eventually(() => bound(again, former.port));
      await closed(again);
      former = next;
    }
    await former.thread.terminate();
    new RingMappings(memory).unmapAll(openSystemCalls());
    await closed(probe);
  });

  it('delivers more datagrams in a turn than it has buffers, in order and completely', async () => {
    const datagrams = new IoUringDatagrams(openSystemCalls());
    const sockets = await Promise.all(Array.from({ length: 12 }, () => Bench.open(datagrams)));
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        for (const each of sockets) await each[Symbol.asyncDispose]();
      },
    };
    for (let i = 0; i < 200; i++) {
      for (const { peer, socket } of sockets)
        peer.send(Buffer.of(i, 1 + (i % 7)).subarray(0, 1 + (i % 2)), socket.port, '127.0.0.1');
    }
    await Promise.all(sockets.map((each) => each.received(200)));
    for (const { inbox } of sockets)
      expect(inbox.map((datagram) => datagram[0])).toEqual(Array.from({ length: 200 }, (_, i) => i));
    expect(datagrams.dump()).toMatchObject({ received: 2400, receiveErrors: 0, truncated: 0, dropped: 0 });
  });

  it('drops datagrams larger than a buffer', async () => {
    await using bench = await Bench.open(new IoUringDatagrams(openSystemCalls()));
    bench.peer.send(Buffer.alloc(4000), bench.socket.port, '127.0.0.1');
    bench.peer.send(Buffer.from('fits'), bench.socket.port, '127.0.0.1');
    await bench.received(1);
    expect(bench.inbox.map(String)).toEqual(['fits']);
  });
});

function bound(socket: Socket, port: number): Promise<unknown> {
  const listening = once(socket, 'listening');
  socket.bind({ port, address: '127.0.0.1', exclusive: true });
  return listening;
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

class Bench {
  readonly peer: Socket;
  readonly peerEndpoint: Endpoint;
  socket!: DatagramSocket;
  readonly inbox: Buffer[] = [];
  readonly peerInbox: Buffer[] = [];
  readonly lastSource = new Endpoint();
  peerSourcePort = 0;
  onReceive: (datagram: Buffer, source: Endpoint) => void = () => {};
  readonly #waiting = new Set<() => void>();

  private constructor(peer: Socket, host: string) {
    this.peer = peer;
    this.peerEndpoint = Endpoint.of(host, peer.address().port);
    peer.on('message', (datagram, { port }) => {
      this.peerInbox.push(datagram);
      this.peerSourcePort = port;
      this.#wake();
    });
  }

  static async open(datagrams: Datagrams, host = '127.0.0.1', bindHost = host, port = 0): Promise<Bench> {
    const peer = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4', recvBufferSize: 1_000_000 });
    peer.bind(0, host);
    await once(peer, 'listening');
    const bench = new Bench(peer, host);
    bench.socket = await datagrams.bind({
      host: bindHost,
      port,
      receive: (datagram, source) => {
        bench.inbox.push(Buffer.from(datagram));
        bench.lastSource.copy(source);
        bench.onReceive(datagram, source);
        bench.#wake();
      },
    });
    return bench;
  }

  received(count: number): Promise<void> {
    return this.#until(() => this.inbox.length >= count);
  }

  peerReceived(count: number): Promise<void> {
    return this.#until(() => this.peerInbox.length >= count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.socket.close();
    await new Promise<void>((resolve) => this.peer.close(() => resolve()));
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
