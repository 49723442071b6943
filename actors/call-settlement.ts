import { fromPromise } from 'xstate';
import type { SettleInput } from '../machines/call-events.ts';
import { type Clock, type Moment, momentOf } from '../runtime/clock.ts';
import { Gate } from '../runtime/gate.ts';
import type { SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import {
  type CallEventRow,
  type CallRow,
  getCallById,
  listCallEvents,
  type SettleCallInput,
  type SettleCallResult,
  settleCall,
} from '../storage/queries/calls.ts';
import { type DeliveryInput, deliveriesOfCall } from '../storage/queries/deliveries.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { presentCall } from './call-view.ts';
import { buildCallDelivery } from './callbacks/call-delivery.ts';

/**
 * The call machine's `settle` port: waits until all earlier moves are stored. Then it commits outcome, last event,
 * charge, recording state and callback in one transaction.
 */
export function settlementPort({ sql, sip, registry, clock, onSettled }: SettlementPortOptions) {
  const gate = new Gate(SETTLEMENTS);
  return fromPromise<void, SettleInput>(async ({ input }) => {
    const call = registry.get(input.callId);
    if (!call) throw new Error('only a live call is settled');
    call.clearedAt ??= momentOf(clock);
    await call.journal.drained();
    const settlement = settlementOf(call, { input, endedAt: call.clearedAt });
    const { workspaceId } = call.row;
    const committed = await gate.run(
      () => settleCall(sql, { ...settlement, keepsLegHandles: sip.state === 'disconnected' }),
      { lane: workspaceId },
    );
    const result = committed ?? (await earlierSettlement(sql, call.row));
    if (result) onSettled(result, input);
  });
}

/**
 * Settlements at a time: with the placements (`placement-queue.ts`), fewer than the pool's connections. Those of one
 * workspace wait for its wallet, so more of them would only take connections from other requests.
 */
const SETTLEMENTS = { inAll: 6, perLane: 3 };

interface SettlementPortOptions {
  sql: Sql;
  sip: Pick<SipGateway, 'state'>;
  registry: CallRegistry;
  clock: Clock;
  /** Called after the commit, by the attempt that sees it. */
  onSettled: (result: SettleCallResult, input: SettleInput) => void;
}

/**
 * Finds the result of an attempt that committed although its response was lost. Null: another boot took the call over.
 */
async function earlierSettlement(
  sql: Sql,
  { callId, ownerBoot }: Pick<CallRow, 'callId' | 'ownerBoot'>,
): Promise<SettleCallResult | null> {
  const call = await getCallById(sql, callId);
  const event = (await listCallEvents(sql, { callId })).at(-1);
  if (!call || !event || call.ownerBoot !== ownerBoot) return null;
  const delivery = (await deliveriesOfCall(sql, callId)).find((row) => row.eventSequence === event.sequence) ?? null;
  // The sweeper sends webhook deliveries.
  return { call, event, delivery, webhookDeliveries: [] };
}

function settlementOf(call: LiveCall, { input, endedAt }: { input: SettleInput; endedAt: Moment }): SettleCallInput {
  const { outcome, report } = input;
  const bridgedAt = call.journal.bridgedAt();
  const talkedMs = bridgedAt === null ? 0 : endedAt.monotonicMs - bridgedAt.monotonicMs;
  const recordingId = call.journal.recordingId() ?? report?.recording?.recordingId ?? null;
  return {
    callId: input.callId,
    ownerBoot: call.row.ownerBoot,
    move: {
      event: outcome.state === 'rejected' ? 'call.rejected' : outcome.terminalEvent,
      state: outcome.state,
      leg: outcome.leg,
      sipStatus: outcome.sipStatus,
      hangupCause: outcome.hangupCause,
      at: endedAt.at,
      detail: outcome.errorDetail,
    },
    terminalEvent: outcome.terminalEvent,
    hangupCause: outcome.hangupCause,
    leg: outcome.leg,
    error: outcome.error,
    errorDetail: outcome.errorDetail,
    answerTime: bridgedAt?.at ?? null,
    endTime: endedAt.at,
    talkSeconds: billedSeconds({ talkedMs, maxDurationS: call.row.maxDurationS }),
    legSeconds: call.journal.guestsTalk(endedAt).billedSeconds,
    totalSeconds: Math.ceil((endedAt.monotonicMs - call.admittedAt.monotonicMs) / 1000),
    quality: report?.quality ?? null,
    recordingId,
    delivery: outcome.state === 'rejected' ? null : terminalDelivery,
  };
}

/** Bills every started second, up to the call's maximum duration. */
export function billedSeconds({ talkedMs, maxDurationS }: { talkedMs: number; maxDurationS: number }): number {
  return Math.min(maxDurationS, Math.ceil(talkedMs / 1000));
}

/** The callback that commits with the outcome. */
export function terminalDelivery(row: CallRow, event: CallEventRow): DeliveryInput | null {
  return buildCallDelivery({ call: presentCall(row), event, secretEncrypted: row.callbackSecretEncrypted });
}
