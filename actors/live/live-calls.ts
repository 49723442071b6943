import type { LegId, LegQuality } from '../../machines/events.ts';
import type { CallRow } from '../../storage/queries/calls.ts';

/**
 * Live news about a workspace's calls on every node, for `http/`. Implemented in `live-calls.actor.ts`. Levels, quality
 * and partial transcripts are measured only while someone watches.
 */
export interface LiveCalls {
  /** Calls the listener until the signal aborts. Earlier news is not repeated. */
  watch(workspaceId: string, listener: (news: LiveNews) => void, signal: AbortSignal): void;
}

/** Plain JSON, because it crosses between nodes. */
export type LiveNews =
  /** Events of a call may have been stored. Read them, because this can be lost or repeated. */
  | { type: 'changed' }
  /** At most twice a second per call. */
  | { type: 'levels'; callId: string; levels: Record<LegId, LegLevel> }
  /** Every few seconds, since the start of the leg. */
  | { type: 'quality'; callId: string; quality: Record<LegId, LegQuality | null> }
  /** Partial transcript of a leg. The final segment is an event of the call. */
  | { type: 'hypothesis'; hypothesis: LegHypothesis };

export interface LegLevel {
  /** Level since the last report; -96 for silence. */
  levelDbov: number;
  isSpeaking: boolean;
}

export interface LegHypothesis {
  callId: string;
  /** Decides who may read it. */
  access: Pick<CallRow, 'direction' | 'createdByUserId'>;
  leg: LegId;
  role: string;
  text: string;
  /** Since the bridge. Null if the engine reports no times. */
  startMs: number | null;
  endMs: number | null;
}
