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
  /** Asks the forwarder about each datagram of a socket with a `forwardId` before its receiver gets it. */
  forwardBy(forwarder: DatagramForwarder): void;
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

/** Memory of datagrams. */
export interface DatagramMemory {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

/** Changes datagrams in the memory where they were received, without objects. Must not throw. */
export interface DatagramForwarder {
  /** First words of the `sockaddr_in` to which the datagram must be sent. */
  readonly destination0: number;
  readonly destination1: number;
  /** Called before the datagrams of a turn. */
  beginTurn(): void;
  /**
   * @param id `forwardId` of the socket
   * @param at word of `memory` where the datagram starts
   * @param source0 first words of the `sockaddr_in` from which it came
   * @returns `forwardId` of the socket that must send it; -1 if it is unchanged and for the receiver.
   */
  forward(id: number, memory: DatagramMemory, at: number, bytes: number, source0: number, source1: number): number;
}

export interface DatagramSocket {
  /** A small number, free again after `close`. Null without forwarders, and for IPv6. */
  readonly forwardId: number | null;
  readonly port: number;
  /**
   * Sends without waiting; errors show only in loss statistics. May read the bytes until the next turn of the event
   * loop, so pass a slot of a `SendRing` or the datagram just received.
   */
  send(datagram: Buffer, to: Endpoint): void;
  /** Stops receiving, sends pending datagrams, and resolves when the port is free. Idempotent. */
  close(): Promise<void>;
}
