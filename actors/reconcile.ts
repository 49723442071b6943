import type { LegHandle, SipGateway } from '../sip/sip-gateway.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import { heldBy } from '../storage/ledger.ts';
import { guestSecondsOf } from '../storage/queries/call-legs.ts';
import { priceOf } from '../storage/queries/call-settlement.ts';
import { type CallRow, legHandlesOf, markOrphansUnknown, settleCall } from '../storage/queries/calls.ts';
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
  node: string;
  boot: string;
  /** The last moment the previous boot of this node is known to have lived; null when nothing tells. */
  lastAlive: Date | null;
  now: Date;
  deliverer: Deliverer;
  recordings: RecordingDesk;
  logger: Logger;
}

/**
 * Brings every call that an earlier boot of this node left behind to a final state, before new calls are taken. Its
 * media died with the process, so a call that was bridged was talked until the process was last known to live, and is
 * billed for that; one that was not is a temporary failure and costs nothing. Recordings go on from the bytes that
 * were written.
 */
export async function reconcile(options: ReconcileOptions): Promise<{ calls: number; recordings: number }> {
  const { sql, node, boot, now, recordings, deliverer, logger } = options;
  const orphans = await markOrphansUnknown(sql, { node, boot, now });
  for (const orphan of orphans) {
    // Their peers may still talk, through a SIP server that outlived us. If this boot dies too, the next one repeats it.
    options.sip.endLegs((await legHandlesOf(sql, orphan.callId)) as LegHandle[]);
    const deliveryId = await resolve(options, orphan);
    if (deliveryId) await deliverer.enqueue(deliveryId);
  }
  // What was understood is kept; the rest of what was said went with the process.
  await failAbandonedTranscripts(sql, { node, now });
  const unfinished = await unfinishedRecordings(sql, { node });
  for (const { id, callId, workspaceId } of unfinished) recordings.store({ recordingId: id, callId, workspaceId });
  if (orphans.length > 0 || unfinished.length > 0) {
    logger.warn(
      { calls: orphans.length, recordings: unfinished.length },
      'took over calls and recordings of an earlier boot',
    );
  }
  return { calls: orphans.length, recordings: unfinished.length };
}

/** Returns the callback to send, if the call asked for one. */
async function resolve(options: ReconcileOptions, call: CallRow): Promise<string | null> {
  const { sql, now } = options;
  const wasBridged = call.answerTime !== null;
  const endTime = await lastMoment(options, call);
  const talkedMs = call.answerTime === null ? 0 : endTime.getTime() - call.answerTime.getTime();
  const detail = wasBridged
    ? 'the server stopped during the talk; billed until it was last known to run'
    : 'the server stopped before the legs were bridged';
  return await inTransaction(sql, async (tx) => {
    const result = await settleCall(tx, {
      callId: call.callId,
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
    return result?.delivery?.id ?? null;
  });
}

/**
 * When the call ended, as well as stamps can tell: they are all that is left of a process that died, and the wall clock
 * may have stepped between two of them. So the end is never before the answer, never after now, and the talk is never
 * longer than the call was allowed, nor than its hold paid for: the hold grew by the monotonic clock, a minute at a time.
 */
async function lastMoment({ sql, lastAlive, now }: ReconcileOptions, call: CallRow): Promise<Date> {
  const { answerTime, holdId } = call;
  const floor = answerTime ?? call.createdAt;
  if (lastAlive === null || lastAlive < floor) return floor;
  const last = lastAlive > now ? now : lastAlive;
  if (answerTime === null) return last;
  const heldNano = holdId === null ? 0n : ((await heldBy(sql, holdId)) ?? 0n);
  // The hold paid for the legs that were added as well.
  const guestsNano = priceOf(guestSecondsOf(call.legs, { from: answerTime, to: last }), call.pricePerMinuteNano);
  const forTalkNano = heldNano > guestsNano ? heldNano - guestsNano : 0n;
  const longestMs = Math.min(call.maxDurationS * 1000, fundedMs(forTalkNano, call));
  return new Date(Math.min(last.getTime(), answerTime.getTime() + longestMs));
}
