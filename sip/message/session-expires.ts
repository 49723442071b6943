/** Session timers (RFC 4028): how long a session lasts without a refresh, and which side refreshes it. */
export interface SessionExpires {
  seconds: number;
  /** Whether the sender of the request that negotiates it refreshes, or the other side. Null: not said. */
  refresher: 'uac' | 'uas' | null;
}

/** No interval may be shorter (RFC 4028 §4). */
export const LEAST_SESSION_S = 90;
/** A day. Longer ones are cut: the sessions that need no timer need no number. */
const MOST_SESSION_S = 86_400;

/** Reads Session-Expires, or Min-SE; null when it is absent or cannot be read. */
export function parseSessionExpires(value: string | undefined): SessionExpires | null {
  const match = /^\s*(\d{1,10})\s*(;.*)?$/s.exec(value ?? '');
  if (match === null) return null;
  const seconds = Math.min(MOST_SESSION_S, Number(match[1]));
  const refresher = /;\s*refresher\s*=\s*(uac|uas)\s*(?:;|$)/i.exec(match[2] ?? '')?.[1]?.toLowerCase();
  return { seconds, refresher: refresher === 'uac' || refresher === 'uas' ? refresher : null };
}
