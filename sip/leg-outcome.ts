import type { LegEvent } from '../machines/events.ts';
import { causeOfStatus } from './failure-cause.ts';
import { SipError } from './sip-error.ts';
import type { SrfResponse } from './srf-types.ts';

/** How a leg ended that was never answered. */
export type RefusedOutcome = Omit<Extract<LegEvent, { type: 'leg.refused' }>, 'type'>;

/** Of the peer's refusal. */
export function outcomeOfResponse(response: SrfResponse): RefusedOutcome {
  const hangupCause = causeOfStatus(response.status, response.get('Reason'));
  return { sipStatus: response.status, hangupCause, detail: printable(response.reason) };
}

/** Of an INVITE that could not even be made. */
export function outcomeOfError(error: unknown): RefusedOutcome {
  if (error instanceof SipError && error.code === 'number.malformed') {
    return { sipStatus: 484, hangupCause: 'INVALID_NUMBER_FORMAT', detail: error.message };
  }
  const detail = error instanceof SipError ? error.message : 'the INVITE could not be made';
  return { sipStatus: 503, hangupCause: 'NORMAL_TEMPORARY_FAILURE', detail };
}

/** The peer's words go into stored events and to clients: no control characters, which a database refuses, no novel. */
export function printable(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cs}]+/gu, ' ')
    .trim()
    .slice(0, MAX_DETAIL_CHARS);
}

const MAX_DETAIL_CHARS = 200;
