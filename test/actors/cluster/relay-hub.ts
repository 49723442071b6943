import type { NodeRelay } from '../../../storage/nodes/node-relay.ts';

/** An in-process relay that delivers messages as JSON in a later turn of the event loop. */
export class RelayHub {
  /** Accepts messages and delivers none, like a frozen node. */
  isSilent = false;
  readonly #subscriptions = new Set<{ topic: string; boot: string; listener: (message: unknown) => void }>();
  readonly #disconnected = new Set<string>();

  connect(boot: string): NodeRelay {
    const own = new Set<() => Promise<void>>();
    return {
      subscribe: async (topic, listener) => {
        const subscription = { topic, boot, listener };
        this.#subscriptions.add(subscription);
        const end = async () => void this.#subscriptions.delete(subscription);
        own.add(end);
        return end;
      },
      publish: async (topic, message) => {
        const json = JSON.stringify(message);
        const reached = [...this.#subscriptions].filter(
          (each) => each.topic === topic && !this.#disconnected.has(each.boot),
        );
        if (!this.isSilent) for (const { listener } of reached) setImmediate(() => listener(JSON.parse(json)));
        return reached.length;
      },
      close: async () => void (await Promise.all([...own].map((end) => end()))),
    };
  }

  disconnect(boot: string): void {
    this.#disconnected.add(boot);
  }

  reconnect(boot: string): void {
    this.#disconnected.delete(boot);
  }
}
