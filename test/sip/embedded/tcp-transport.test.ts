import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { openTcpTransport, type TcpTransport } from '../../../sip/embedded/transport/tcp-transport.ts';
import { serializeMessage } from '../../../sip/message/index.ts';
import { eventually, untilTruthy } from '../../eventually.ts';
import { Harness, untilRouted } from './server-harness.ts';
import { SimulatedClock } from './simulated-clock.ts';
import { SipPeer } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

const OPTIONS = 'OPTIONS sip:a@127.0.0.1 SIP/2.0\r\n\r\n';

async function open(
  options: { clock?: SimulatedClock; onFrame?: (connectionId: number, port: number) => void } = {},
): Promise<TcpTransport> {
  const { onFrame = () => {}, ...rest } = options;
  const transport = await openTcpTransport({
    host: '127.0.0.1',
    port: 0,
    ...rest,
    onFrame: (_bytes, _host, port, connectionId) => onFrame(connectionId, port),
  });
  harness.onClose(() => transport.close());
  return transport;
}

/** A client that discards received data, or reads nothing while paused. */
async function connect(port: number): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  await once(socket, 'connect');
  harness.onClose(async () => void socket.destroy());
  return socket;
}

/** Resolves on close, including resets. */
function closing(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => socket.resume().once('close', () => resolve()));
}

it('a connection without a complete message closes despite slow progress', async () => {
  const clock = new SimulatedClock();
  const transport = await open({ clock });
  const socket = await connect(transport.port);
  const closed = closing(socket);
  await untilTruthy(() => clock.pendingCount === 1);
  for (const byte of 'INVITE sip:a@127.0.0.1 SIP/2.0') {
    socket.write(byte);
    clock.advance(900);
  }
  clock.advance(31_999 - clock.nowMs);
  expect(transport.dump()).toMatchObject({ connections: 1, tooSlow: 0 });
  clock.advance(1);
  await closed;
  expect(transport.dump()).toMatchObject({ tooSlow: 1 });
});

it('a connection that stops within its second message closes', async () => {
  const clock = new SimulatedClock();
  let count = 0;
  const transport = await open({ clock, onFrame: () => count++ });
  const socket = await connect(transport.port);
  const closed = closing(socket);
  socket.write(`${OPTIONS}\r\nOPTIONS sip:a@127.0.0.1 SIP/2.0\r\nVia: `);
  await untilTruthy(() => count === 1 && clock.pendingCount === 1);
  clock.advance(32_000);
  await closed;
});

it('an idle connection between messages stays open, even after a single CRLF', async () => {
  const clock = new SimulatedClock();
  let count = 0;
  const transport = await open({ clock, onFrame: () => count++ });
  const socket = await connect(transport.port);
  socket.write(OPTIONS);
  await untilTruthy(() => count === 1);
  socket.write('\r\n');
  clock.advance(120_000);
  socket.write(OPTIONS);
  await untilTruthy(() => count === 2);
  expect(clock.pendingCount).toBe(0);
});

