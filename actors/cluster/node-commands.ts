import { randomUUID } from 'node:crypto';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { isStorageOutage } from '../../storage/database.ts';
import type { NodeRelay } from '../../storage/nodes/node-relay.ts';
import type { Logger } from '../logger.ts';

/**
 * Sends commands to other nodes over the relay. The receiver acknowledges a command at once, executes it when the sender
 * confirms, and responds when it is done. Without acknowledgement within a second the command fails and is not executed,
 * so that its client can repeat it.
 */
export interface NodeCommands {
  /**
   * @throws TandemError of the other node; NODE_UNREACHABLE, also if the node is lost meanwhile; INTERNAL if the
   * response times out
   */
  send(boot: string, command: string, args: unknown, options?: SendOptions): Promise<unknown>;
  /** Rejects requests to all other nodes, because they will not respond. */
  keepOnly(boots: ReadonlySet<string>): void;
  /** Stops taking commands. Waits up to five seconds for those in progress. */
  close(): Promise<void>;
}

export interface SendOptions {
  /** Known length of what the command does, such as pressing keys. Default: 0. */
  takesMs?: number;
}

export interface NodeCommandsOptions {
  relay: NodeRelay;
  boot: string;
  execute: (command: string, args: unknown) => Promise<unknown>;
  clock: Clock;
  logger: Logger;
}

export const ACKNOWLEDGED_WITHIN_MS = 1_000;
/** Longer than the slowest command of unknown length: downloading and decoding a sound. */
const ANSWERED_WITHIN_MS = 60_000;
/** A command whose sender is gone is never confirmed. */
const CONFIRMED_WITHIN_MS = 5_000;
/**
 * Nodes of earlier versions do not confirm. Ignore their older commands: a frozen node must not execute what its clients
 * gave up. Node clocks may differ by less than this.
 */
const OLDEST_COMMAND_MS = 10_000;
const CLOSE_TIMEOUT_MS = 5_000;

export async function openNodeCommands(options: NodeCommandsOptions): Promise<NodeCommands> {
  const { relay, boot, clock, logger } = options;
  const waiting = new Map<string, Waiting>();
  const answering = new Set<Promise<void>>();
  /** Acknowledged commands that wait for their confirmation, by id. */
  const unconfirmed = new Map<string, PromiseWithResolvers<void>>();

  const unsubscribe = [
    await relay.subscribe(commandsOf(boot), (message) => {
      const answered = answer(message as Command).finally(() => answering.delete(answered));
      answering.add(answered);
    }),
    await relay.subscribe(answersOf(boot), (message) => {
      const { id, ...outcome } = message as Answer;
      if (outcome.type === 'acknowledged') waiting.get(id)?.acknowledged.resolve();
      else waiting.get(id)?.answered.resolve(outcome);
    }),
    await relay.subscribe(confirmationsOf(boot), (message) => unconfirmed.get((message as Confirmation).id)?.resolve()),
  ];

  async function answer({ id, from, command, args, sentAtMs, willBeConfirmed = false }: Command): Promise<void> {
    if (!willBeConfirmed && clock.now() - sentAtMs > OLDEST_COMMAND_MS) return;
    const confirmed = Promise.withResolvers<void>();
    if (willBeConfirmed) unconfirmed.set(id, confirmed);
    const reply = async (outcome: Outcome | { type: 'acknowledged' }) => {
      await relay.publish(answersOf(from), { id, ...outcome }).catch((error) => {
        logger.warn({ err: error, command }, 'answering another node failed');
      });
    };
    await reply({ type: 'acknowledged' });
    if (willBeConfirmed) {
      const outcome = await within(confirmed.promise, { ms: CONFIRMED_WITHIN_MS, clock });
      unconfirmed.delete(id);
      // The sender may still wait if its confirmation was lost.
      if (outcome === LATE) return await reply(failureOf(unreachable(), { command, logger }));
    }
    await reply(
      await options.execute(command, args).then(
        (value): Outcome => ({ type: 'done', value }),
        (error): Outcome => failureOf(error, { command, logger }),
      ),
    );
  }

  return {
    async send(to, command, args, { takesMs = 0 } = {}) {
      const id = randomUUID();
      const entry: Waiting = { to, acknowledged: Promise.withResolvers(), answered: Promise.withResolvers() };
      // Avoids an unhandled rejection before anyone awaits it.
      entry.answered.promise.catch(() => {});
      waiting.set(id, entry);
      try {
        const message: Command = { id, from: boot, command, args, sentAtMs: clock.now(), willBeConfirmed: true };
        const sent = relay.publish(commandsOf(to), message).catch((cause) => {
          throw unreachable(cause);
        });
        const acknowledged = sent.then((nodes) => {
          if (nodes === 0) throw unreachable();
          return entry.acknowledged.promise;
        });
        if ((await within(acknowledged, { ms: ACKNOWLEDGED_WITHIN_MS, clock })) === LATE) throw unreachable();
        // Not awaited: the relay waits for an unavailable server. Despite an error it may have arrived, so only the other
        // node knows whether it executes the command.
        relay.publish(confirmationsOf(to), { id } satisfies Confirmation).catch((error) => {
          logger.warn({ err: error, command }, 'confirming a command to another node failed');
        });
        const outcome = await within(entry.answered.promise, { ms: takesMs + ANSWERED_WITHIN_MS, clock });
        if (outcome === LATE) throw new TandemError('INTERNAL', 'Another server took the request and did not answer.');
        if (outcome.type === 'done') return outcome.value;
        const { code, message: text, details, retryAfterS } = outcome;
        throw new TandemError(code, text, { details, ...(retryAfterS !== null && { retryAfterS }) });
      } finally {
        waiting.delete(id);
      }
    },
    keepOnly(boots) {
      for (const { to, answered } of waiting.values()) if (!boots.has(to)) answered.reject(unreachable());
    },
    async close() {
      const [stopTakingCommands, ...others] = unsubscribe;
      await stopTakingCommands!().catch(() => {});
      await within(Promise.allSettled(answering), { ms: CLOSE_TIMEOUT_MS, clock });
      await Promise.allSettled(others.map((end) => end()));
    },
  };
}

