import { transferTargetAfter } from '../call/transfers.ts';
import type { LegLevel, LegQuality, LiveCall, LiveNews, Spoken } from './live-data.ts';

export interface LiveEntry {
  call: LiveCall;
  levels: Readonly<Record<string, LegLevel>>;
  quality: Readonly<Record<string, LegQuality>>;
  /** The latest segments, oldest first, followed by the current hypotheses. */
  spoken: readonly Spoken[];
  /** Leg of the target while a transfer is in progress. Unknown since a snapshot, until the next event of a transfer. */
  transferTarget: string | null | undefined;
}

export interface LiveState {
  /** False until the first snapshot. */
  isReady: boolean;
  /** More calls exist than the server sends. */
  isTruncated: boolean;
  calls: ReadonlyMap<string, LiveEntry>;
  /** The latest ended calls, newest first. */
  ended: readonly LiveCall[];
}

export const NOTHING: LiveState = { isReady: false, isTruncated: false, calls: new Map(), ended: [] };

const KEPT_SEGMENTS = 4;
const KEPT_ENDED = 8;

/** Applies events in the order of their arrival. Events of a call can arrive twice. */
export function stateAfter(state: LiveState, news: readonly LiveNews[]): LiveState {
  if (news.length === 0) return state;
  const draft: Draft = { ...state, calls: new Map(state.calls), ended: [...state.ended] };
  for (const one of news) apply(draft, one);
  return draft;
}

interface Draft extends LiveState {
  isReady: boolean;
  isTruncated: boolean;
  calls: Map<string, LiveEntry>;
  ended: LiveCall[];
}

function apply(draft: Draft, { type, data }: LiveNews): void {
  switch (type) {
    case 'snapshot':
      applySnapshot(draft, data);
      break;
    case 'call':
      applyCall(draft, data);
      break;
    case 'level':
      change(draft, data.call_id, (entry) => ({ ...entry, levels: { ...entry.levels, ...byLeg(data.legs) } }));
      break;
    case 'quality':
      change(draft, data.call_id, (entry) => ({ ...entry, quality: { ...entry.quality, ...byLeg(data.legs) } }));
      break;
    case 'transcript':
      change(draft, data.call_id, (entry) => ({ ...entry, spoken: spokenAfter(entry.spoken, data) }));
      break;
  }
}

/** A snapshot contains every live call, so missing ones have ended. */
function applySnapshot(draft: Draft, { calls, truncated }: Extract<LiveNews, { type: 'snapshot' }>['data']): void {
  const known = draft.calls;
  draft.calls = new Map(calls.map((call) => [call.call_id, { ...entryOf(call), ...livelyPart(known, call) }]));
  draft.isReady = true;
  draft.isTruncated = truncated;
  if (truncated) return;
  for (const { call } of known.values()) if (!draft.calls.has(call.call_id)) end(draft, call);
}

function livelyPart(known: ReadonlyMap<string, LiveEntry>, call: LiveCall): Partial<LiveEntry> {
  const { call: _, transferTarget: __, ...rest } = known.get(call.call_id) ?? {};
  return rest;
}

function applyCall(draft: Draft, { call, events }: Extract<LiveNews, { type: 'call' }>['data']): void {
  const { call_id: id } = call;
  const entry = draft.calls.get(id);
  if (entry !== undefined && call.sequence <= entry.call.sequence) return;
  if (call.call_done) {
    draft.calls.delete(id);
    end(draft, call);
    return;
  }
  // The call's end arrived first, from a stream that repeats some events.
  if (entry === undefined && draft.ended.some((other) => other.call_id === id && other.call_done)) return;
  const transferTarget = events.reduce<string | null | undefined>(
    (target, event) => transferTargetAfter(target, event),
    entry === undefined ? null : entry.transferTarget,
  );
  draft.calls.set(id, { ...(entry ?? entryOf(call)), call, transferTarget });
}

function end(draft: Draft, call: LiveCall): void {
  const others = draft.ended.filter(({ call_id: id }) => id !== call.call_id);
  draft.ended = [call, ...others].slice(0, KEPT_ENDED);
}

function entryOf(call: LiveCall): LiveEntry {
  return { call, levels: {}, quality: {}, spoken: [], transferTarget: undefined };
}

function change(draft: Draft, callId: string, next: (entry: LiveEntry) => LiveEntry): void {
  const entry = draft.calls.get(callId);
  if (entry !== undefined) draft.calls.set(callId, next(entry));
}

function byLeg<T extends { leg: string }>(legs: readonly T[]): Record<string, T> {
  return Object.fromEntries(legs.map((leg) => [leg.leg, leg]));
}

/** A segment replaces the leg's hypothesis. Ignores a hypothesis that a later segment of the leg has overtaken. */
function spokenAfter(spoken: readonly Spoken[], segment: Spoken): readonly Spoken[] {
  const { leg, start } = segment;
  const isOvertaken =
    start !== null && spoken.some((other) => other.is_final && other.leg === leg && other.end! > start);
  if (!segment.is_final && isOvertaken) return spoken;
  const others = spoken.filter((other) => other.leg !== leg || (other.is_final && other.start !== start));
  const inOrder = [...others, segment].sort(
    (a, b) => Number(b.is_final) - Number(a.is_final) || startOf(a) - startOf(b),
  );
  return inOrder.slice(-KEPT_SEGMENTS);
}

/** A hypothesis without times is the latest. */
function startOf({ start }: Spoken): number {
  return start ?? Number.MAX_VALUE;
}
