import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import { type NodeRelay, RelayFullError } from '../../storage/nodes/node-relay.ts';
import type { PublicCallEvent } from '../call-view.ts';
import type { Logger } from '../logger.ts';
import {
  ACKNOWLEDGED_WITHIN_MS,
  type NodeCommands,
  openNodeCommands,
  type SendOptions,
  unreachable,
} from './node-commands.ts';

/**
 * Connects this node with the others: sends commands to call owners and receives events of calls elsewhere. The relay
 * opens with the first other node, so a single node has none.
 */
export interface Cluster {
  /** Sends a stored event to the nodes that watch its call. Never throws. */
  publish(callId: string, event: PublicCallEvent): void;
  /**
   * Receives events of a call from other nodes until the signal aborts. Resolves once they arrive; at once if there is
   * no other node.
   */
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): Promise<void>;
  /** Sends a message to the other nodes that subscribe to a topic, at most once. Never throws. */
  broadcast(topic: string, message: unknown): void;
  /** Receives broadcasts to a topic, including this node's, until the signal aborts. Resolves once messages arrive. */
  subscribe(topic: string, listener: (message: unknown) => void, signal: AbortSignal): Promise<void>;
  /** @throws TandemError as `NodeCommands.send` */
  send(boot: string, command: string, args: unknown, options?: SendOptions): Promise<unknown>;
  serve(handlers: Readonly<Record<string, CommandHandler>>): void;
  close(): Promise<void>;
}

/** Arguments and result are plain JSON. */
export type CommandHandler = (args: never) => Promise<unknown>;

export interface ClusterOptions {
  nodes: Pick<NodeDirectory, 'boot' | 'peers' | 'onRenewed'>;
  openRelay: () => Promise<NodeRelay>;
  clock: Clock;
  logger: Logger;
}

interface Link {
  relay: NodeRelay;
  commands: NodeCommands;
}

export function createCluster({ nodes, openRelay, clock, logger }: ClusterOptions): Cluster {
  const handlers = new Map<string, CommandHandler>();
  let link: Promise<Link> | null = null;

  async function execute(command: string, args: unknown): Promise<unknown> {
    const handler = handlers.get(command);
    // A node with a newer version may send unknown commands.
    if (handler === undefined) throw new TandemError('NODE_UNREACHABLE', `This server does not know ${command}.`);
    return await handler(args as never);
  }

  function open(): Promise<Link> {
    link ??= (async () => {
      const relay = await openRelay();
      const { boot } = nodes;
      const commands = await openNodeCommands({
        ...{ relay, boot, clock, logger },
        execute,
      });
      return { relay, commands };
    })();
    link.catch((error) => {
      link = null;
      logger.warn({ err: error }, 'opening the relay between nodes failed');
    });
    return link;
  }

  const topicOf = (callId: string) => `calls.${callId}`;
  const isAlone = () => nodes.peers().length === 0;

  function broadcast(topic: string, message: unknown): void {
    if (isAlone()) return;
    void open()
      .then(({ relay }) => relay.publish(topic, message))
      .catch((error) => {
        // The relay logs dropped messages once per outage.
        if (!(error instanceof RelayFullError))
          logger.warn({ topic, err: error }, 'sending a message to other nodes failed');
      });
  }

  async function subscribe(topic: string, listener: (message: unknown) => void, signal: AbortSignal): Promise<void> {
    const { relay } = await open();
    if (signal.aborted) return;
    const end = await relay.subscribe(topic, listener);
    const leave = () => void end().catch(() => {});
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
  }

  return {
    // A watcher loads a missed event with the next event or heartbeat.
    publish: (callId, event) => broadcast(topicOf(callId), event),
    async watch(callId, listener, signal) {
      if (isAlone()) return;
      await subscribe(topicOf(callId), (event) => listener(event as PublicCallEvent), signal);
    },
    broadcast,
    subscribe,
    async send(boot, command, args, options) {
      // While Redis is away, opening the relay waits.
      const opened = await within(open(), { ms: ACKNOWLEDGED_WITHIN_MS, clock }).catch((cause) => {
        throw unreachable(cause);
      });
      if (opened === LATE) throw unreachable();
      return await opened.commands.send(boot, command, args, options);
    },
    serve(served) {
      const isFirst = handlers.size === 0;
      for (const [command, handler] of Object.entries(served)) handlers.set(command, handler);
      if (!isFirst) return;
      nodes.onRenewed((peers) => {
        if (peers.length > 0) void open().catch(() => {});
        void link?.then(({ commands }) => commands.keepOnly(new Set(peers.map((peer) => peer.boot)))).catch(() => {});
      });
    },
    async close() {
      const opened = link && (await within(link, { ms: ACKNOWLEDGED_WITHIN_MS, clock }).catch(() => null));
      if (!opened || opened === LATE) return;
      const { commands, relay } = opened;
      // Do not wait for an unavailable Redis.
      await within(
        commands.close().then(() => relay.close()),
        { ms: ACKNOWLEDGED_WITHIN_MS, clock },
      );
    },
  };
}
