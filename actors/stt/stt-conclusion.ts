import { fromPromise } from 'xstate';
import type { ConcludeInput, Conclusion } from '../../machines/stt-session-events.ts';
import { decibels, seconds } from '../../machines/utterances.ts';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';
import type { LiveSessions } from './live-sessions.ts';

export interface ConclusionPortOptions {
  sql: Sql;
  sessions: LiveSessions;
  deliverer: Pick<Deliverer, 'enqueue'>;
  clock: Clock;
  logger: Logger;
}

/** The client waits for its summary meanwhile. */
const STORE_WITHIN_MS = 4_000;

/** The session machine's `conclude` port: sends the transcript or the failure to webhooks. */
export function conclusionPort({ sql, sessions, deliverer, clock, logger }: ConclusionPortOptions) {
  return fromPromise<Conclusion, ConcludeInput>(async ({ input }) => {
    const { sessionId } = input;
    const { workspaceId, intake } = sessions.get(sessionId);
    const { receivedMs } = intake;
    const outcome = outcomeOf(input, receivedMs);
    if (outcome === null) return { receivedMs };
    const stored = notifyWebhooks(workspaceId, outcome).catch((error: unknown) => {
      logger.error({ sessionId, err: error }, 'webhook events of an STT session could not be stored');
    });
    if ((await within(stored, { ms: STORE_WITHIN_MS, clock })) === LATE) {
      logger.warn({ sessionId }, 'storing webhook events of an STT session is slow');
    }
    return { receivedMs };
  });

  async function notifyWebhooks(
    workspaceId: string,
    outcome: NonNullable<ReturnType<typeof outcomeOf>>,
  ): Promise<void> {
    const now = new Date(clock.now());
    const deliveries = await inTransaction(sql, (tx) => emitWebhookEvent(tx, { workspaceId, now, ...outcome }));
    for (const id of deliveries) void deliverer.enqueue(id);
  }
}

/** Null: the session succeeded without speech. */
function outcomeOf({ sessionId: id, ending, transcript, language, snrDb }: ConcludeInput, receivedMs: number) {
  const error = failureOf(ending);
  if (error !== null) return { event: 'stt.failed' as const, data: { id, error } };
  if (transcript === '') return null;
  const data = {
    id,
    text: transcript,
    // Undetermined (ISO 639-2).
    language: language ?? 'und',
    duration: seconds(receivedMs),
    snr_db: decibels(snrDb),
    source: 'websocket' as const,
  };
  return { event: 'stt.completed' as const, data };
}

function failureOf(ending: ConcludeInput['ending']): string | null {
  if (ending.kind === 'failed') return ending.code;
  if (ending.kind === 'overloaded') return 'overloaded';
  return ending.kind === 'exhausted' ? 'INSUFFICIENT_CREDITS' : null;
}
