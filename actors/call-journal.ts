import type { CallMove } from '../machines/call-events.ts';
import type { LegEndpoint, LegId } from '../machines/events.ts';
import { type Clock, type Moment, momentOf } from '../runtime/clock.ts';
import { pause } from '../runtime/waiting.ts';
import { inTransaction, type Sql, type Tx } from '../storage/database.ts';
import { legsAfter } from '../storage/queries/call-legs.ts';
import { lockLiveCall } from '../storage/queries/call-moves.ts';
import { chargePlayback } from '../storage/queries/call-playbacks.ts';
import {
  type CallEventRow,
  type CallRow,
  type LivePatch,
  listCallEvents,
  recordMoves,
} from '../storage/queries/calls.ts';
import { createRecording } from '../storage/queries/recordings.ts';
import { addSegment, failTranscript, openTranscript, UNPAID } from '../storage/queries/transcripts.ts';
import type { Logger } from './logger.ts';

/**
 * Writes the moves of one call to its event log, in order and with their times. Moves that queue up during a
 * transaction share the next one. If storage is away, it retries until it succeeds or the call's signal aborts. Only
 * transcript moves are given up after repeated refusals by a working database, because settlement waits for the last
 * move.
 */
export interface CallJournal {
  append(move: CallMove): void;
  /** Resolves when all appended moves are committed. */
  drained(): Promise<void>;
  /** Null before the bridge. */
  bridgedAt(): Moment | null;
  /** Null without a recording. */
  recordingId(): string | null;
  /** Talk time of added legs, each until it left or `now`. */
  guestsTalk(now: Moment): GuestsTalk;
}

export interface GuestsTalk {
  /** Total of all legs, each rounded up to whole seconds. */
  billedSeconds: number;
  talking: number;
}

export interface CallJournalOptions {
  sql: Sql;
  callId: string;
  boot: string;
  /** Sequence of the last event stored before the journal was opened. Only the call's owner appends events. */
  lastSequence: number;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
  endpointOf: (legId: LegId) => LegEndpoint | null;
  onCommitted: (events: CallEventRow[]) => void;
  onDeliveries: (deliveryIds: readonly string[]) => void;
  /** Called when this boot no longer owns the call: another one took it over, or it is final. */
  onLost: () => void;
}

export function openCallJournal(options: CallJournalOptions): CallJournal {
  let queue: StampedMove[] = [];
  let writing: Promise<void> | null = null;
  let bridgedAt: Moment | null = null;
  let recordingId: string | null = null;
  /** When added legs joined and left. */
  const presence = new Map<unknown, { joinedMs: number; leftMs: number | null }>();
  let { lastSequence } = options;

  async function write(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      const events = await commitUntilStored(options, { batch, lastSequence });
      lastSequence = events.at(-1)?.sequence ?? lastSequence;
      if (events.length > 0) notify(options, events);
    }
    writing = null;
  }

  return {
    append(move) {
      const moment = momentOf(options.clock);
      if (move.event === 'call.bridged') bridgedAt = moment;
      if (move.event === 'recording.started') recordingId = move.recordingId;
      if (move.event === 'leg.joined') {
        presence.set(move.data?.leg_id, { joinedMs: moment.monotonicMs, leftMs: null });
      }
      const present = move.event === 'leg.left' ? presence.get(move.data?.leg_id) : undefined;
      if (present !== undefined) present.leftMs = moment.monotonicMs;
      queue.push({ ...move, at: moment.at });
      writing ??= write();
    },
    async drained() {
      while (writing !== null) await writing;
    },
    bridgedAt: () => bridgedAt,
    recordingId: () => recordingId,
    guestsTalk({ monotonicMs: nowMs }) {
      const total: GuestsTalk = { billedSeconds: 0, talking: 0 };
      for (const { joinedMs, leftMs } of presence.values()) {
        const talkedMs = Math.max(0, Math.min(nowMs, leftMs ?? nowMs) - joinedMs);
        total.billedSeconds += Math.ceil(talkedMs / 1000);
        if (leftMs === null) total.talking += 1;
      }
      return total;
    },
  };
}

type StampedMove = CallMove & { at: Date };

const RETRY_DELAYS_MS = [50, 200, 1_000, 5_000];
const MOST_REFUSALS = 3;

/** A transcript move was not stored, perhaps because of its own content. */
class TranscriptRefusedError extends Error {
  override readonly name = 'TranscriptRefusedError';
  readonly move: StampedMove;

  constructor(move: StampedMove, cause: unknown) {
    super('a move of the transcript was not stored', { cause });
    this.move = move;
  }
}

interface Commit {
  batch: StampedMove[];
  lastSequence: number;
}

