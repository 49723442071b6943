import type { LegEvent } from '../machines/events.ts';
import { causeOfStatus } from './failure-cause.ts';
import type { LegCredentials } from './leg-credentials.ts';
import { SipError } from './sip-error.ts';
import type { SrfResponse } from './srf-types.ts';

export type RefusedOutcome = Omit<Extract<LegEvent, { type: 'leg.refused' }>, 'type'>;

/** @param credentials with which our INVITE was sent. */
export function outcomeOfResponse(
  response: SrfResponse,
  credentials: Pick<LegCredentials, 'refusalBy'>,
): RefusedOutcome {
  const { status } = response;
  const hangupCause = causeOfStatus(status, response.get('Reason'));
  const reason = printable(response.reason);
  const explanation = status < 400 ? REDIRECTED : credentials.refusalBy(response);
  const detail = explanation === null ? reason : `${explanation} (${`${status} ${reason}`.trim()})`;
  return { sipStatus: status, hangupCause, detail };
}

const REDIRECTED = 'the carrier redirected the call to another address, which Tandem does not follow';

/** Outcome of an INVITE that could not be built. */
export function outcomeOfError(error: unknown): RefusedOutcome {
  if (error instanceof SipError && error.code === 'number.malformed') {
    return { sipStatus: 484, hangupCause: 'INVALID_NUMBER_FORMAT', detail: error.message };
  }
  const detail = error instanceof SipError ? error.message : 'the INVITE could not be made';
  return { sipStatus: 503, hangupCause: 'NORMAL_TEMPORARY_FAILURE', detail };
}

/**
 * Cleans peer text for stored events and clients: no control characters, which a database rejects, and a limited
 * length.
 */
export function printable(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cs}]+/gu, ' ')
    .trim()
    .slice(0, MAX_DETAIL_CHARS);
}

const MAX_DETAIL_CHARS = 200;