it('a peer that never reads costs a bounded buffer', async () => {
  const from = Promise.withResolvers<{ id: number; port: number }>();
  const transport = await open({ onFrame: (id, port) => from.resolve({ id, port }) });
  const socket = await connect(transport.port);
  socket.pause();
  socket.write(OPTIONS);
  const { id, port } = await from.promise;
  const failed = Promise.withResolvers<void>();
  const bytes = Buffer.alloc(65_536);
  let sent = 0;
  let isRefused = false;
  while (!isRefused && sent < 64 * 1024 * 1024) {
    transport.send(bytes, { host: '127.0.0.1', port, connectionId: id }, () => {
      isRefused = true;
      failed.resolve();
    });
    sent += bytes.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await failed.promise;
  // Kernel buffers come on top of the bound.
  expect(sent).toBeLessThan(16 * 1024 * 1024);
});

it('a burst of requests waits for a new connection to open', async () => {
  const transport = await open();
  let received = 0;
  const { remote } = await listen((socket) => socket.on('data', ({ length }) => (received += length)));
  let failed = 0;
  for (let sent = 0; sent < 1000; sent++) transport.send(Buffer.alloc(1000), remote, () => failed++);
  await untilTruthy(() => received + 1000 * failed === 1_000_000);
  expect(failed).toBe(0);
});

it('a peer that never reads does not delay close', async () => {
  const from = Promise.withResolvers<{ id: number; port: number }>();
  const transport = await openTcpTransport({
    host: '127.0.0.1',
    port: 0,
    onFrame: (_bytes, _host, port, id) => from.resolve({ id, port }),
  });
  const socket = await connect(transport.port);
  socket.pause();
  socket.write(OPTIONS);
  const { id, port } = await from.promise;
  // Larger than kernel buffers.
  transport.send(Buffer.alloc(32 * 1024 * 1024), { host: '127.0.0.1', port, connectionId: id }, () => {});
  await transport.close();
  await closing(socket);
  expect(socket.destroyed).toBe(true);
});

it('a request after an unanswered one uses a new connection', async () => {
  const { srf } = await harness.start({ timers: { inviteTimeoutMs: 200 } });
  const { sockets, remote } = await listen();
  const uri = `sip:peer@127.0.0.1:${remote.port};transport=tcp`;
  for (let attempt = 1; attempt <= 2; attempt++) {
    await expect(srf.createUAC(uri, { localSdp: 'v=0\r\n' })).rejects.toMatchObject({ status: 408 });
    // The timeout may be reported before the server has accepted the connection.
    await eventually(() => expect(sockets).toHaveLength(attempt));
  }
});

/** Counts the connections to it. */
async function listen(onConnection: (socket: net.Socket) => void = () => {}) {
  const sockets: net.Socket[] = [];
  const server = net.createServer((socket) => {
    sockets.push(socket.resume());
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  harness.onClose(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as net.AddressInfo;
  return { sockets, remote: { host: '127.0.0.1', port, connectionId: null } };
}

it('a peer that answers no request costs few connections', async () => {
  const clock = new SimulatedClock();
  const transport = await open({ clock });
  const { sockets, remote } = await listen();
  for (let request = 1; request <= 5; request++) {
    transport.send(Buffer.from(OPTIONS), remote, () => {});
    await untilTruthy(() => sockets.length === request);
    transport.distrust(remote);
    clock.advance(32_000);
  }
  await untilTruthy(() => (transport.dump() as { connections: number }).connections === 0);
});

it('a peer that ignores a request but sent another message keeps its connection', async () => {
  const heard = Promise.withResolvers<void>();
  const transport = await open({ onFrame: () => heard.resolve() });
  const { remote } = await listen((socket) => socket.write(OPTIONS));
  transport.send(Buffer.from(OPTIONS), remote, () => {});
  await heard.promise;
  transport.distrust(remote);
  transport.send(Buffer.from(OPTIONS), remote, () => {});
  expect(transport.dump()).toMatchObject({ connections: 1 });
});

it('a response finds its peer by the Via if its connection is gone', async () => {
  const { srf, server } = await harness.start();
  const answer = Promise.withResolvers<() => void>();
  srf.invite((_request, response) => answer.resolve(() => response.send(486)));
  await untilRouted(server, 'invite');
  const peer = await SipPeer.tcp();
  harness.onClose(() => peer.close());
  const socket = await connect(server.sipPort);
  const invite = peer.make('INVITE', { callId: 'closed', port: server.sipPort });
  socket.write(serializeMessage(invite));
  const send = await answer.promise;
  socket.destroy();
  await untilConnections(server, 0);
  send();
  await peer.response(486);
});

async function untilConnections(server: { dump(): Promise<unknown> }, wanted: number): Promise<void> {
  for (;;) {
    const { network } = (await server.dump()) as { network: { tcp: { connections: number } } };
    if (network.tcp.connections === wanted) return;
  }
}
