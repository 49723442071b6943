import type { CallMove } from '../machines/call-events.ts';
import { inTransaction, type Sql, type Tx } from '../storage/database.ts';
import { lockLiveCall } from '../storage/queries/call-moves.ts';
import {
  type CallEventRow,
  type CallRow,
  type LivePatch,
  listCallEvents,
  recordMoves,
} from '../storage/queries/calls.ts';
import { createRecording } from '../storage/queries/recordings.ts';
import { addSegment, failTranscript, openTranscript, UNPAID } from '../storage/queries/transcripts.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/**
 * Writes the moves of one call to its event log, in the order they happened, each stamped with the moment it
 * happened. Moves that pile up while a transaction runs share the next one. While storage is away nothing is lost:
 * writing is retried until it succeeds or the call's signal aborts.
 */
export interface CallJournal {
  append(move: CallMove): void;
  /** Resolves when everything appended so far is committed. */
  drained(): Promise<void>;
  /** When the legs were bridged; null before. */
  bridgedAt(): Date | null;
  /** The recording that was started; null without one. */
  recordingId(): string | null;
}

export interface CallJournalOptions {
  sql: Sql;
  callId: string;
  /** The boot that runs the call. */
  boot: string;
  /** Sequence of the latest event stored before the journal was opened; nobody but the owner of the call adds any. */
  lastSequence: number;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
  /** Told of every event after it was committed. */
  onCommitted: (events: CallEventRow[]) => void;
  /** Told when the call is not ours any more: another boot took it over, or it is final already. */
  onLost: () => void;
}

export function openCallJournal(options: CallJournalOptions): CallJournal {
  let queue: StampedMove[] = [];
  let writing: Promise<void> | null = null;
  let bridgedAt: Date | null = null;
  let recordingId: string | null = null;
  let { lastSequence } = options;

  async function write(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      const events = await commitUntilStored(options, { batch, lastSequence });
      lastSequence = events.at(-1)?.sequence ?? lastSequence;
      if (events.length > 0) tell(options, events);
    }
    writing = null;
  }

  return {
    append(move) {
      const at = new Date(options.clock.now());
      if (move.event === 'call.bridged') bridgedAt = at;
      if (move.event === 'recording.started') recordingId = move.recordingId;
      queue.push({ ...move, at });
      writing ??= write();
    },
    async drained() {
      while (writing !== null) await writing;
    },
    bridgedAt: () => bridgedAt,
    recordingId: () => recordingId,
  };
}

type StampedMove = CallMove & { at: Date };

const RETRY_DELAYS_MS = [50, 200, 1_000, 5_000];

interface Commit {
  batch: StampedMove[];
  lastSequence: number;
}

/** Returns what was stored: nothing when the call is final already or another's, or aborted. */
async function commitUntilStored(options: CallJournalOptions, work: Commit): Promise<CallEventRow[]> {
  for (let failures = 0; !options.signal.aborted; failures += 1) {
    try {
      const stored = await commit(options, work);
      if (stored) return stored.events;
      options.logger.warn({ callId: options.callId }, 'moves of a call that was taken over or is final were dropped');
      options.onLost();
      return [];
    } catch (error) {
      options.logger.error({ callId: options.callId, err: error, failures }, 'storing the moves of a call failed');
      const delayMs = RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)] as number;
      await pause(options, delayMs);
    }
  }
  return [];
}

async function commit({ sql, callId, boot }: CallJournalOptions, { batch, lastSequence }: Commit) {
  return await inTransaction(sql, async (tx) => {
    const call = await lockLiveCall(tx, callId);
    if (call === null || call.ownerBoot !== boot) return null;
    // An earlier try did commit, only its answer was lost.
    if (call.seq > lastSequence) {
      return { events: await listCallEvents(tx, { callId, afterSequence: lastSequence }) };
    }
    const moves: StampedMove[] = [];
    for (const move of batch) {
      const kept = await withWhatItTells(tx, { call, move, sequence: call.seq + moves.length + 1 });
      if (kept !== null) moves.push(kept);
    }
    return await recordMoves(tx, callId, moves.map(toStoredMove), patchOf(moves));
  });
}

/**
 * Stores what commits with a move beside its event. Returns the move as it turned out: what was said and is not paid
 * for ends the transcript, and nothing is told of one that is over; null then.
 */
async function withWhatItTells(
  tx: Tx,
  { call, move, sequence }: { call: CallRow; move: StampedMove; sequence: number },
): Promise<StampedMove | null> {
  const { callId, workspaceId } = call;
  const now = move.at;
  switch (move.event) {
    case 'recording.started':
      if (move.recordingId !== null) await createRecording(tx, { id: move.recordingId, callId, workspaceId, now });
      return move;
    case 'transcript.started':
      await openTranscript(tx, { callId, now });
      return move;
    case 'transcript.failed':
      return (await failTranscript(tx, { callId, error: move.detail ?? 'INTERNAL', now })) ? move : null;
    case 'transcript.final': {
      if (move.segment === null) return null;
      const outcome = await addSegment(tx, call, { segment: move.segment, eventSequence: sequence, now });
      if (outcome === 'stored') return move;
      return outcome === 'over'
        ? null
        : { ...move, event: 'transcript.failed', detail: UNPAID, leg: null, segment: null };
    }
    default:
      return move;
  }
}

/** What is stored is stored, whatever a listener makes of it. */
function tell({ callId, logger, onCommitted }: CallJournalOptions, events: CallEventRow[]): void {
  try {
    onCommitted(events);
  } catch (error) {
    logger.error({ callId, err: error }, 'a listener to the events of a call broke');
  }
}

function toStoredMove({ recordingId: _, ...move }: StampedMove) {
  return move;
}

function patchOf(batch: StampedMove[]): LivePatch {
  const patch: LivePatch = {};
  for (const move of batch) {
    if (move.event === 'call.bridged') patch.answerTime = move.at;
    if (move.event === 'recording.started') {
      patch.recordingId = move.recordingId;
      patch.recordingStatus = 'recording';
    }
  }
  return patch;
}

/** Waits, but no longer than the call lives. */
function pause({ clock, signal }: CallJournalOptions, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const handle = clock.setTimeout(done, delayMs);
    signal.addEventListener('abort', done, { once: true });
    function done() {
      clock.clearTimeout(handle);
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}
