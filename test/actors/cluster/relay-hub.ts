import type { NodeRelay } from '../../../storage/nodes/node-relay.ts';

/** An in-process relay that delivers messages as JSON in a later turn of the event loop. */
export class RelayHub {
  /** Accepts messages and delivers none, like a frozen node. */
  isSilent = false;
  /** Accepts the next message to this node and does not deliver it. */
  losesNextTo: string | null = null;
  readonly #subscriptions = new Set<{ topic: string; boot: string; listener: (message: unknown) => void }>();
  readonly #disconnected = new Set<string>();
  /** Deliveries that wait for a frozen node, by boot. */
  readonly #frozen = new Map<string, { topics: string; later: (() => void)[] }>();

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
        for (const { boot: to, listener } of this.isSilent ? [] : reached) {
          if (this.losesNextTo === to) {
            this.losesNextTo = null;
            continue;
          }
          const deliver = () => listener(JSON.parse(json));
          const frozen = this.#frozen.get(to);
          if (frozen !== undefined && topic.endsWith(frozen.topics)) frozen.later.push(deliver);
          else setImmediate(deliver);
        }
        return reached.length;
      },
      close: async () => void (await Promise.all([...own].map((end) => end()))),
    };
  }

  /** Keeps the messages to a node until the returned function is called; only those of topics with this end, if given. */
  freeze(boot: string, topics = ''): () => void {
    const later: (() => void)[] = [];
    this.#frozen.set(boot, { topics, later });
    return () => {
      this.#frozen.delete(boot);
      for (const deliver of later) setImmediate(deliver);
    };
  }

  disconnect(boot: string): void {
    this.#disconnected.add(boot);
  }

  reconnect(boot: string): void {
    this.#disconnected.delete(boot);
  }
}
