import { fromPromise } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import type { Bill, BillInput } from '../../machines/stt-session-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { charge } from '../../storage/ledger.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import type { LiveSessions } from './live-sessions.ts';

/** The session machine's `bill` port: charges one final by its duration. */
export function billingPort({ sql, sessions, clock }: { sql: Sql; sessions: LiveSessions; clock: Clock }) {
  return fromPromise<Bill, BillInput>(async ({ input, signal }) => {
    const { sessionId, utteranceId, durationMs, diarized } = input;
    const session = sessions.get(sessionId);
    const { workspaceId, userId, apiKeyId } = session;
    // A price change must not alter the operation of a retried charge.
    session.prices ??= await priceBookOf(sql, workspaceId);
    try {
      const cost = costOf(session.prices, { service: 'stt', count: durationMs, diarized });
      const { chargedNano } = await inTransaction(sql, async (tx) => {
        const charged = await charge(tx, {
          ...cost,
          workspaceId,
          userId,
          apiKeyId,
          operation: 'live_transcription',
          resourceId: sessionId,
          operationKey: `stt:${sessionId}:${utteranceId}`,
          at: new Date(clock.now()),
        });
        // The session gave up this attempt. Unless another one follows, the final is never sent.
        signal.throwIfAborted();
        return charged;
      });
      return { outcome: 'billed', amountNano: chargedNano };
    } catch (error) {
      if (!(error instanceof TandemError) || error.code !== 'INSUFFICIENT_CREDITS') throw error;
      return { outcome: 'insufficient', message: error.message, details: error.details };
    }
  });
}
