import type { LegHandle, SipGateway } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { heldBy } from '../storage/ledger.ts';
import { guestSecondsOf } from '../storage/queries/call-legs.ts';
import { priceOf } from '../storage/queries/call-settlement.ts';
import {
  type CallEventRow,
  type CallEventWithDelivery,
  type CallRow,
  deleteForgottenLegs,
  forgottenLegsOf,
  legHandlesOf,
  markOrphansUnknown,
  type SettleCallResult,
  settleCall,
} from '../storage/queries/calls.ts';
import type { LostOwner, NodeIdentity } from '../storage/queries/nodes.ts';
import { unfinishedRecordings } from '../storage/queries/recordings.ts';
import { failAbandonedTranscripts } from '../storage/queries/transcripts.ts';
import { fundedMs } from './call-funding.ts';
import { billedSeconds, terminalDelivery } from './call-settlement.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { Logger } from './logger.ts';
import type { RecordingDesk } from './recording.actor.ts';

export interface ReconcileOptions {
  sip: Pick<SipGateway, 'endLegs' | 'state'>;
  sql: Sql;
  lost: LostOwner;
  owner: NodeIdentity;
  /** Last known sign of life of the lost owner; null if unknown. */
  seenAt: Date | null;
  /** Folder of the lost owner's recordings. Null: this node's folder. `unreachable`: not readable here. */
  recordingsDir: string | null | 'unreachable';
  now: Date;
  deliverer: Pick<Deliverer, 'enqueue'>;
  recordings: Pick<RecordingDesk, 'store'>;
  publish: (callId: string, event: CallEventRow | CallEventWithDelivery) => void;
  logger: Logger;
}

/**
 * Brings every call of a lost owner to a final state: of this node's earlier boots before it takes new calls, of
 * another node once its lease has expired. Media died with the process. So a bridged call counts as talked until the
 * process's last sign of life, and is billed for that. Any other call is a free temporary failure. Recordings keep the
 * bytes already written; on an unreachable disk they wait for their node.
 */
export async function reconcile(options: ReconcileOptions): Promise<{ calls: number; recordings: number }> {
  const { sql, lost, owner, now, recordingsDir, recordings, deliverer, publish, logger } = options;
  await endForgottenLegs(options);
  const { orphans, events } = await markOrphansUnknown(sql, options);
  for (const event of events) publish(event.callId, event);
  for (const orphan of orphans) {
    // Peers may still be talking through a SIP server that outlived our process. If this boot dies too, the next one
    // repeats this.
    options.sip.endLegs((await legHandlesOf(sql, orphan.callId)) as LegHandle[]);
    const settled = await resolve(options, orphan);
    if (settled === null) continue;
    publish(settled.event.callId, { ...settled.event, delivery: settled.delivery });
    // Do not wait for an unavailable queue; the sweeper finds deliveries that were not queued.
    if (settled.delivery) void deliverer.enqueue(settled.delivery.id);
    for (const id of settled.webhookDeliveries) void deliverer.enqueue(id);
  }
  // Recognised speech is kept; the rest was lost with the process.
  await failAbandonedTranscripts(sql, { lost, callIds: orphans.map(({ callId }) => callId), now });
  const unfinished = recordingsDir === 'unreachable' ? [] : await unfinishedRecordings(sql, { node: lost.node });
  for (const { id, callId, workspaceId } of unfinished) {
    recordings.store({ recordingId: id, callId, workspaceId, folder: recordingsDir });
  }
  if (orphans.length > 0 || unfinished.length > 0) {
    logger.warn(
      { calls: orphans.length, recordings: unfinished.length, lostNode: lost.node === owner.node ? null : lost.node },
      'took over calls and recordings of a lost process',
    );
  }
  return { calls: orphans.length, recordings: unfinished.length };
}

/** Ends the legs of calls that the lost owner settled while its SIP server was away. */
async function endForgottenLegs({ sql, sip, lost, now }: ReconcileOptions): Promise<void> {
  const handles = await forgottenLegsOf(sql, lost, now);
  if (handles.length > 0) sip.endLegs(handles as LegHandle[]);
  // Otherwise they stay for the next start of the node.
  if (sip.state === 'connected') await deleteForgottenLegs(sql, lost);
}

/** Null: the call was settled or taken over meanwhile. */
async function resolve(options: ReconcileOptions, call: CallRow): Promise<SettleCallResult | null> {
  const { sql, sip, now, owner } = options;
  const wasBridged = call.answerTime !== null;
  const endTime = await lastMoment(options, call);
  const talkedMs = call.answerTime === null ? 0 : endTime.getTime() - call.answerTime.getTime();
  const detail = wasBridged
    ? 'the server stopped during the talk; billed until it was last known to run'
    : 'the server stopped before the legs were bridged';
  return await settleCall(sql, {
    callId: call.callId,
    ownerBoot: owner.boot,
    move: {
      event: wasBridged ? 'call.completed' : 'call.temporaryfailed',
      state: wasBridged ? 'completed' : 'failed',
      leg: null,
      sipStatus: null,
      hangupCause: 'NORMAL_TEMPORARY_FAILURE',
      at: now,
      detail,
    },
    terminalEvent: wasBridged ? 'call.completed' : 'call.temporaryfailed',
    hangupCause: 'NORMAL_TEMPORARY_FAILURE',
    leg: null,
    error: 'server_lost',
    errorDetail: detail,
    answerTime: call.answerTime,
    endTime,
    talkSeconds: billedSeconds({ talkedMs, maxDurationS: call.maxDurationS }),
    legSeconds: guestSecondsOf(call.legs, { from: call.answerTime, to: endTime }),
    totalSeconds: Math.max(0, Math.ceil((endTime.getTime() - call.createdAt.getTime()) / 1000)),
    quality: null,
    recordingId: call.recordingId,
    keepsLegHandles: sip.state === 'disconnected',
    delivery: terminalDelivery,
  });
}

/**
 * Estimates when the call ended, from stored times alone. The wall clock may have stepped, so the end is never before
 * the answer, and after now only if the answer is. The talk never exceeds the call's limit, nor what its hold paid for:
 * the hold grew by the monotonic clock, a minute at a time.
 */
async function lastMoment({ sql, now }: ReconcileOptions, call: CallRow): Promise<Date> {
  const { answerTime, holdId, ownerSeenAt } = call;
  const floor = answerTime ?? call.createdAt;
  const last = ownerSeenAt !== null && ownerSeenAt > now ? now : ownerSeenAt;
  if (last === null || last < floor) return floor;
  if (answerTime === null) return last;
  const heldNano = holdId === null ? 0n : ((await heldBy(sql, holdId)) ?? 0n);
  // The hold also paid for added legs.
  const guestsNano = priceOf(guestSecondsOf(call.legs, { from: answerTime, to: last }), call.pricePerMinuteNano);
  const forTalkNano = heldNano > guestsNano ? heldNano - guestsNano : 0n;
  const longestMs = Math.min(call.maxDurationS * 1000, fundedMs(forTalkNano, call));
  return new Date(Math.min(last.getTime(), answerTime.getTime() + longestMs));
}
