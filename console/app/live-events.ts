import { useEffect, useState, useSyncExternalStore } from 'react';
import { confirmSession } from './query-client.ts';

/** Listeners by the event's name. The data is parsed JSON. */
export type Listeners = Record<string, (data: unknown) => void>;

const RETRY_MS = 1_000;
const SLOWEST_RETRY_MS = 10_000;

const interrupted = new Set<string>();
const watchers = new Set<() => void>();

/** Whether a stream that this page needs is interrupted. */
export function useIsOffline(): boolean {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => interrupted.size > 0,
  );
}

function mark(url: string, isInterrupted: boolean): void {
  if (isInterrupted) interrupted.add(url);
  else interrupted.delete(url);
  for (const watcher of watchers) watcher();
}

/**
 * Follows a stream of Server-Sent Events until the returned function is called. The browser reconnects after a network
 * error and sends `Last-Event-ID`, so no event is missed. It gives up after an error response, such as 503 during the
 * server's start; then this opens a new stream, which begins with a snapshot.
 */
export function followEvents(url: string, listeners: Listeners): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retryMs = RETRY_MS;

  function open(): void {
    source = new EventSource(url);
    source.onopen = () => {
      retryMs = RETRY_MS;
      mark(url, false);
    };
    source.onerror = () => {
      mark(url, true);
      if (source?.readyState !== EventSource.CLOSED) return;
      confirmSession();
      timer = setTimeout(open, retryMs);
      retryMs = Math.min(retryMs * 2, SLOWEST_RETRY_MS);
    };
    for (const [name, listener] of Object.entries(listeners)) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => listener(JSON.parse(data)));
    }
  }

  open();
  return () => {
    clearTimeout(timer);
    source?.close();
    mark(url, false);
  };
}

/** Follows a stream while the component is mounted. Null: none. `listeners` may change at any time. */
export function useLiveEvents(url: string | null, listeners: Listeners): void {
  const latest = useLatest(listeners);
  useEffect(() => {
    if (url === null) return;
    const forwarded = Object.keys(latest.current).map((name) => [
      name,
      (data: unknown) => latest.current[name]?.(data),
    ]);
    return followEvents(url, Object.fromEntries(forwarded));
  }, [url, latest]);
}

function useLatest<T>(value: T): { current: T } {
  const [box] = useState(() => ({ current: value }));
  useEffect(() => {
    box.current = value;
  });
  return box;
}
