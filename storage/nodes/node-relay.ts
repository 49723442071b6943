import { createPostgresRelayBackend, type PostgresConnectionOptions, Relay } from 'bullmq';
import type { StorageLogger } from '../database.ts';
import { parseExactJson } from '../exact-json.ts';
import { jobConnection } from '../job-connection.ts';

/** Messages between nodes: BullMQ's relay, on Redis or Postgres. At most once, unordered. */
export interface NodeRelay {
  /** Resolves once messages of the topic arrive; the returned function unsubscribes. */
  subscribe(topic: string, listener: (message: unknown) => void): Promise<() => Promise<void>>;
  /**
   * Resolves with the number of receiving nodes. The message is any JSON; numbers keep their digits. Waits for an
   * unavailable server. @throws RelayFullError at once while `MOST_UNSENT` messages wait
   */
  publish(topic: string, message: unknown): Promise<number>;
  close(): Promise<void>;
}

/** A message was dropped. The relay logs the first one of an outage, and at its end how many were dropped. */
export class RelayFullError extends Error {
  override readonly name = 'RelayFullError';
}

/** Otherwise messages would fill the memory during a long outage. */
export const MOST_UNSENT = 10_000;

export interface OpenNodeRelayOptions {
  databaseUrl: string;
  /** Null: Postgres. */
  redisUrl: string | null;
  boot: string;
  /** Separates installations on one server. Default `tandem`, as for jobs. */
  namespace?: string;
  logger: StorageLogger;
}

export async function openNodeRelay(options: OpenNodeRelayOptions): Promise<NodeRelay> {
  const { databaseUrl, redisUrl, boot, namespace = 'tandem', logger } = options;
  const shared = { namespace, nodeId: boot, name: 'tandem' };
  const relay =
    redisUrl === null
      ? new Relay<PostgresConnectionOptions>({
          ...shared,
          connection: jobConnection({ databaseUrl, namespace, max: 3 }),
          backend: createPostgresRelayBackend,
        })
      : new Relay({ ...shared, connection: { url: redisUrl, maxRetriesPerRequest: null }, prefix: namespace });
  relay.on('error', (error: Error) => logger.warn({ err: error }, 'the relay between nodes failed'));
  await relay.waitUntilReady();
  let unsent = 0;
  let dropped = 0;
  const drop = (): never => {
    if (dropped === 0) logger.warn({ unsent }, 'messages between nodes are dropped: too many wait for their server');
    dropped += 1;
    throw new RelayFullError('too many messages wait for the relay between nodes');
  };
  const reportDropped = () => {
    if (dropped === 0 || unsent > 0) return;
    logger.warn({ dropped }, 'messages between nodes are sent again; some were dropped');
    dropped = 0;
  };
  return {
    async subscribe(topic, listener) {
      const subscription = await relay.subscribe<Enveloped>(topic, ({ data }) => {
        try {
          listener(parseExactJson(data.json));
        } catch (error) {
          logger.error({ err: error, topic }, 'a message between nodes could not be handled');
        }
      });
      return () => subscription.unsubscribe();
    },
    async publish(topic, message) {
      if (unsent >= MOST_UNSENT) drop();
      unsent += 1;
      try {
        const { nodes } = await relay.publish(topic, { json: JSON.stringify(message) } satisfies Enveloped);
        return nodes;
      } finally {
        unsent -= 1;
        reportDropped();
      }
    },
    close: () => relay.close(),
  };
}

/** BullMQ's own parser would round numbers in metadata. */
interface Enveloped {
  json: string;
}
