import { fromPromise } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import type { Bill, BillInput } from '../../machines/stt-session-events.ts';
import type { Sql } from '../../storage/database.ts';
import { charge } from '../../storage/ledger.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import type { Clock } from '../clock.ts';
import type { LiveSessions } from './live-sessions.ts';

/** The session machine's `bill` port: charges one final by its duration. */
export function billingPort({ sql, sessions, clock }: { sql: Sql; sessions: LiveSessions; clock: Clock }) {
  return fromPromise<Bill, BillInput>(async ({ input: { sessionId, utteranceId, durationMs, diarized } }) => {
    const session = sessions.get(sessionId);
    const { workspaceId, userId, apiKeyId } = session;
    // A price that changes must not make another operation of a charge that is repeated.
    session.prices ??= await priceBookOf(sql, workspaceId);
    try {
      const { chargedNano } = await charge(sql, {
        ...costOf(session.prices, { service: 'stt', count: durationMs, diarized }),
        workspaceId,
        userId,
        apiKeyId,
        operation: 'live_transcription',
        resourceId: sessionId,
        operationKey: `stt:${sessionId}:${utteranceId}`,
        at: new Date(clock.now()),
      });
      return { outcome: 'billed', amountNano: chargedNano };
    } catch (error) {
      if (!(error instanceof TandemError) || error.code !== 'INSUFFICIENT_CREDITS') throw error;
      return { outcome: 'insufficient', message: error.message, details: error.details };
    }
  });
}
