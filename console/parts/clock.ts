import { useSyncExternalStore } from 'react';

const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;
let shownMs = Date.now();
/** Offset of the server's clock from the viewer's. */
let aheadMs = 0;

/** The `Date` header has whole seconds, so smaller differences mean nothing. */
const NOTABLE_MS = 2_000;

/** Learns the server's time from a response, because a viewer's clock can be wrong by minutes. */
export function learnServerTime({ headers }: Response): void {
  const at = Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(at)) return;
  const difference = at - Date.now();
  aheadMs = Math.abs(difference) < NOTABLE_MS ? 0 : difference;
}

/** The server's time in milliseconds. Updates once a second. */
export function useServerNow(): number {
  return useSyncExternalStore(subscribe, () => shownMs);
}

function subscribe(watcher: () => void): () => void {
  watchers.add(watcher);
  ticking ??= setInterval(tick, 1_000);
  tick();
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

function tick(): void {
  shownMs = Date.now() + aheadMs;
  for (const watcher of watchers) watcher();
}
