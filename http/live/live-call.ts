import { type PublicCall, type PublicCallEvent, presentCall, presentCallEvent } from '../../actors/call-view.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import type { CallChange, ChangeEvent } from '../../storage/queries/call-changes.ts';
import { priceOf } from '../../storage/queries/call-settlement.ts';
import type { CallRow } from '../../storage/queries/calls.ts';

export interface LiveCall extends PublicCall {
  sequence: number;
  price_per_minute_usd: number;
  /** Cost of the talk so far; for a final call, the total charge. */
  cost_so_far_usd: number;
}

/** Live call without its constant fields, for `call` events. */
export type CallSummary = Omit<LiveCall, 'metadata' | 'callback_url' | 'callback_secret_last4'>;

/** One call with its events since the last `call` event about it. */
export interface CallNews {
  call: CallSummary;
  /** In order. Transcripts have separate events. */
  events: PublicCallEvent[];
}

/** Transcript segment. Times are seconds since the bridge. */
export interface SpokenSegment {
  call_id: string;
  leg: string;
  role: string;
  is_final: boolean;
  text: string;
  language: string | null;
  /** Null only for a partial segment of an engine that reports no times. */
  start: number | null;
  end: number | null;
  /** 0 to 1. Null for a partial segment, and if the engine reports none. */
  confidence: number | null;
}

export function presentLiveCall(row: CallRow, now: Date): LiveCall {
  return {
    ...presentCall(row),
    sequence: row.seq,
    price_per_minute_usd: nanoToUsd(row.pricePerMinuteNano),
    cost_so_far_usd: nanoToUsd(costSoFar(row, now)),
  };
}

export function presentNews({ call, events }: CallChange, now: Date): CallNews {
  const { metadata: _, callback_url: __, callback_secret_last4: ___, ...summary } = presentLiveCall(call, now);
  return { call: summary, events: events.map((event) => presentCallEvent({ ...event, segment: null })) };
}

export function spokenSegments({ call, events }: CallChange): SpokenSegment[] {
  return events.flatMap((event) => {
    const { segment } = event;
    if (segment === null) return [];
    const leg = legOf(event);
    return [
      {
        call_id: call.callId,
        leg,
        role: call.legs.find(({ legId }) => legId === leg)?.role ?? leg,
        is_final: true,
        text: segment.text,
        language: segment.language,
        start: segment.startMs / 1000,
        end: segment.endMs / 1000,
        confidence: segment.confidence,
      },
    ];
  });
}

function legOf({ leg, data }: ChangeEvent): string {
  const added = data?.leg_id;
  return typeof added === 'string' ? added : (leg ?? 'customer');
}

function costSoFar({ state, answerTime, ...row }: CallRow, now: Date): bigint {
  if (state !== 'bridged' || answerTime === null) {
    return (row.costNano ?? 0n) + (row.legsCostNano ?? 0n) + (row.speechCostNano ?? 0n);
  }
  const talkedMs = Math.max(0, now.getTime() - answerTime.getTime());
  const seconds = Math.min(row.maxDurationS, Math.ceil(talkedMs / 1000));
  return priceOf(seconds, row.pricePerMinuteNano) + (row.speechCostNano ?? 0n);
}
