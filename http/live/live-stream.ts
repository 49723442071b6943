import type { LegHypothesis } from '../../actors/live/live-calls.ts';
import type { Sql } from '../../storage/database.ts';
import { type CallChange, liveCallsNow } from '../../storage/queries/call-changes.ts';
import { type CallRow, isFinalState } from '../../storage/queries/calls.ts';
import { type FeedItem, RESUME_WINDOW_MS, readChanges } from './change-feed.ts';
import { presentLiveCall, presentNews, type SpokenSegment, spokenSegments } from './live-call.ts';
import { Outbox, type OutboxLimits } from './outbox.ts';
import { readResumeId, resumeIdOf, type SeenUpTo } from './resume-id.ts';

export interface LiveStreamOptions {
  sql: Sql;
  workspaceId: string;
  lastEventId: unknown;
  /** As `ChangeFeed.subscribe`. */
  subscribe: (listener: (item: FeedItem) => void) => Promise<void>;
  /** Whether the client may read the transcript of a call. */
  mayReadTranscript: (call: Pick<CallRow, 'direction' | 'createdByUserId'>) => boolean;
  limits?: OutboxLimits;
  /** Called before the last event of a client dropped for reading too slowly. */
  onOverflow: () => void;
  now: () => Date;
  heartbeatMs: number;
  signal: AbortSignal;
}

export const MAX_SNAPSHOT_CALLS = 500;
const LIMITS: OutboxLimits = { maxFrames: 2000, maxBytes: 2 * 1024 * 1024 };

/**
 * Streams the live calls of a workspace as Server-Sent Events (WHATWG HTML §9.2): missed changes or a snapshot, then
 * live changes. Subscribes before reading, so that nothing is lost. A call's sequence identifies duplicates.
 */
export async function* streamLiveCalls(options: LiveStreamOptions): AsyncGenerator<string, void> {
  const { sql, workspaceId, now, signal, heartbeatMs } = options;
  const outbox = new Outbox(options.limits ?? LIMITS);
  const writer = new FrameWriter(options, outbox);
  /** Changes that arrive during a database read, and may be older than it. Null at other times. */
  let waiting: Changes[] | null = [];
  let isLost = false;
  let seen: SeenUpTo | null = null;
  let heartbeatAtMs = performance.now();

  // Send at once, so that the client knows that it is connected.
  yield 'retry: 3000\n\n';
  await options.subscribe(receive);
  if (!(await resume())) yield await snapshot();

  while (!signal.aborted) {
    const text = await outbox.take({ timeoutMs: heartbeatAtMs + heartbeatMs - performance.now(), signal });
    if (outbox.isOverflown) {
      options.onOverflow();
      yield DROPPED;
      return;
    }
    if (text !== '') yield text;
    if (isLost) yield await snapshot();
    // Its id means that the client has everything.
    if (performance.now() - heartbeatAtMs < heartbeatMs || !outbox.isIdle || signal.aborted) continue;
    heartbeatAtMs = performance.now();
    yield `: heartbeat\n${idOf(seen)}\n`;
  }

  function receive(item: FeedItem): void {
    if (item.type === 'lost') {
      isLost = true;
      outbox.wake();
    } else if (item.type === 'news') writer.writeNews(item.news);
    else if (waiting !== null) waiting.push(item);
    else write(item);
  }

  function write(item: Changes): void {
    writer.writeChanges(item);
    seen = item.seen;
  }

  function writeWaiting(): void {
    for (const item of waiting ?? []) write(item);
    waiting = null;
  }

  async function snapshot(): Promise<string> {
    isLost = false;
    waiting ??= [];
    const at = now();
    const { cursor, calls, isTruncated } = await liveCallsNow(sql, { workspaceId, limit: MAX_SNAPSHOT_CALLS });
    outbox.clear();
    writer.startFrom(calls);
    seen = { at, cursor };
    writeWaiting();
    const data = { calls: calls.map((call) => presentLiveCall(call, at)), truncated: isTruncated };
    return frameOf('snapshot', data, { at, cursor });
  }

  /** False: missed changes are unavailable. */
  async function resume(): Promise<boolean> {
    const given = readResumeId(options.lastEventId);
    const at = now();
    if (given === null || Math.abs(at.getTime() - given.at.getTime()) > RESUME_WINDOW_MS) return false;
    const read = await readChanges(sql, { workspaceId, cursor: given.cursor, now: at });
    if (read === null) return false;
    write({ changes: read.changes, seen: { at, cursor: read.cursor } });
    writeWaiting();
    return true;
  }
}

