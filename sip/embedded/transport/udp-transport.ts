import dgram from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { addressLookup } from './address-lookup.ts';
import { PeerSocket } from './udp-peer-socket.ts';

export interface UdpTransportOptions {
  host: string;
  /** 0 for any. */
  port: number;
  onDatagram: (bytes: Buffer, host: string, port: number) => void;
  /** An ICMP error: the port is closed. */
  onUnreachable: (host: string, port: number) => void;
}

export interface UdpTransport {
  readonly port: number;
  send(datagram: UdpDatagram): void;
  close(): Promise<void>;
  dump(): unknown;
}

export interface UdpDatagram {
  bytes: Buffer;
  host: string;
  port: number;
  /** Reports a closed port, at the cost of a socket for that peer. */
  wantsErrors: boolean;
  onFailure: () => void;
}

/**
 * One unconnected socket for all peers and, on the same port, a connected socket for each recent destination. Only
 * connected sockets receive ICMP errors, without which a closed port looks like a slow one for 32 seconds. Where ports
 * cannot be shared, there is only the one socket.
 *
 * @throws the `bind` error, such as `EADDRINUSE`.
 */
export async function openUdpTransport(options: UdpTransportOptions): Promise<UdpTransport> {
  const type = isIPv6(options.host) ? 'udp6' : 'udp4';
  // Bind exclusively first, because sharing would let a second server start unnoticed on the same port.
  const exclusive = await bind(dgram.createSocket({ type, lookup: addressLookup }), options.host, options.port);
  const { port } = exclusive.address();
  let main = exclusive;
  let canShare = false;
  if (process.platform === 'linux') {
    await closeSocket(exclusive);
    main = await bind(dgram.createSocket({ type, reusePort: true, lookup: addressLookup }), options.host, port);
    canShare = true;
  }
  main.on('message', (bytes, source) => options.onDatagram(bytes, source.address, source.port));
  main.on('error', () => {});
  trySetBuffers(main);

  const peers = new Map<string, PeerSocket>();
  let closing = false;
  let closed = false;

  function sendUnconnected(bytes: Buffer, peerHost: string, peerPort: number, onFailure: () => void): void {
    if (closed) return;
    try {
      main.send(bytes, peerPort, peerHost, (error) => error && onFailure());
    } catch {
      // Node throws at port 0.
      setImmediate(onFailure);
    }
  }

  function openPeer(key: string, peerHost: string, peerPort: number): PeerSocket {
    const peer: PeerSocket = new PeerSocket({
      type,
      localHost: options.host,
      localPort: port,
      peerHost,
      peerPort,
      onDatagram: options.onDatagram,
      onUnreachable: () => options.onUnreachable(peerHost, peerPort),
      onUnsent: (bytes, onFailure) => sendUnconnected(bytes, peerHost, peerPort, onFailure),
      onClosed: () => {
        if (peers.get(key) === peer) peers.delete(key);
      },
    });
    return peer;
  }

  return {
    port,
    send({ bytes, host: peerHost, port: peerPort, wantsErrors, onFailure }) {
      if (closed) return;
      // Port 0 cannot be answered or connected to.
      if (!canShare || !wantsErrors || closing || peerPort === 0) {
        sendUnconnected(bytes, peerHost, peerPort, onFailure);
        return;
      }
      const key = `${peerHost}:${peerPort}`;
      const peer = peers.get(key) ?? openPeer(key, peerHost, peerPort);
      // Ordered by last use.
      peers.delete(key);
      peers.set(key, peer);
      peer.send(bytes, onFailure);
      evictOldest(peers);
    },
    async close() {
      // Queued datagrams of a peer's socket, such as its BYE, are sent by the main one.
      closing = true;
      await Promise.all([...peers.values()].map((peer) => peer.close()));
      closed = true;
      await closeSocket(main);
    },
    dump: () => ({ port, peers: peers.size }),
  };
}

function evictOldest(peers: Map<string, PeerSocket>): void {
  if (peers.size <= MAX_PEERS) return;
  const oldest = peers.values().next().value;
  if (oldest) void oldest.close();
}

async function bind(socket: dgram.Socket, address: string, port: number): Promise<dgram.Socket> {
  const listening = once(socket, 'listening');
  socket.bind({ port, address });
  await listening;
  return socket;
}

function closeSocket(socket: dgram.Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

/** Larger buffers survive bursts of calls while JavaScript is busy. A kernel that allows less is not an error. */
function trySetBuffers(socket: dgram.Socket): void {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  } catch {}
}

const MAX_PEERS = 256;
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