/** Returns the stored events: none if the call is final, taken over or aborted. */
async function commitUntilStored(
  options: CallJournalOptions,
  { batch, lastSequence }: Commit,
): Promise<CallEventRow[]> {
  const refusals = new Map<StampedMove, number>();
  let moves = batch;
  for (let failures = 0; !options.signal.aborted; failures += 1) {
    try {
      const stored = await commit(options, { batch: moves, lastSequence });
      if (stored) {
        options.onDeliveries(stored.webhookDeliveries);
        return stored.events;
      }
      options.logger.warn({ callId: options.callId }, 'dropped moves of a call that is final or was taken over');
      options.onLost();
      return [];
    } catch (error) {
      options.logger.error({ callId: options.callId, err: error, failures }, 'storing the moves of a call failed');
      if (error instanceof TranscriptRefusedError) {
        const refused = (refusals.get(error.move) ?? 0) + 1;
        refusals.set(error.move, refused);
        if (refused >= MOST_REFUSALS)
          moves = moves.flatMap((move) => (move === error.move ? failureInsteadOf(move) : move));
      }
      const delayMs = RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)] as number;
      await pause(delayMs, options).catch(() => {});
    }
  }
  return [];
}

async function commit({ sql, callId, boot, endpointOf }: CallJournalOptions, { batch, lastSequence }: Commit) {
  return await inTransaction(sql, async (tx) => {
    const call = await lockLiveCall(tx, callId, { ownerBoot: boot });
    if (call === null) return null;
    // An earlier attempt committed, but its response was lost.
    if (call.seq > lastSequence) {
      return { events: await listCallEvents(tx, { callId, afterSequence: lastSequence }), webhookDeliveries: [] };
    }
    const moves: StampedMove[] = [];
    for (const move of batch) {
      const storing = storeEffects(tx, { call, move, sequence: call.seq + moves.length + 1 });
      const kept = await storing.catch((cause) => {
        throw move.event.startsWith('transcript.') ? new TranscriptRefusedError(move, cause) : cause;
      });
      if (kept !== null) moves.push(kept);
    }
    const legs = moves.reduce((before, move) => legsAfter(before, move, endpointOf), call.legs);
    const patch = { ...patchOf(moves), ...(legs !== call.legs && { legs }) };
    return await recordMoves(tx, call, moves.map(toStoredMove), patch);
  });
}

/**
 * Stores the rows that belong to a move in its transaction. Returns the move to log: an unpaid segment becomes the
 * failure of the transcript. Null: the transcript is already over, so log nothing.
 */
async function storeEffects(
  tx: Tx,
  { call, move, sequence }: { call: CallRow; move: StampedMove; sequence: number },
): Promise<StampedMove | null> {
  const { callId, workspaceId, ownerNode: node } = call;
  const now = move.at;
  switch (move.event) {
    case 'recording.started':
      if (move.recordingId !== null)
        await createRecording(tx, { id: move.recordingId, callId, workspaceId, node, now });
      return move;
    case 'transcript.started':
      await openTranscript(tx, { callId, now });
      return move;
    case 'playback.started':
      await chargePlayback(tx, call, { data: move.data, now });
      return move;
    case 'transcript.failed':
      return (await failTranscript(tx, { callId, error: move.detail ?? 'INTERNAL', now })) ? move : null;
    case 'transcript.final': {
      if (move.segment === null) return null;
      const outcome = await addSegment(tx, call, { segment: move.segment, eventSequence: sequence, now });
      if (outcome === 'stored') return withRole(move, call);
      return outcome === 'over' ? null : failureOf(move, UNPAID);
    }
    default:
      return move;
  }
}

/** Adds the role of an added leg, because its id alone means little. */
function withRole(move: StampedMove, { legs }: CallRow): StampedMove {
  const added = legs.find(({ legId }) => legId === move.data?.leg_id);
  return added === undefined ? move : { ...move, data: { ...move.data, role: added.role } };
}

/** Replaces a transcript move that was given up by a failure. If that is refused too, logs nothing. */
function failureInsteadOf(move: StampedMove): StampedMove[] {
  return move.event === 'transcript.failed' ? [] : [failureOf(move, 'INTERNAL')];
}

function failureOf(move: StampedMove, reason: string): StampedMove {
  return { ...move, event: 'transcript.failed', detail: reason, leg: null, segment: null };
}

/** A listener must not undo what is stored. */
function notify({ callId, logger, onCommitted }: CallJournalOptions, events: CallEventRow[]): void {
  try {
    onCommitted(events);
  } catch (error) {
    logger.error({ callId, err: error }, 'call event listener threw');
  }
}

function toStoredMove({ recordingId: _, ...move }: StampedMove) {
  return move;
}

function patchOf(batch: StampedMove[]): LivePatch {
  const patch: LivePatch = {};
  for (const move of batch) {
    if (move.event === 'call.bridged') patch.answerTime = move.at;
    if (move.event === 'announcement.started') patch.announced = true;
    if (move.event === 'whisper.started') patch.whispered = true;
    if (move.event === 'recording.started') {
      patch.recordingId = move.recordingId;
      patch.recordingStatus = 'recording';
    }
  }
  return patch;
}
