/**
 * Bounds of our own on every wait. The SIP server has its timers (RFC 3261 §17), but a leg must also end when the
 * server forgets it.
 */
export interface LegTimeouts {
  /** From the INVITE to the first sign of ringing; 100 Trying is not seen here. */
  noAnswerMs: number;
  /** From the last provisional answer to a final one: timer C, over three minutes (RFC 3261 §16.6). */
  ringingMs: number;
  /** From CANCEL to the final answer: 64 * T1 (RFC 3261 §9.1) and a little more. */
  cancelMs: number;
  /** From BYE to its answer. A peer that does not answer a BYE is gone, and nobody gains by waiting. */
  byeMs: number;
}

export const DEFAULT_LEG_TIMEOUTS: Readonly<LegTimeouts> = {
  noAnswerMs: 60_000,
  ringingMs: 200_000,
  cancelMs: 34_000,
  byeMs: 5_000,
};
