import type { CallMove } from '../machines/call-events.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import { type CallEventRow, type LivePatch, recordMoves } from '../storage/queries/calls.ts';
import { createRecording } from '../storage/queries/recordings.ts';
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
  workspaceId: string;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
  /** Told of every event after it was committed. */
  onCommitted: (events: CallEventRow[]) => void;
}

export function openCallJournal(options: CallJournalOptions): CallJournal {
  let queue: StampedMove[] = [];
  let writing: Promise<void> | null = null;
  let bridgedAt: Date | null = null;
  let recordingId: string | null = null;

  async function write(): Promise<void> {
    while (queue.length > 0 && !options.signal.aborted) {
      const batch = queue;
      queue = [];
      await commitUntilStored(options, batch);
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

async function commitUntilStored(options: CallJournalOptions, batch: StampedMove[]): Promise<void> {
  for (let failures = 0; !options.signal.aborted; failures += 1) {
    try {
      const stored = await commit(options, batch);
      if (stored) options.onCommitted(stored.events);
      else options.logger.warn({ callId: options.callId }, 'moves of a call that is already final were dropped');
      return;
    } catch (error) {
      options.logger.error({ callId: options.callId, err: error, failures }, 'storing the moves of a call failed');
      const delayMs = RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)] as number;
      await pause(options, delayMs);
    }
  }
}

async function commit({ sql, callId, workspaceId }: CallJournalOptions, batch: StampedMove[]) {
  return await inTransaction(sql, async (tx) => {
    for (const move of batch) {
      if (move.event !== 'recording.started' || move.recordingId === null) continue;
      await createRecording(tx, { id: move.recordingId, callId, workspaceId, now: move.at });
    }
    return await recordMoves(tx, callId, batch.map(toStoredMove), patchOf(batch));
  });
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