const commandsOf = (boot: string) => `nodes.${boot}.commands`;
const answersOf = (boot: string) => `nodes.${boot}.answers`;
const confirmationsOf = (boot: string) => `nodes.${boot}.confirmations`;

interface Command {
  id: string;
  /** Boot that gets the response. */
  from: string;
  command: string;
  args: unknown;
  /** Wall clock of the sender. */
  sentAtMs: number;
  /** Whether a confirmation follows the acknowledgement. */
  willBeConfirmed?: boolean;
}

interface Confirmation {
  /** Id of the command. */
  id: string;
}

type Outcome =
  | { type: 'done'; value: unknown }
  | { type: 'failed'; code: ErrorCode; message: string; details: unknown; retryAfterS: number | null };
type Answer = { id: string } & (Outcome | { type: 'acknowledged' });

interface Waiting {
  to: string;
  acknowledged: PromiseWithResolvers<void>;
  answered: PromiseWithResolvers<Outcome>;
}

function failureOf(error: unknown, { command, logger }: { command: string; logger: Logger }): Outcome {
  if (error instanceof TandemError) {
    const { code, message, details = null, retryAfterS } = error;
    return { type: 'failed', code, message, details, retryAfterS };
  }
  if (isStorageOutage(error)) {
    const message = 'The database cannot be reached. Try again shortly.';
    return { type: 'failed', code: 'STORAGE_UNAVAILABLE', message, details: null, retryAfterS: RETRY_AFTER_S };
  }
  logger.error({ err: error, command }, 'a command of another node failed');
  return { type: 'failed', code: 'INTERNAL', message: 'Something went wrong.', details: null, retryAfterS: null };
}

const RETRY_AFTER_S = 5;

/** Error for a request whose call runs on an unresponsive node. */
export function unreachable(cause?: unknown): TandemError {
  const message = 'The server that runs this call does not respond. If it stopped, its call ends soon. Try again.';
  return new TandemError('NODE_UNREACHABLE', message, { retryAfterS: RETRY_AFTER_S, cause });
}
