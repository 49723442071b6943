import type { Endpoint } from './endpoint.ts';

/**
 * Datagram sockets of one media worker. Implemented in `datagrams.io-uring.ts`, `datagrams.epoll.ts` and
 * `datagrams.dgram.ts`.
 */
export interface Datagrams {
  /** Such as `dgram`. */
  readonly name: string;
  /** Datagrams so far. */
  readonly received: number;
  /**
   * Binds a UDP socket to a literal address.
   * @throws the system's error (`EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`).
   */
  bind(options: BindOptions): Promise<DatagramSocket>;
  dump(): unknown;
  /** When all sockets are closed. Nothing else may be called after it. */
  close(): void;
}

export interface BindOptions {
  host: string;
  port: number;
  receive: DatagramReceiver;
}

/**
 * Takes a datagram that arrived. It may be changed and sent. Both arguments are reused: after the return they hold
 * something else. Must not throw.
 */
export type DatagramReceiver = (datagram: Buffer, source: Endpoint) => void;

export interface DatagramSocket {
  readonly port: number;
  /**
   * Sends without waiting and without errors: what the network drops is what loss statistics are for. May read the
   * bytes until the event loop has turned, so give a slot of a `SendRing` or the datagram that was just received.
   */
  send(datagram: Buffer, to: Endpoint): void;
  /** Idempotent. Nothing is received any more; resolves when the port is free. What was sent before still goes out. */
  close(): Promise<void>;
}
