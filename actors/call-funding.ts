import { fromPromise } from 'xstate';
import type { Funding } from '../machines/call-events.ts';
import { FUNDING_LEAD_MS } from '../machines/call-setup.ts';
import { type Clock, momentOf } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import { growHold } from '../storage/ledger.ts';
import { priceOf, speechPriceOf } from '../storage/queries/call-settlement.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { CallRegistry } from './call-registry.ts';

/** The call machine's `extendFunding` port: extends the hold by another minute of talk, up to the wallet's balance. */
export function fundingPort({ sql, registry, clock }: { sql: Sql; registry: CallRegistry; clock: Clock }) {
  return fromPromise<Funding, { callId: string }>(async ({ input: { callId } }) => {
    const call = registry.get(callId);
    const bridgedAt = call?.journal.bridgedAt();
    if (!call || !bridgedAt) throw new Error('only a bridged call is funded');
    const { row } = call;
    const now = momentOf(clock);
    const talkedMs = Math.round(now.monotonicMs - bridgedAt.monotonicMs);
    const guests = call.journal.guestsTalk(now);
    if (row.holdId === null) return { fundedForMs: fundedMs(0n, row) };
    const wantedSeconds = Math.min(row.maxDurationS, Math.ceil((talkedMs + FUNDING_LEAD_MS) / 1000) + GROWTH_S);
    const aheadS = FUNDING_LEAD_MS / 1000 + GROWTH_S;
    const wantedOfGuestsS = guests.billedSeconds + guests.talking * Math.min(row.maxDurationS, aheadS);
    const wantedTotalNano = priceOf(wantedSeconds + wantedOfGuestsS, row.pricePerMinuteNano) + speechPriceOf(row);
    const { amountNano } = await growHold(sql, {
      holdId: row.holdId,
      wantedTotalNano,
      // Two legs may join in the same millisecond.
      operationKey: `call:${callId}:grow:${talkedMs}:${wantedTotalNano}`,
    });
    // All legs consume the remainder together.
    const leftMs = fundedMs(amountNano, row) - talkedMs - guests.billedSeconds * 1000;
    return { fundedForMs: Math.max(0, Math.floor(leftMs / (1 + guests.talking))) };
  });
}

/** Seconds of talk added to the hold each time. */
const GROWTH_S = 60;

/**
 * Returns the milliseconds of talk that an amount covers, after announcement and whisper. A free trunk covers any call.
 */
export function fundedMs(amountNano: bigint, row: Funded): number {
  if (row.pricePerMinuteNano === 0n) return Number.MAX_SAFE_INTEGER;
  const forTalkNano = amountNano - speechPriceOf(row);
  return forTalkNano <= 0n ? 0 : Number((forTalkNano * 60n) / row.pricePerMinuteNano) * 1000;
}

type Funded = Pick<CallRow, 'pricePerMinuteNano' | 'announceCharacters' | 'whisperCharacters' | 'characterPriceNano'>;
