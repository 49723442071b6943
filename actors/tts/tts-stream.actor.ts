import { randomUUID } from 'node:crypto';
import { createActor, fromPromise, waitFor } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import { ttsStreamMachine } from '../../machines/tts-stream.machine.ts';
import type { SpeechSynthesis } from '../../speech/synthesis/speech-synthesis.ts';
import type { SpokenClause } from '../../speech/synthesizer.ts';
import type { Sql } from '../../storage/database.ts';
import { type Charge, charge, refund } from '../../storage/ledger.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import { Handover } from './handover.ts';
import type { SpeakTextRequest, SpokenText, TtsDesk } from './tts-desk.ts';

export interface TtsDeskOptions {
  sql: Sql;
  synthesis: SpeechSynthesis;
  clock: Clock;
  logger: Logger;
}

/** What an actor's ports need to know and its context does not hold. */
interface LiveStream {
  request: SpeakTextRequest;
  clauses: Handover<SpokenClause>;
  charge: Charge | null;
  isHeard: boolean;
  /** Why it was refused, or failed. */
  error: unknown;
}

/** Storage that does not come back must not keep the server from ending. */
const CLOSE_WITHIN_MS = 5_000;

/** Gives the machine its real ports, once, and returns what starts an actor for each text. */
export function createTtsDesk({ sql, synthesis, clock, logger }: TtsDeskOptions): TtsDesk {
  const live = new Map<string, LiveStream>();
  const over = new Set<Promise<unknown>>();
  let closed = false;

  const machine = ttsStreamMachine.provide({
    actors: {
      charge: fromPromise(async ({ input: { streamId } }) => {
        const stream = live.get(streamId)!;
        stream.charge = await noting(stream, chargeFor(stream.request, { sql, streamId, at: new Date(clock.now()) }));
      }),
      speak: fromPromise(async ({ input: { streamId }, signal }) => {
        const stream = live.get(streamId)!;
        const { text, voice, wordsPerMinute, format } = stream.request;
        const spoken = synthesis.speak({ text, voice, wordsPerMinute, format }, signal);
        await noting(stream, stream.clauses.giveAll(spoken, signal));
      }),
      refund: fromPromise(async ({ input: { streamId } }) => {
        const { request } = live.get(streamId)!;
        await refund(sql, {
          workspaceId: request.workspaceId,
          reversesOperationKey: chargeKey(streamId),
          operationKey: `${chargeKey(streamId)}:refund`,
          at: new Date(clock.now()),
        });
      }),
    },
  });

  return {
    async speak(request, listening) {
      if (closed) throw new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.', { retryAfterS: 5 });
      const streamId = `tts_${randomUUID()}`;
      const stream: LiveStream = { request, clauses: new Handover(), charge: null, isHeard: false, error: null };
      live.set(streamId, stream);
      const actor = createActor(machine, { input: { streamId }, clock });
      const ended = waitFor(actor, ({ status }) => status !== 'active', { timeout: Number.POSITIVE_INFINITY }).then(
        ({ output }) => {
          if (output === 'failed' && listening.aborted) stream.clauses.fail(listening.reason);
          else if (output === 'failed') {
            logger.warn({ streamId, err: stream.error }, 'a text could not be spoken and was refunded');
            stream.clauses.fail(unavailable(stream.error));
          }
          if (output === 'refused') stream.clauses.fail(stream.error);
          if (output === 'abandoned') stream.clauses.fail(listening.reason);
        },
        // A defect, not an outcome.
        (error: unknown) => stream.clauses.fail(error),
      );
      const gone = ended.finally(() => {
        live.delete(streamId);
        over.delete(gone);
      });
      over.add(gone);
      actor.start();
      const leave = () => {
        const isOurDoing = listening.reason instanceof TandemError;
        actor.send({ type: 'listener.left', owes: stream.isHeard && !isOurDoing });
      };
      listening.addEventListener('abort', leave, { once: true });
      void gone.then(() => listening.removeEventListener('abort', leave));
      if (listening.aborted) leave();
      return await begun(streamId, stream);
    },

    async close() {
      closed = true;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = clock.setTimeout(() => resolve(), CLOSE_WITHIN_MS);
      await Promise.race([Promise.allSettled(over), late]);
      clock.clearTimeout(timer);
      if (live.size > 0) logger.error({ streamIds: [...live.keys()] }, 'texts that failed could not be refunded');
    },
  };
}

/** With the first clause in hand: it is there, or the reason why not is thrown. */
async function begun(streamId: string, stream: LiveStream): Promise<SpokenText> {
  const first = await stream.clauses.take();
  if (stream.charge === null) throw new Error('a text was spoken that nobody was charged for');
  async function* clauses(): AsyncGenerator<SpokenClause, void> {
    stream.isHeard = true;
    for (let clause = first; clause !== null; clause = await stream.clauses.take()) yield clause;
  }
  return { streamId, charge: stream.charge, clauses: clauses() };
}

async function chargeFor(
  { workspaceId, userId, apiKeyId, text }: SpeakTextRequest,
  { sql, streamId, at }: { sql: Sql; streamId: string; at: Date },
): Promise<Charge> {
  const prices = await priceBookOf(sql, workspaceId);
  // Characters as people count them are code points, not the units JavaScript counts.
  const cost = costOf(prices, { service: 'tts', count: [...text].length });
  return await charge(sql, {
    ...cost,
    workspaceId,
    userId,
    apiKeyId,
    operation: 'synthesize',
    resourceId: streamId,
    operationKey: chargeKey(streamId),
    at,
  });
}

function chargeKey(streamId: string): string {
  return `tts:${streamId}`;
}

async function noting<T>(stream: LiveStream, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    stream.error = error;
    throw error;
  }
}

function unavailable(cause: unknown): TandemError {
  const message = 'The speech engine failed. Nothing is charged; try again.';
  return new TandemError('TTS_UNAVAILABLE', message, { cause, retryAfterS: 5 });
}
