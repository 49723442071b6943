import type { CallQuality, LegName } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { charge, settleHold, voidHold, walletOf } from '../ledger.ts';
import { costAt } from '../price-book.ts';
import { endedLegs } from './call-legs.ts';
import { lockLiveCall } from './call-moves.ts';
import { emitCallNews, newsSubscribers } from './call-news.ts';
import {
  appendEvents,
  type CallEventRow,
  type CallMove,
  type CallRow,
  isFinalState,
  type RecordingStatus,
  type TerminalEvent,
} from './call-row.ts';
import { type DeliveryInput, type DeliveryRow, insertDelivery } from './deliveries.ts';
import { jsonb } from './json-columns.ts';

export interface SettleCallInput {
  callId: string;
  /** Boot that settles the call. No effect if another one owns it. */
  ownerBoot: string;
  /** Last move, with state `completed`, `failed` or `rejected`. */
  move: CallMove;
  terminalEvent: TerminalEvent;
  hangupCause: string | null;
  leg: LegName | null;
  error: string | null;
  errorDetail: string | null;
  answerTime: Date | null;
  endTime: Date;
  /** Bridged seconds to charge. */
  talkSeconds: number;
  /** Total seconds of added legs, charged separately. */
  legSeconds: number;
  totalSeconds: number;
  quality: CallQuality | null;
  recordingId: string | null;
  recordingStatus: RecordingStatus | null;
  /** Set while the SIP server is away, because another boot may have to end the legs. Default false. */
  keepsLegHandles?: boolean;
  /** Builds the callback from the final row. Null, or returning null: none. Must not wait for anything. */
  delivery: ((call: CallRow, event: CallEventRow) => DeliveryInput | null) | null;
}

export interface SettleCallResult {
  call: CallRow;
  event: CallEventRow;
  delivery: DeliveryRow | null;
  /** Ids to enqueue after the commit. */
  webhookDeliveries: string[];
}

/**
 * Ends a call in one transaction: last event, final row, charge and callback. Null if the call is already final,
 * missing or another boot's; then nothing changes, so retrying after a failure is safe.
 */
export async function settleCall(sql: SqlOrTx, input: SettleCallInput): Promise<SettleCallResult | null> {
  if (!isFinalState(input.move.state)) throw new RangeError(`${input.move.state} is not a final state`);
  return await inTransaction(sql, async (tx) => {
    const live = await lockLiveCall(tx, input.callId, input);
    if (!live) return null;
    const moves = [input.move];
    const [[event], bill] = await Promise.all([
      appendEvents(tx, { callId: live.callId, lastSequence: live.seq, moves }),
      billOf(tx, live, input),
    ]);
    const changes = {
      state: input.move.state,
      seq: live.seq + 1,
      terminalEvent: input.terminalEvent,
      hangupCause: input.hangupCause,
      leg: input.leg,
      error: input.error,
      errorDetail: input.errorDetail,
      answerTime: input.answerTime,
      endTime: input.endTime,
      talkSeconds: input.talkSeconds,
      legSeconds: input.legSeconds,
      legs: jsonb(tx, endedLegs(live.legs, { at: input.endTime, hangupCause: input.hangupCause })),
      totalSeconds: input.totalSeconds,
      quality: input.quality === null ? null : jsonb(tx, input.quality),
      recordingId: input.recordingId,
      recordingStatus: input.recordingStatus,
      ...bill,
      ...(!input.keepsLegHandles && { legHandles: null }),
    };
    const [[call], subscribers] = await Promise.all([
      tx<CallRow[]>`
        update calls set ${tx(changes)} where call_id = ${live.callId} returning *`.execute(),
      newsSubscribers(tx, live, moves),
    ]);
    const webhookDeliveries = await emitCallNews(tx, call!, { events: [event!], subscribers });
    const delivery = input.delivery?.(call!, event!) ?? null;
    if (delivery === null) return { call: call!, event: event!, delivery: null, webhookDeliveries };
    const subject = {
      workspaceId: live.workspaceId,
      callId: live.callId,
      eventSequence: event!.sequence,
      event: input.terminalEvent,
      eventId: event!.eventId,
    };
    const row = await insertDelivery(tx, subject, { ...delivery, createdAt: input.move.at });
    return { call: call!, event: event!, delivery: row, webhookDeliveries };
  });
}

/** Returns the price of seconds at a price per minute, rounded up to whole nano-dollars. */
export function priceOf(seconds: number, pricePerMinuteNano: bigint): bigint {
  return costAt({ service: 'call', count: seconds, unitPriceNano: pricePerMinuteNano }).amountNano;
}

type PricedSpeech = Pick<CallRow, 'announceCharacters' | 'whisperCharacters' | 'characterPriceNano'>;