type Changes = Pick<Extract<FeedItem, { type: 'changes' }>, 'changes' | 'seen'>;

/** Writes frames into a client's outbox, each event once. */
class FrameWriter {
  readonly #outbox: Outbox;
  readonly #options: LiveStreamOptions;
  /** Latest event that the client has, by live call. */
  readonly #sequences = new Map<string, number>();

  constructor(options: LiveStreamOptions, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
  }

  startFrom(calls: readonly CallRow[]): void {
    this.#sequences.clear();
    for (const { callId, seq } of calls) this.#sequences.set(callId, seq);
  }

  writeChanges({ changes, seen }: Changes): void {
    const unseen = changes.map((change) => this.#unseen(change)).filter(({ events }) => events.length > 0);
    for (const change of unseen) {
      if (!this.#options.mayReadTranscript(change.call)) continue;
      for (const segment of spokenSegments(change)) this.#put(frameOf('transcript', segment));
    }
    for (const [index, change] of unseen.entries()) {
      const isLast = index === unseen.length - 1;
      // Only the last frame's id says that all were received.
      const text = shared(change, () => frameOf('call', presentNews(change, this.#options.now())));
      this.#put(isLast ? `${idOf(seen)}${text}` : text);
    }
  }

  writeNews(news: Extract<FeedItem, { type: 'news' }>['news']): void {
    if (news.type === 'hypothesis' && !this.#options.mayReadTranscript(news.hypothesis.access)) return;
    const subject = news.type === 'hypothesis' ? `${news.hypothesis.callId} ${news.hypothesis.leg}` : news.callId;
    const text = shared(news, () => newsFrame(news));
    // A slow client needs only the latest.
    this.#put(text, `${news.type} ${subject}`);
  }

  #unseen(change: CallChange): CallChange {
    const { call, events } = change;
    const known = this.#sequences.get(call.callId) ?? 0;
    const unseen = events.filter(({ sequence }) => sequence > known);
    const last = unseen.at(-1);
    if (last !== undefined) {
      if (isFinalState(last.state)) this.#sequences.delete(call.callId);
      else this.#sequences.set(call.callId, last.sequence);
    }
    return unseen.length === events.length ? change : { call, events: unseen };
  }

  #put(text: string, key: string | null = null): void {
    this.#outbox.put({ text, key });
  }
}

const sharedFrames = new WeakMap<object, string>();

/** Formats a frame once for all streams of a workspace. */
function shared(subject: object, make: () => string): string {
  const made = sharedFrames.get(subject) ?? make();
  sharedFrames.set(subject, made);
  return made;
}

function newsFrame(news: Extract<FeedItem, { type: 'news' }>['news']): string {
  switch (news.type) {
    case 'levels': {
      const legs = Object.entries(news.levels).map(([leg, { levelDbov, isSpeaking }]) => {
        return { leg, level_dbov: levelDbov, speaking: isSpeaking };
      });
      return frameOf('level', { call_id: news.callId, legs });
    }
    case 'quality': {
      const legs = Object.entries(news.quality).flatMap(([leg, quality]) => (quality ? [{ leg, ...quality }] : []));
      return frameOf('quality', { call_id: news.callId, legs });
    }
    case 'hypothesis':
      return frameOf('transcript', presentHypothesis(news.hypothesis));
  }
}

function presentHypothesis({ callId, access: _, startMs, endMs, ...spoken }: LegHypothesis): SpokenSegment {
  const times = { start: startMs === null ? null : startMs / 1000, end: endMs === null ? null : endMs / 1000 };
  return { call_id: callId, ...spoken, is_final: false, language: null, ...times, confidence: null };
}

const DROPPED = frameOf('dropped', {
  reason: 'slow_client',
  message: 'You read the stream too slowly, so it ends. Reconnect with Last-Event-ID to receive what you missed.',
});

function frameOf(event: string, data: unknown, seen: SeenUpTo | null = null): string {
  return `${idOf(seen)}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

function idOf(seen: SeenUpTo | null): string {
  return seen === null ? '' : `id: ${resumeIdOf(seen)}\n`;
}
