import type { CallQuality, LegName } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx } from '../database.ts';
import {
  affordable,
  type LockedHold,
  lockHold,
  type NewCharge,
  type NewClosing,
  newCharge,
  newClosing,
  storeCharges,
  storeClosing,
} from '../ledger.ts';
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
  type TerminalEvent,
} from './call-row.ts';
import { type DeliveryInput, type DeliveryRow, insertDelivery } from './deliveries.ts';
import { jsonb } from './json-columns.ts';
import { finishRecording } from './recordings.ts';

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
  /** Its files are complete. It may have no row yet. */
  recordingId: string | null;
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
    // In this order: the wallet is locked last, because other settlements of the workspace wait for it.
    const [[event], subscribers, locked] = await Promise.all([
      appendEvents(tx, { callId: live.callId, lastSequence: live.seq, moves }),
      newsSubscribers(tx, live, moves),
      live.holdId === null ? null : lockHold(tx, live.holdId),
    ]);
    const { bill, closing, charges } = locked === null ? withoutBill(live) : billOf(live, input, locked);
    const legs = endedLegs(live.legs, { at: input.endTime, hangupCause: input.hangupCause });
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
      totalSeconds: input.totalSeconds,
      recordingId: input.recordingId,
      recordingStatus: input.recordingId === null ? null : ('processing' as const),
      ...bill,
    };
    const row = {
      ...changes,
      legs: jsonb(tx, legs),
      quality: jsonb(tx, input.quality),
      ...(!input.keepsLegHandles && { legHandles: null }),
    };
    const ended: CallRow = { ...live, ...changes, legs, quality: input.quality };
    const callback = input.delivery?.(ended, event!) ?? null;
    const subject = {
      workspaceId: live.workspaceId,
      callId: live.callId,
      eventSequence: event!.sequence,
      event: input.terminalEvent,
      eventId: event!.eventId,
    };
    const [[call], delivery, webhookDeliveries] = await Promise.all([
      tx<CallRow[]>`update calls set ${tx(row)} where call_id = ${live.callId} returning *`.execute(),
      callback && insertDelivery(tx, subject, { ...callback, createdAt: input.move.at }),
      emitCallNews(tx, ended, { events: [event!], subscribers }),
      input.recordingId === null ? null : finishRecording(tx, { ...live, id: input.recordingId, now: input.move.at }),
      closing && storeClosing(tx, closing),
      storeCharges(tx, charges),
    ]);
    return { call: call!, event: event!, delivery, webhookDeliveries };
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

interface NewBill {
  bill: Bill;
  closing: NewClosing | null;
  charges: NewCharge[];
}

function withoutBill({ speechCostNano }: CallRow): NewBill {
  const bill = { costNano: null, legsCostNano: null, speechCostNano, billingStatus: null };
  return { bill, closing: null, charges: [] };
}

/** Charges the talk first, which releases the rest of the hold for added legs and speech. */
function billOf(call: CallRow, input: SettleCallInput, locked: LockedHold): NewBill {
  const { closing, owedNano } = closingOf(call, input, locked);
  const talk = owedNano === 0n ? null : { chargedNano: closing.chargedNano, isWhole: closing.chargedNano === owedNano };
  const charges: NewCharge[] = [];
  /** Charges up to the wallet's balance. Null: nothing is owed. */
  const chargeBeside = ({ cost, operation, what }: ChargeBeside): Charged | null => {
    if (cost.amountNano === 0n) return null;
    const { accounts } = (charges.at(-1) ?? closing).entry;
    const chargedNano = affordable(accounts, cost.amountNano);
    const charge = newCharge(accounts, {
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
      at: input.move.at,
    });
    charges.push(charge);
    return { chargedNano, isWhole: chargedNano === cost.amountNano };
  };
  const legs = chargeBeside(addedLegsOf(call, input));
  const speech = speechesOf(call).flatMap((each) => chargeBeside(each) ?? []);
  const owed = [talk, legs, ...speech].filter((part) => part !== null);
  const billingStatus = owed.every(({ isWhole }) => isWhole) ? 'billed' : 'failed';
  const speechNano = speech.reduce((sum, { chargedNano }) => sum + chargedNano, 0n);
  const bill: Bill = {
    costNano: talk?.chargedNano ?? null,
    legsCostNano: legs?.chargedNano ?? null,
    speechCostNano: speech.length === 0 ? call.speechCostNano : speechNano + (call.speechCostNano ?? 0n),
    billingStatus: owed.length === 0 ? null : billingStatus,
  };
  return { bill, closing, charges };
}

interface Charged {
  chargedNano: bigint;
  /** Whether the wallet covered it. */
  isWhole: boolean;
}

interface ChargeBeside {
  cost: ReturnType<typeof costAt>;
  operation: string;
  what: string;
}

/** Charges the talk from the hold. If none is owed, releases the hold. */
function closingOf(call: CallRow, { talkSeconds, move }: SettleCallInput, locked: LockedHold) {
  const { amountNano: owedNano, ...cost } = costAt({
    service: 'call',
    count: talkSeconds,
    unitPriceNano: call.pricePerMinuteNano,
  });
  const operation = {
    holdId: locked.held.id,
    operationKey: `call:${call.callId}:settle`,
    at: move.at,
    amountNano: owedNano,
  };
  if (owedNano === 0n) return { owedNano, closing: newClosing(locked, { ...operation, kind: 'void' }) };
  const closing = newClosing(locked, {
    ...operation,
    kind: 'settle',
    usage: {
      ...cost,
      operation: 'click2call',
      resourceId: call.callId,
      apiKeyId: call.apiKeyId,
      userId: call.createdByUserId,
    },
    description: `Call ${call.callId}, ${talkSeconds} s`,
  });
  return { owedNano, closing };
}

function addedLegsOf(call: CallRow, { legSeconds }: SettleCallInput): ChargeBeside {
  return {
    cost: costAt({ service: 'call', count: legSeconds, unitPriceNano: call.pricePerMinuteNano }),
    operation: 'call_legs',
    what: `further legs, ${legSeconds} s`,
  };
}

function speechesOf(call: CallRow): ChargeBeside[] {
  const speeches = [
    { operation: 'announce', count: (call.announced ? call.announceCharacters : null) ?? 0 },
    { operation: 'whisper', count: (call.whispered ? call.whisperCharacters : null) ?? 0 },
  ];
  return speeches.map(({ operation, count }) => ({
    cost: costAt({ service: 'tts', count, unitPriceNano: call.characterPriceNano }),
    operation,
    what: `${operation} of ${count} characters`,
  }));
}
