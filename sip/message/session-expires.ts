/** Session timer (RFC 4028): the interval without a refresh, and the side that refreshes. */
export interface SessionExpires {
  seconds: number;
  /** `uac` is the sender of the negotiating request. Null: not given. */
  refresher: 'uac' | 'uas' | null;
}

/** Shortest interval (RFC 4028 §4). */
export const LEAST_SESSION_S = 90;
/** A day. Longer intervals are shortened, because such sessions need no timer. */
const MOST_SESSION_S = 86_400;

/** Parses Session-Expires or Min-SE; null if absent or invalid. */
export function parseSessionExpires(value: string | undefined): SessionExpires | null {
  const match = /^\s*(\d{1,10})\s*(;.*)?$/s.exec(value ?? '');
  if (match === null) return null;
  const seconds = Math.min(MOST_SESSION_S, Number(match[1]));
  const refresher = /;\s*refresher\s*=\s*(uac|uas)\s*(?:;|$)/i.exec(match[2] ?? '')?.[1]?.toLowerCase();
  return { seconds, refresher: refresher === 'uac' || refresher === 'uas' ? refresher : null };
}
