import type { LegHandle, SipGateway } from '../sip/sip-gateway.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import { heldBy } from '../storage/ledger.ts';
import { guestSecondsOf } from '../storage/queries/call-legs.ts';
import { priceOf } from '../storage/queries/call-settlement.ts';
import {
  type CallEventRow,
  type CallRow,
  legHandlesOf,
  markOrphansUnknown,
  type SettleCallResult,
  settleCall,
} from '../storage/queries/calls.ts';
import type { LostOwner, NodeIdentity } from '../storage/queries/nodes.ts';
import { unfinishedRecordings, updateRecording } from '../storage/queries/recordings.ts';
import { failAbandonedTranscripts } from '../storage/queries/transcripts.ts';
import { fundedMs } from './call-funding.ts';
import { billedSeconds, terminalDelivery } from './call-settlement.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { Logger } from './logger.ts';
import type { RecordingDesk } from './recording.actor.ts';

export interface ReconcileOptions {
  sip: Pick<SipGateway, 'endLegs'>;
  sql: Sql;
  /** Whose calls are settled. */
  lost: LostOwner;
  /** Whose they are from then on. */
  owner: NodeIdentity;
  /** When the lost owner is known to have lived last; null if that is not known. */
  seenAt: Date | null;
  /** The lost owner's recordings folder; null if it is the one of this node, `unreachable` if it cannot be read here. */
  recordingsDir: string | null | 'unreachable';
  now: Date;
  deliverer: Pick<Deliverer, 'enqueue'>;
  recordings: Pick<RecordingDesk, 'store'>;
  /** Called with each event after it is stored. */
  publish: (callId: string, event: CallEventRow) => void;
  logger: Logger;
}

/**
 * Brings every call of a lost owner to a final state: those of earlier boots of this node before it takes new calls, those of
 * another node when its lease has expired. Their media died with the process, so a call that was bridged was talked until
 * the process was last known to live, and is billed for that; one that was not is a temporary failure and costs nothing.
 * Recordings go on from the bytes that were written; on a disk that cannot be reached they wait for their node.
 */
export async function reconcile(options: ReconcileOptions): Promise<{ calls: number; recordings: number }> {
  const { sql, lost, owner, now, recordingsDir, recordings, deliverer, publish, logger } = options;
  const { orphans, events } = await markOrphansUnknown(sql, options);
  for (const event of events) publish(event.callId, event);
  for (const orphan of orphans) {
    // Their peers may still talk, through a SIP server that outlived us. If this boot dies too, the next one repeats it.
    options.sip.endLegs((await legHandlesOf(sql, orphan.callId)) as LegHandle[]);
    const settled = await resolve(options, orphan);
    if (settled === null) continue;
    publish(settled.event.callId, settled.event);
    // The next call does not wait for a queue that is away; the sweeper finds what was not queued.
    if (settled.delivery) void deliverer.enqueue(settled.delivery.id);
    for (const id of settled.webhookDeliveries) void deliverer.enqueue(id);
  }
  // What was understood is kept; the rest of what was said went with the process.
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

/** Returns null if the call was settled or taken over meanwhile. */
async function resolve(options: ReconcileOptions, call: CallRow): Promise<SettleCallResult | null> {
  const { sql, now, owner } = options;
  const wasBridged = call.answerTime !== null;
  const endTime = await lastMoment(options, call);
  const talkedMs = call.answerTime === null ? 0 : endTime.getTime() - call.answerTime.getTime();
  const detail = wasBridged
    ? 'the server stopped during the talk; billed until it was last known to run'
    : 'the server stopped before the legs were bridged';
  return await inTransaction(sql, async (tx) => {
    const result = await settleCall(tx, {
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
      recordingStatus: call.recordingId === null ? null : 'processing',
      delivery: terminalDelivery,
    });
    if (result && call.recordingId) {
      await updateRecording(tx, { id: call.recordingId, now, patch: { status: 'processing' } });
    }
    return result;
  });
}

/**
 * When the call ended, as well as stamps can tell: they are all that is left of a process that died, and the wall clock
 * may have stepped between two of them. So the end is never before the answer, never after now, and the talk is never
 * longer than the call was allowed, nor than its hold paid for: the hold grew by the monotonic clock, a minute at a time.
 */
async function lastMoment({ sql, now }: ReconcileOptions, call: CallRow): Promise<Date> {
  const { answerTime, holdId, ownerSeenAt } = call;
  const floor = answerTime ?? call.createdAt;
  if (ownerSeenAt === null || ownerSeenAt < floor) return floor;
  const last = ownerSeenAt > now ? now : ownerSeenAt;
  if (answerTime === null) return last;
  const heldNano = holdId === null ? 0n : ((await heldBy(sql, holdId)) ?? 0n);
  // The hold paid for the legs that were added as well.
  const guestsNano = priceOf(guestSecondsOf(call.legs, { from: answerTime, to: last }), call.pricePerMinuteNano);
  const forTalkNano = heldNano > guestsNano ? heldNano - guestsNano : 0n;
  const longestMs = Math.min(call.maxDurationS * 1000, fundedMs(forTalkNano, call));
  return new Date(Math.min(last.getTime(), answerTime.getTime() + longestMs));
}
