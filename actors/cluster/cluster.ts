import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { NodeRelay } from '../../storage/nodes/node-relay.ts';
import type { PublicCallEvent } from '../call-view.ts';
import type { Logger } from '../logger.ts';
import { ACKNOWLEDGED_WITHIN_MS, type NodeCommands, openNodeCommands, unreachable } from './node-commands.ts';

/**
 * This node among the others: commands to the owner of a call, and the events of calls that run elsewhere. The relay opens
 * with the first other node, so an installation of one node has none.
 */
export interface Cluster {
  /** Sends an event that was stored to the nodes that watch its call. Never throws. */
  publish(callId: string, event: PublicCallEvent): void;
  /**
   * Calls the listener with events of a call that other nodes publish, until the signal aborts. Resolves once they arrive; at
   * once if there is no other node.
   */
  watch(callId: string, listener: (event: PublicCallEvent) => void, signal: AbortSignal): Promise<void>;
  /** @throws TandemError as `NodeCommands.send` */
  send(boot: string, command: string, args: unknown): Promise<unknown>;
  /** Carries out the commands of other nodes from now on. */
  serve(execute: (command: string, args: unknown) => Promise<unknown>): void;
  close(): Promise<void>;
}

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
  let execute: (command: string, args: unknown) => Promise<unknown> = async () => {
    throw unreachable();
  };
  let link: Promise<Link> | null = null;

  function open(): Promise<Link> {
    link ??= (async () => {
      const relay = await openRelay();
      const { boot } = nodes;
      const commands = await openNodeCommands({
        ...{ relay, boot, clock, logger },
        execute: (command, args) => execute(command, args),
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

  return {
    publish(callId, event) {
      if (isAlone()) return;
      // A watcher that misses one loads it with the next event, or with the next heartbeat of its stream.
      void open()
        .then(({ relay }) => relay.publish(topicOf(callId), event))
        .catch((error) => logger.warn({ callId, err: error }, 'sending an event to other nodes failed'));
    },
    async watch(callId, listener, signal) {
      if (isAlone()) return;
      const { relay } = await open();
      if (signal.aborted) return;
      const end = await relay.subscribe(topicOf(callId), (event) => listener(event as PublicCallEvent));
      const leave = () => void end().catch(() => {});
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
    },
    async send(boot, command, args) {
      // A relay whose Redis is away opens when that is back.
      const opened = await within(open(), { ms: ACKNOWLEDGED_WITHIN_MS, clock }).catch((cause) => {
        throw unreachable(cause);
      });
      if (opened === LATE) throw unreachable();
      return await opened.commands.send(boot, command, args);
    },
    serve(how) {
      execute = how;
      nodes.onRenewed((peers) => {
        if (peers.length > 0) void open().catch(() => {});
        void link?.then(({ commands }) => commands.keepOnly(new Set(peers.map((peer) => peer.boot)))).catch(() => {});
      });
    },
    async close() {
      const opened = link && (await within(link, { ms: ACKNOWLEDGED_WITHIN_MS, clock }).catch(() => null));
      if (!opened || opened === LATE) return;
      await opened.commands.close();
      await opened.relay.close();
    },
  };
}
