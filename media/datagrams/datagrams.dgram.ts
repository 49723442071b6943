import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { BindOptions, DatagramReceiver, DatagramSocket, Datagrams } from './datagrams.ts';
import { Endpoint } from './endpoint.ts';

/** Node's datagram sockets: one system call per packet, on every platform. */
export class DgramDatagrams implements Datagrams {
  readonly name = 'dgram';
  received = 0;
  #sockets = 0;

  bind(options: BindOptions): Promise<DatagramSocket> {
    const family = isIPv6(options.host) ? 6 : 4;
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      // Addresses are literal. Node's own lookup would delay every packet by a turn of the event loop.
      lookup: (hostname, _options, callback) => callback(null, hostname, family),
    });
    return new Promise((resolve, reject) => {
      socket.once('error', (error) => {
        socket.close();
        reject(error);
      });
      socket.bind({ address: options.host, port: options.port, exclusive: true }, () => {
        socket.removeAllListeners('error');
        // Such as an unreachable network for a single packet.
        socket.on('error', () => {});
        this.#sockets += 1;
        const receive: DatagramReceiver = (datagram, source) => {
          this.received += 1;
          options.receive(datagram, source);
        };
        resolve(new DgramSocket({ socket, family, receive, onClosed: () => this.#sockets-- }));
      });
    });
  }

  /** Never asks: Node gives each datagram its own memory. */
  forwardBy(): void {}

  dump(): unknown {
    return { io: this.name, sockets: this.#sockets, received: this.received };
  }

  close(): void {}
}

interface DgramSocketOptions {
  socket: Socket;
  family: 4 | 6;
  receive: BindOptions['receive'];
  onClosed: () => void;
}

class DgramSocket implements DatagramSocket {
  readonly forwardId = null;
  readonly port: number;
  readonly #socket: Socket;
  readonly #family: 4 | 6;
  readonly #onClosed: () => void;
  /** The last source, as text and numbers. The next one is nearly always the same. */
  #sourceHost = '';
  readonly #source = new Endpoint();
  #targetHost = '';
  readonly #target = new Endpoint();
  #closing: Promise<void> | null = null;

  constructor({ socket, family, receive, onClosed }: DgramSocketOptions) {
    this.#socket = socket;
    this.#family = family;
    this.#onClosed = onClosed;
    this.port = socket.address().port;
    socket.on('message', (datagram, { address, port }) => {
      if (address !== this.#sourceHost) {
        this.#source.setHost(address);
        this.#sourceHost = address;
      }
      this.#source.port = port;
      receive(datagram, this.#source);
    });
  }

  send(datagram: Buffer, to: Endpoint): void {
    if (this.#closing !== null || to.port === 0) return;
    if (this.#targetHost === '' || !to.isSameHost(this.#target)) {
      this.#target.copyHost(to);
      this.#targetHost = to.hostFor(this.#family);
    }
    this.#socket.send(datagram, to.port, this.#targetHost);
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#socket.close(() => {
        this.#onClosed();
        resolve();
      });
    });
    return this.#closing;
  }
}
