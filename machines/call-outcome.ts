import { detailOfAnswer } from './call-answer.ts';
import type { CallContext, CallEvent, CallOutcome } from './call-events.ts';
import type { HangupCause, LegName } from './events.ts';
import type { LegEnding } from './leg.machine.ts';

/** The outcome of a call that `event` ends, before or after the bridge. */
export function outcomeOf(event: CallEvent, call: Pick<CallContext, 'bridged' | 'local'>): CallOutcome {
  if (call.local === null) return rejected('detail' in event && event.detail ? event.detail : 'ended before dialing');
  switch (event.type) {
    case 'agent.gone':
    case 'customer.gone': {
      const leg: LegName = event.type === 'agent.gone' ? 'agent' : 'customer';
      return call.bridged ? completed(event.ending.hangupCause, leg) : legFailed(leg, event.ending);
    }
    case 'machine.detected':
      return { ...completed('NORMAL_CLEARING'), errorDetail: detailOfAnswer(event.result) };
    case 'rtp.timeout':
      // The timeout of an added leg ends only that leg, so this is an own leg.
      return completed('MEDIA_TIMEOUT', event.leg as LegName);
    case 'media.lost':
      return call.bridged
        ? completed('NORMAL_TEMPORARY_FAILURE')
        : cutShort('NORMAL_TEMPORARY_FAILURE', 'call.temporaryfailed', ['media_lost', event.detail]);
    case 'hangup.requested':
      if (event.reason === 'caller') return abandoned(call.bridged);
      return event.reason === 'api' ? cancelled(call.bridged) : shutDown(call.bridged);
    default:
      // A port of the machine failed: no regular event leads here.
      if (call.bridged) return completed('NORMAL_TEMPORARY_FAILURE');
      return cutShort('NORMAL_UNSPECIFIED', 'call.temporaryfailed', ['unexpected', `ended by ${event.type}`]);
  }
}

/** Outcome of a bridged call, whatever ended it. */
export function completed(hangupCause: HangupCause, leg: LegName | null = null): CallOutcome {
  return {
    state: 'completed',
    terminalEvent: 'call.completed',
    hangupCause,
    leg,
    sipStatus: null,
    error: null,
    errorDetail: null,
  };
}

/** Outcome of a call that one of its legs ended before the bridge. */
function legFailed(leg: LegName, ending: LegEnding): CallOutcome {
  const { terminalEvent, error } = classify(ending);
  return {
    state: 'failed',
    terminalEvent,
    hangupCause: ending.kind === 'ended' ? 'ORIGINATOR_CANCEL' : ending.hangupCause,
    leg,
    sipStatus: ending.sipStatus,
    error: `${leg}_${error}`,
    errorDetail: ending.detail,
  };
}

function cancelled(bridged: boolean): CallOutcome {
  if (bridged) return completed('NORMAL_CLEARING');
  return cutShort('ORIGINATOR_CANCEL', 'call.not_answered', ['cancelled', 'hung up through the API']);
}

/** The caller of an inbound call hung up. */
function abandoned(bridged: boolean): CallOutcome {
  if (bridged) return completed('NORMAL_CLEARING', 'customer');
  const outcome = cutShort('ORIGINATOR_CANCEL', 'call.not_answered', ['customer_hung_up', 'the caller hung up']);
  return { ...outcome, leg: 'customer' };
}

function shutDown(bridged: boolean): CallOutcome {
  if (bridged) return completed('SYSTEM_SHUTDOWN');
  return cutShort('SYSTEM_SHUTDOWN', 'call.temporaryfailed', ['shutdown', 'the server shut down']);
}

/** Outcome of a call that the platform ended before the bridge. */
function cutShort(
  hangupCause: HangupCause,
  terminalEvent: CallOutcome['terminalEvent'],
  [error, errorDetail]: [string, string],
): CallOutcome {
  return { state: 'failed', terminalEvent, hangupCause, leg: null, sipStatus: null, error, errorDetail };
}

/** Outcome of a call that the platform could not admit after storing its row. Its reference can be reused. */
export function rejected(detail: string): CallOutcome {
  return {
    state: 'rejected',
    terminalEvent: 'call.temporaryfailed',
    hangupCause: 'SWITCH_CONGESTION',
    leg: null,
    sipStatus: null,
    error: 'not_admitted',
    errorDetail: detail,
  };
}

/** Sorts SIP finals into not answered, permanent and temporary failures (contracts, Calls). */
function classify(ending: LegEnding): { terminalEvent: CallOutcome['terminalEvent']; error: string } {
  if (ending.kind === 'no-answer') return { terminalEvent: 'call.not_answered', error: 'no_answer' };
  if (ending.kind === 'ended') return { terminalEvent: 'call.not_answered', error: 'hung_up' };
  if (ending.kind === 'unencrypted') return { terminalEvent: 'call.failed', error: 'not_encrypted' };
  if (ending.kind === 'lost') return { terminalEvent: 'call.temporaryfailed', error: 'signalling_lost' };
  const status = ending.sipStatus ?? 503;
  if (status === 486 || status === 600) return { terminalEvent: 'call.not_answered', error: 'busy' };
  if (status === 603 || status === 607) return { terminalEvent: 'call.not_answered', error: 'declined' };
  if (status === 487) return { terminalEvent: 'call.not_answered', error: 'cancelled' };
  if (TEMPORARY_4XX.has(status) || (status >= 500 && status < 600)) {
    return { terminalEvent: 'call.temporaryfailed', error: 'unreachable' };
  }
  return { terminalEvent: 'call.failed', error: 'refused' };
}

/** 408 without ringing, 480 and 491: the peer may be reachable later (RFC 3261 §21.4). */
const TEMPORARY_4XX = new Set([408, 480, 491]);
