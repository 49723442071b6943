import type { HangupCause } from '../machines/events.ts';

/**
 * Maps SIP status to hangup cause and back: RFC 3398 §8.2.6.1 (SIP to ISUP), with the names and deviations of
 * FreeSWITCH, which the API uses. A `Reason` header (RFC 3326) with a Q.850 cause takes precedence.
 */

/** The cause of a final response other than 2xx. `reason` is its `Reason` header, if any. */
export function causeOfStatus(sipStatus: number, reason?: string): HangupCause {
  return causeOfReason(reason) ?? CAUSE_OF_STATUS[sipStatus] ?? causeOfClass(sipStatus);
}

/** The cause of a BYE: from its `Reason` header, else normal clearing. */
export function causeOfBye(reason?: string): HangupCause {
  return causeOfReason(reason) ?? 'NORMAL_CLEARING';
}

/** The status that rejects an inbound call with this cause. */
export function statusOfCause(cause: HangupCause): number {
  return STATUS_OF_CAUSE[cause] ?? 480;
}

const STATUS_OF_CAUSE: Readonly<Partial<Record<HangupCause, number>>> = {
  USER_BUSY: 486,
  CALL_REJECTED: 603,
  UNALLOCATED_NUMBER: 404,
  NO_ROUTE_DESTINATION: 404,
  INCOMPATIBLE_DESTINATION: 488,
  FACILITY_REJECTED: 403,
  NORMAL_TEMPORARY_FAILURE: 503,
  NETWORK_OUT_OF_ORDER: 503,
  SWITCH_CONGESTION: 503,
  SYSTEM_SHUTDOWN: 503,
};

/** The `Reason` header of our CANCEL or BYE. The platform's own causes become normal clearing. */
export function reasonHeaderOf(cause: HangupCause): string {
  return `Q.850;cause=${Q850_OF_CAUSE.get(cause) ?? 16};text="${cause}"`;
}

const CAUSE_OF_STATUS: Readonly<Record<number, HangupCause>> = {
  400: 'NORMAL_TEMPORARY_FAILURE',
  401: 'CALL_REJECTED',
  402: 'CALL_REJECTED',
  403: 'CALL_REJECTED',
  404: 'UNALLOCATED_NUMBER',
  405: 'SERVICE_NOT_IMPLEMENTED',
  406: 'SERVICE_NOT_IMPLEMENTED',
  407: 'CALL_REJECTED',
  408: 'RECOVERY_ON_TIMER_EXPIRE',
  410: 'NUMBER_CHANGED',
  413: 'INTERWORKING',
  414: 'INTERWORKING',
  415: 'SERVICE_NOT_IMPLEMENTED',
  416: 'INTERWORKING',
  420: 'INTERWORKING',
  421: 'INTERWORKING',
  423: 'INTERWORKING',
  480: 'NO_USER_RESPONSE',
  481: 'NORMAL_TEMPORARY_FAILURE',
  482: 'EXCHANGE_ROUTING_ERROR',
  483: 'EXCHANGE_ROUTING_ERROR',
  484: 'INVALID_NUMBER_FORMAT',
  485: 'NO_ROUTE_DESTINATION',
  486: 'USER_BUSY',
  487: 'ORIGINATOR_CANCEL',
  488: 'INCOMPATIBLE_DESTINATION',
  500: 'NORMAL_TEMPORARY_FAILURE',
  501: 'SERVICE_NOT_IMPLEMENTED',
  502: 'NETWORK_OUT_OF_ORDER',
  503: 'NORMAL_TEMPORARY_FAILURE',
  504: 'RECOVERY_ON_TIMER_EXPIRE',
  505: 'INTERWORKING',
  513: 'INTERWORKING',
  600: 'USER_BUSY',
  603: 'CALL_REJECTED',
  604: 'NO_ROUTE_DESTINATION',
  606: 'INCOMPATIBLE_DESTINATION',
  607: 'CALL_REJECTED',
  608: 'CALL_REJECTED',
};

