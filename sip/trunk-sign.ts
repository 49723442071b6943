import type { TrunkSign } from './sip-gateway.ts';
import type { SrfResponse } from './srf-types.ts';

export const SILENT = { type: 'unanswered', reason: 'no_response' } as const;
export const UNREACHABLE = { type: 'unanswered', reason: 'transport_error' } as const;

/** A carrier may ask for longer intervals and pauses, but not for ever. */
export const LONGEST_DELTA_S = 86_400;

/** Reads delta-seconds; what follows them, such as the comment of Retry-After, is ignored. */
export function secondsOf(value: string | undefined): number | null {
  const match = /^\s*(\d{1,10})/.exec(value ?? '');
  return match === null ? null : Math.min(LONGEST_DELTA_S, Number(match[1]));
}

/** A 408 or 503 without a source was made up by the SIP server: Timer B or F fired, or the transport failed. */
export function signOfResponse(response: SrfResponse): Exclude<TrunkSign, { type: 'busy' }> {
  if (response.source_address !== '' && response.source_port !== 0) return { type: 'answered' };
  return response.status === 408 ? SILENT : UNREACHABLE;
}
