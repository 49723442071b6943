import type { Endpoint } from './endpoint.ts';

/**
 * Datagram sockets of one media worker. Implemented in `datagrams.io-uring.ts`, `datagrams.epoll.ts` and
 * `datagrams.dgram.ts`.
 */
export interface Datagrams {
  /** Such as `dgram`. */
  readonly name: string;
  readonly received: number;
  /**
   * Binds a UDP socket to a literal address.
   * @throws the system's error (`EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`).
   */
  bind(options: BindOptions): Promise<DatagramSocket>;
  dump(): unknown;
  /** Call this last, when all sockets are closed. */
  close(): void;
}

export interface BindOptions {
  host: string;
  port: number;
  receive: DatagramReceiver;
}

/** Receives a datagram, which it may modify and send. Both arguments are reused after it returns. Must not throw. */
export type DatagramReceiver = (datagram: Buffer, source: Endpoint) => void;

export interface DatagramSocket {
  readonly port: number;
  /**
   * Sends without waiting; errors show only in loss statistics. May read the bytes until the next turn of the event
   * loop, so pass a slot of a `SendRing` or the datagram just received.
   */
  send(datagram: Buffer, to: Endpoint): void;
  /** Stops receiving, sends pending datagrams, and resolves when the port is free. Idempotent. */
  close(): Promise<void>;
}