/** An unknown status counts as the x00 of its class (RFC 3261 §8.1.3.2). */
function causeOfClass(sipStatus: number): HangupCause {
  if (sipStatus >= 600) return 'CALL_REJECTED';
  return sipStatus >= 500 ? 'NORMAL_TEMPORARY_FAILURE' : 'NORMAL_UNSPECIFIED';
}

const CAUSE_OF_Q850: Readonly<Record<number, HangupCause>> = {
  1: 'UNALLOCATED_NUMBER',
  2: 'NO_ROUTE_DESTINATION',
  3: 'NO_ROUTE_DESTINATION',
  16: 'NORMAL_CLEARING',
  17: 'USER_BUSY',
  18: 'NO_USER_RESPONSE',
  19: 'NO_ANSWER',
  20: 'NO_USER_RESPONSE',
  21: 'CALL_REJECTED',
  22: 'NUMBER_CHANGED',
  25: 'EXCHANGE_ROUTING_ERROR',
  27: 'DESTINATION_OUT_OF_ORDER',
  28: 'INVALID_NUMBER_FORMAT',
  29: 'FACILITY_REJECTED',
  31: 'NORMAL_UNSPECIFIED',
  34: 'SWITCH_CONGESTION',
  38: 'NETWORK_OUT_OF_ORDER',
  41: 'NORMAL_TEMPORARY_FAILURE',
  42: 'SWITCH_CONGESTION',
  58: 'BEARERCAPABILITY_NOTAVAIL',
  65: 'BEARERCAPABILITY_NOTIMPL',
  79: 'SERVICE_NOT_IMPLEMENTED',
  88: 'INCOMPATIBLE_DESTINATION',
  102: 'RECOVERY_ON_TIMER_EXPIRE',
  127: 'INTERWORKING',
};

/** Codes that we never send, by the status of RFC 3398 §7.2.4.1 or the class of Q.850. */
const CAUSE_OF_RECEIVED_Q850: Readonly<Record<number, HangupCause>> = {
  44: 'SWITCH_CONGESTION',
  47: 'SWITCH_CONGESTION',
  50: 'FACILITY_REJECTED',
  52: 'CALL_REJECTED',
  54: 'CALL_REJECTED',
  55: 'CALL_REJECTED',
  57: 'CALL_REJECTED',
  63: 'NORMAL_TEMPORARY_FAILURE',
  69: 'FACILITY_REJECTED',
  70: 'BEARERCAPABILITY_NOTIMPL',
  87: 'CALL_REJECTED',
  111: 'INTERWORKING',
};

/** Causes with several codes use their canonical one: 3, 18 and 42. */
const Q850_OF_CAUSE: ReadonlyMap<HangupCause, number> = new Map([
  ...Object.entries(CAUSE_OF_Q850).map(([code, cause]): [HangupCause, number] => [cause, Number(code)]),
  ['NO_USER_RESPONSE', 18],
]);

/**
 * e.g. `SIP;cause=200;text="Call completed elsewhere", Q.850;cause=17`. Only Q.850 matters, so quoted commas are
 * harmless.
 */
function causeOfReason(reason: string | undefined): HangupCause | null {
  if (reason === undefined) return null;
  const text = /(?:^|,)\s*Q\.850\s*;(?:[^,"]|"[^"]*")*?\bcause\s*=\s*(\d{1,3})\b/i.exec(reason)?.[1];
  if (text === undefined) return null;
  const code = Number(text);
  // The last code of each class of 16 is its unspecified one.
  return causeOfQ850(code) ?? causeOfQ850(code | 15) ?? 'NORMAL_UNSPECIFIED';
}

function causeOfQ850(code: number): HangupCause | undefined {
  return CAUSE_OF_Q850[code] ?? CAUSE_OF_RECEIVED_Q850[code];
}
