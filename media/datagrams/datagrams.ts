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
  /** Call it when all sockets are closed, and nothing after it. */
  close(): void;
}

export interface BindOptions {
  host: string;
  port: number;
  receive: DatagramReceiver;
}

/**
 * Receives a datagram, which it may change and send. Both arguments are reused after it returns. Must not throw.
 */
export type DatagramReceiver = (datagram: Buffer, source: Endpoint) => void;

export interface DatagramSocket {
  readonly port: number;
  /**
   * Sends without waiting and ignores errors; loss statistics show them. May read the bytes until the next turn of the
   * event loop, so pass a slot of a `SendRing` or the datagram that was just received.
   */
  send(datagram: Buffer, to: Endpoint): void;
  /** Idempotent. Stops receiving, sends pending datagrams, and resolves when the port is free. */
  close(): Promise<void>;
}
