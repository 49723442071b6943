import type { Datagrams } from '../media/datagrams/datagrams.ts';
import type { Endpoint } from '../media/datagrams/endpoint.ts';

export type Receive = (datagram: Buffer, source: Endpoint) => void;

/** Datagrams without sockets, so that only the work on a packet is measured. What is sent is counted. */
export class MemoryDatagrams implements Datagrams {
  readonly name = 'memory';
  readonly received = 0;
  /** Packets. */
  sent = 0;
  readonly #receivers = new Map<number, Receive>();

  bind: Datagrams['bind'] = async ({ port, receive }) => {
    this.#receivers.set(port, receive);
    return { port, send: () => (this.sent += 1), close: async () => {} };
  };

  /** What a packet that arrives at a bound port is given to. */
  receiverAt(port: number): Receive {
    return this.#receivers.get(port)!;
  }

  dump(): null {
    return null;
  }

  close(): void {}
}
