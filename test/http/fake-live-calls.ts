import type { LiveCalls, LiveNews } from '../../actors/live/live-calls.ts';

/** Live calls set by the test. */
export class FakeLiveCalls implements LiveCalls {
  readonly #listeners = new Map<string, Set<(news: LiveNews) => void>>();

  watch(workspaceId: string, listener: (news: LiveNews) => void, signal: AbortSignal): void {
    const listeners = this.#listeners.get(workspaceId) ?? new Set();
    this.#listeners.set(workspaceId, listeners.add(listener));
    signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
  }

  publish(workspaceId: string, news: LiveNews): void {
    for (const listener of this.#listeners.get(workspaceId) ?? []) listener(news);
  }

  watcherCount(workspaceId: string): number {
    return this.#listeners.get(workspaceId)?.size ?? 0;
  }
}