export function speechPriceOf({ announceCharacters, whisperCharacters, characterPriceNano }: PricedSpeech): bigint {
  const count = (announceCharacters ?? 0) + (whisperCharacters ?? 0);
  return costAt({ service: 'tts', count, unitPriceNano: characterPriceNano }).amountNano;
}

type Bill = Pick<CallRow, 'costNano' | 'legsCostNano' | 'speechCostNano' | 'billingStatus'>;

/** Charges the talk first, which releases the rest of the hold for added legs and speech. */
async function billOf(tx: Tx, call: CallRow, { talkSeconds, legSeconds, move }: SettleCallInput): Promise<Bill> {
  const { speechCostNano } = call;
  if (call.holdId === null) return { costNano: null, legsCostNano: null, speechCostNano, billingStatus: null };
  const talk = await chargeTalk(tx, call, { holdId: call.holdId, talkSeconds, at: move.at });
  const legs = await chargeLegs(tx, call, { legSeconds, at: move.at });
  const speech = await chargeSpeech(tx, call, move.at);
  const owed = [talk, legs, speech].filter((part) => part !== null);
  const billingStatus = owed.every(({ isWhole }) => isWhole) ? 'billed' : 'failed';
  return {
    costNano: talk?.chargedNano ?? null,
    legsCostNano: legs?.chargedNano ?? null,
    speechCostNano: speech === null ? speechCostNano : speech.chargedNano + (speechCostNano ?? 0n),
    billingStatus: owed.length === 0 ? null : billingStatus,
  };
}

/** Null: nothing was owed. */
type Charged = { chargedNano: bigint; isWhole: boolean } | null;

async function chargeTalk(
  tx: Tx,
  call: CallRow,
  { holdId, talkSeconds, at }: { holdId: string; talkSeconds: number; at: Date },
): Promise<Charged> {
  const { amountNano: owedNano, ...cost } = costAt({
    service: 'call',
    count: talkSeconds,
    unitPriceNano: call.pricePerMinuteNano,
  });
  const operation = { holdId, operationKey: `call:${call.callId}:settle`, at };
  if (owedNano === 0n) {
    await voidHold(tx, operation);
    return null;
  }
  const { chargedNano } = await settleHold(tx, {
    ...operation,
    amountNano: owedNano,
    usage: {
      ...cost,
      operation: 'click2call',
      resourceId: call.callId,
      apiKeyId: call.apiKeyId,
      userId: call.createdByUserId,
    },
    description: `Call ${call.callId}, ${talkSeconds} s`,
  });
  return { chargedNano, isWhole: chargedNano === owedNano };
}

async function chargeLegs(
  tx: Tx,
  call: CallRow,
  { legSeconds, at }: { legSeconds: number; at: Date },
): Promise<Charged> {
  return await chargeBeside(tx, call, {
    cost: costAt({ service: 'call', count: legSeconds, unitPriceNano: call.pricePerMinuteNano }),
    operation: 'call_legs',
    what: `further legs, ${legSeconds} s`,
    at,
  });
}

async function chargeSpeech(tx: Tx, call: CallRow, at: Date): Promise<Charged> {
  const speeches = [
    { operation: 'announce', count: call.announced ? call.announceCharacters : null },
    { operation: 'whisper', count: call.whispered ? call.whisperCharacters : null },
  ];
  let [chargedNano, isWhole, isOwed] = [0n, true, false];
  for (const { operation, count } of speeches) {
    const cost = costAt({ service: 'tts', count: count ?? 0, unitPriceNano: call.characterPriceNano });
    const what = `${operation} of ${count} characters`;
    const charged = await chargeBeside(tx, call, { cost, operation, what, at });
    if (charged === null) continue;
    isOwed = true;
    chargedNano += charged.chargedNano;
    isWhole &&= charged.isWhole;
  }
  return isOwed ? { chargedNano, isWhole } : null;
}

/** Charges up to the wallet's balance. Its row is locked, because this transaction closed the hold. */
async function chargeBeside(
  tx: Tx,
  call: CallRow,
  { cost, operation, what, at }: { cost: ReturnType<typeof costAt>; operation: string; what: string; at: Date },
): Promise<Charged> {
  if (cost.amountNano === 0n) return null;
  const { availableNano } = await walletOf(tx, call.workspaceId);
  const spendableNano = availableNano > 0n ? availableNano : 0n;
  const chargedNano = spendableNano < cost.amountNano ? spendableNano : cost.amountNano;
  await charge(tx, {
    ...cost,
    amountNano: chargedNano,
    owedNano: cost.amountNano,
    workspaceId: call.workspaceId,
    operation,
    resourceId: call.callId,
    apiKeyId: call.apiKeyId,
    userId: call.createdByUserId,
    operationKey: `call:${call.callId}:${operation}`,
    description: `Call ${call.callId}, ${what}`,
    at,
  });
  return { chargedNano, isWhole: chargedNano === cost.amountNano };
}
