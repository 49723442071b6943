import { useSyncExternalStore } from 'react';
import { followEvents } from '../app/live-events.ts';
import { urlOf } from '../app/url-of.ts';
import { watchWorkspace } from '../app/workspace.ts';
import { type LiveNews, NEWS_TYPES } from './live-data.ts';
import { type LiveEntry, type LiveState, NOTHING, stateAfter } from './live-state.ts';

/** Batches updates, because levels of hundreds of calls arrive one by one. */
const SHOW_AFTER_MS = 60;

let state: LiveState = NOTHING;
let waiting: LiveNews[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let stop: (() => void) | null = null;
const watchers = new Set<() => void>();

/** Live calls of the workspace. All parts of a page share one stream, which closes with the last of them. */
export function useLiveState(): LiveState {
  return useSyncExternalStore(subscribe, () => state);
}

/** One live call. Its row renders only when the call changes. */
export function useLiveEntry(callId: string): LiveEntry | undefined {
  return useSyncExternalStore(subscribe, () => state.calls.get(callId));
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  stop ??= follow();
  return () => {
    watchers.delete(watcher);
    // Moving to another page with live calls keeps the stream.
    queueMicrotask(() => {
      if (watchers.size === 0) close();
    });
  };
}

function follow(): () => void {
  const listeners = NEWS_TYPES.map((type) => [type, (data: unknown) => take({ type, data } as LiveNews)]);
  return followEvents(urlOf('/dialer/stream'), Object.fromEntries(listeners));
}

// A stream belongs to one workspace.
watchWorkspace(() => {
  if (stop === null) return;
  close();
  stop = follow();
  for (const watcher of watchers) watcher();
});

function close(): void {
  stop?.();
  stop = null;
  clearTimeout(timer);
  timer = undefined;
  waiting = [];
  state = NOTHING;
}

function take(news: LiveNews): void {
  waiting.push(news);
  timer ??= setTimeout(show, SHOW_AFTER_MS);
}

function show(): void {
  timer = undefined;
  state = stateAfter(state, waiting);
  waiting = [];
  for (const watcher of watchers) watcher();
}
