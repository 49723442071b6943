import dgram from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, it } from 'vitest';
import { openUdpTransport, type UdpTransport } from '../../../sip/embedded/transport/udp-transport.ts';

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function open(onUnreachable: (host: string, port: number) => void = () => {}): Promise<UdpTransport> {
  const transport = await openUdpTransport({ host: '127.0.0.1', port: 0, onDatagram: () => {}, onUnreachable });
  opened.push(() => transport.close());
  return transport;
}

async function peer(): Promise<{ port: number; received: string[]; count: (wanted: number) => Promise<void> }> {
  const socket = dgram.createSocket('udp4');
  const received: string[] = [];
  socket.on('message', (bytes) => received.push(bytes.toString()));
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  opened.push(() => new Promise((resolve) => socket.close(() => resolve())));
  const count = async (wanted: number): Promise<void> => {
    while (received.length < wanted) await once(socket, 'message');
  };
  return { port: socket.address().port, received, count };
}

function send(transport: UdpTransport, port: number, text: string, wantsErrors: boolean): void {
  transport.send({ bytes: Buffer.from(text), host: '127.0.0.1', port, wantsErrors, onFailure: () => {} });
}

it('a request does not overtake the response sent before it', async () => {
  const transport = await open();
  const { port, received, count } = await peer();
  send(transport, port, 'first request', true);
  await count(1);
  send(transport, port, 'response', false);
  send(transport, port, 'request', true);
  await count(3);
  expect(received).toEqual(['first request', 'response', 'request']);
});

it('a datagram to port 0 fails without an exception', async () => {
  const transport = await open();
  for (const wantsErrors of [true, false]) {
    await new Promise<void>((resolve) =>
      transport.send({ bytes: Buffer.from('x'), host: '127.0.0.1', port: 0, wantsErrors, onFailure: resolve }),
    );
  }
});

it('datagrams to another address family fail', async () => {
  const transport = await open();
  for (let round = 0; round < 2; round++) {
    await new Promise<void>((resolve) =>
      transport.send({ bytes: Buffer.from('x'), host: '::1', port: 9, wantsErrors: true, onFailure: resolve }),
    );
  }
});

it('an oversized datagram fails without blaming its peer', async () => {
  const unreachable: number[] = [];
  const transport = await open((_host, port) => unreachable.push(port));
  const { port, received, count } = await peer();
  send(transport, port, 'connected', true);
  await count(1);
  await new Promise<void>((resolve) =>
    transport.send({ bytes: Buffer.alloc(70_000), host: '127.0.0.1', port, wantsErrors: true, onFailure: resolve }),
  );
  send(transport, port, 'still there', true);
  await count(2);
  expect(received).toEqual(['connected', 'still there']);
  expect(unreachable).toEqual([]);
});

it('more peers than sockets all receive their datagram', async () => {
  const transport = await open();
  const peers = await Promise.all(Array.from({ length: 300 }, peer));
  for (const { port } of peers) send(transport, port, 'INVITE', true);
  await Promise.all(peers.map(({ count }) => count(1)));
  expect(transport.dump()).toMatchObject({ peers: 256 });
});

it('close sends pending datagrams, even to a new peer', async () => {
  const transport = await open();
  const { port, received, count } = await peer();
  send(transport, port, 'BYE', true);
  await transport.close();
  opened.splice(0, 1);
  await count(1);
  expect(received).toEqual(['BYE']);
});
