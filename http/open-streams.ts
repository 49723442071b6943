import { TandemError } from '../machines/errors.ts';

/** Limits the open event streams of each workspace. */
export interface OpenStreams {
  /** Counts a stream until the signal aborts. @throws TandemError RATE_LIMITED */
  add(workspaceId: string, signal: AbortSignal): void;
}

export function countStreams(max: number): OpenStreams {
  const openStreams = new Map<string, number>();
  return {
    add(workspaceId, signal) {
      const open = openStreams.get(workspaceId) ?? 0;
      if (open >= max) {
        const message = `The workspace has ${max} open event streams, the maximum. Close some, then retry.`;
        throw new TandemError('RATE_LIMITED', message, { retryAfterS: 30 });
      }
      openStreams.set(workspaceId, open + 1);
      const release = () => {
        const left = (openStreams.get(workspaceId) ?? 1) - 1;
        if (left === 0) openStreams.delete(workspaceId);
        else openStreams.set(workspaceId, left);
      };
      signal.addEventListener('abort', release, { once: true });
    },
  };
}
