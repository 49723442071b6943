import type { Datagrams } from '../media/datagrams/datagrams.ts';
import type { Endpoint } from '../media/datagrams/endpoint.ts';

export type Receive = (datagram: Buffer, source: Endpoint) => void;

/** Datagrams without sockets, to measure only the work per packet. Counts what is sent. */
export class MemoryDatagrams implements Datagrams {
  readonly name = 'memory';
  readonly received = 0;
  /** Packets. */
  sent = 0;
  readonly #receivers = new Map<number, Receive>();

  bind: Datagrams['bind'] = async ({ port, receive }) => {
    this.#receivers.set(port, receive);
    return { forwardId: null, port, send: () => (this.sent += 1), close: async () => {} };
  };

  receiverAt(port: number): Receive {
    return this.#receivers.get(port)!;
  }

  forwardBy(): void {}

  dump(): null {
    return null;
  }

  close(): void {}
}
