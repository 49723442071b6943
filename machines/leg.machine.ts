import { assign, type EventObject, fromCallback, sendParent, sendTo, setup } from 'xstate';
import type { HangupCause, LegEvent, LegName, RemoteMedia } from './events.ts';
import { notProvided } from './not-provided.ts';

/**
 * One party of a call. The leg is `dialing` from the moment it exists, `ringing` once the peer says so, `answered`
 * when there is a dialog. Asked to hang up it is `clearing` until SIP reports the leg's end: after a CANCEL that may
 * still be an answer that crossed it, which the dialog port ends with a BYE. A leg that rings for too long tells the
 * call at once and clears itself; a leg whose end SIP does not report is given up after `clearTimeoutMs`. Its last
 * word to the call is always one `gone`.
 */
export const legMachine = setup({
  types: {} as {
    context: LegContext;
    input: LegInput;
    events: LegEvent | LegCommand;
  },
  actors: {
    dialog: fromCallback<EventObject, DialogInput>(notProvided('dialog')),
  },
  delays: {
    ringTimeout: ({ context }) => context.ringTimeoutMs,
    clearTimeout: ({ context }) => context.clearTimeoutMs,
  },
  actions: {
    tellRinging: sendParent(({ context, event }) => {
      const { sipStatus, earlyMedia } = event as Extract<LegEvent, { type: 'leg.ringing' }>;
      return { type: `${context.leg}.ringing`, sipStatus, earlyMedia } satisfies LegReport;
    }),
    tellAnswered: sendParent(({ context, event }) => {
      const { media } = event as Extract<LegEvent, { type: 'leg.answered' }>;
      return { type: `${context.leg}.answered`, media } satisfies LegReport;
    }),
    tellMedia: sendParent(({ context, event }) => {
      const { media } = event as Extract<LegEvent, { type: 'leg.media' }>;
      return { type: `${context.leg}.media`, media } satisfies LegReport;
    }),
    tellNoAnswer: sendParent(
      ({ context }) =>
        ({
          type: `${context.leg}.gone`,
          ending: {
            kind: 'no-answer',
            sipStatus: null,
            hangupCause: 'NO_ANSWER',
            detail: `rang for ${context.ringTimeoutMs / 1000} s without an answer`,
          },
        }) satisfies LegReport,
    ),
    tellGone: sendParent(
      ({ context, event }) =>
        ({
          type: `${context.leg}.gone`,
          ending: endingOf(event as LegEvent, context.rang),
        }) satisfies LegReport,
    ),
    tellGivenUp: sendParent(
      ({ context }) =>
        ({
          type: `${context.leg}.gone`,
          ending: {
            kind: 'ended',
            sipStatus: null,
            hangupCause: context.hangupCause,
            detail: 'the peer did not confirm the end of the leg in time',
          },
        }) satisfies LegReport,
    ),
    askDialogToHangUp: sendTo('dialog', ({ context }) => ({ type: 'hangup', cause: context.hangupCause })),
    noteCause: assign(({ event }) => ({ hangupCause: (event as LegCommand).cause })),
    noteNoAnswer: assign({ hangupCause: 'NO_ANSWER' }),
    noteRang: assign({ rang: true }),
  },
}).createMachine({
  id: 'leg',
  context: ({ input }) => ({ ...input, rang: false, hangupCause: 'NORMAL_CLEARING' }),
  invoke: {
    id: 'dialog',
    src: 'dialog',
    input: ({ context }) => ({ callId: context.callId, leg: context.leg, local: context.local }),
    onError: { target: '.gone', actions: 'tellGone' },
  },
  initial: 'unanswered',
  on: {
    'leg.refused': { target: '.gone', actions: 'tellGone' },
    'leg.ended': { target: '.gone', actions: 'tellGone' },
    'leg.lost': { target: '.gone', actions: 'tellGone' },
  },
  states: {
    unanswered: {
      after: { ringTimeout: { target: 'abandoned', actions: ['noteNoAnswer', 'askDialogToHangUp', 'tellNoAnswer'] } },
      on: {
        'leg.answered': { target: 'answered', actions: 'tellAnswered' },
        hangup: { target: 'clearing', actions: ['noteCause', 'askDialogToHangUp'] },
      },
      initial: 'dialing',
      states: {
        dialing: { on: { 'leg.ringing': { target: 'ringing', actions: ['noteRang', 'tellRinging'] } } },
        ringing: { on: { 'leg.ringing': { actions: 'tellRinging' } } },
      },
    },
    answered: {
      on: {
        'leg.media': { actions: 'tellMedia' },
        hangup: { target: 'clearing', actions: ['noteCause', 'askDialogToHangUp'] },
      },
    },
    clearing: { after: { clearTimeout: { target: 'gone', actions: 'tellGivenUp' } } },
    /** The call has been told; SIP is still being cleared, and an answer that crosses the CANCEL is ended there. */
    abandoned: {
      after: { clearTimeout: 'gone' },
      on: { 'leg.refused': 'gone', 'leg.ended': 'gone', 'leg.lost': 'gone' },
    },
    gone: { type: 'final' },
  },
});

export interface LegInput {
  callId: string;
  leg: LegName;
  /** What to offer in the SDP: the media plane's address for this leg. */
  local: { host: string; rtpPort: number };
  ringTimeoutMs: number;
  /** How long to wait for SIP to report the end of a leg that was asked to hang up. */
  clearTimeoutMs: number;
}

interface LegContext extends LegInput {
  rang: boolean;
  hangupCause: HangupCause;
}

/** What the `dialog` port is given; it looks the trunk and its secrets up by call. */
export interface DialogInput {
  callId: string;
  leg: LegName;
  local: { host: string; rtpPort: number };
}

export type LegCommand = { type: 'hangup'; cause: HangupCause };

/** How a leg ended, as the call needs to know it. */
export interface LegEnding {
  /** `refused`: never answered, by the peer or the network. `ended`: BYE. `lost`: SIP server gone. */
  kind: 'refused' | 'no-answer' | 'ended' | 'lost';
  sipStatus: number | null;
  hangupCause: HangupCause;
  detail: string;
}

/** What a leg tells its call. */
export type LegReport =
  | { type: `${LegName}.ringing`; sipStatus: number; earlyMedia: RemoteMedia | null }
  | { type: `${LegName}.answered`; media: RemoteMedia }
  | { type: `${LegName}.media`; media: RemoteMedia }
  | { type: `${LegName}.gone`; ending: LegEnding };

function endingOf(event: LegEvent | { type: string; detail?: string; error?: unknown }, rang: boolean): LegEnding {
  switch (event.type) {
    case 'leg.refused': {
      const { sipStatus, hangupCause, detail } = event as Extract<LegEvent, { type: 'leg.refused' }>;
      // A network's 408 after ringing is the callee not answering; before it, nobody was reached.
      if (sipStatus === 408 && rang) return { kind: 'no-answer', sipStatus, hangupCause: 'NO_ANSWER', detail };
      return { kind: 'refused', sipStatus, hangupCause, detail };
    }
    case 'leg.ended': {
      const { by, hangupCause } = event as Extract<LegEvent, { type: 'leg.ended' }>;
      return { kind: 'ended', sipStatus: null, hangupCause, detail: by === 'peer' ? 'the party hung up' : 'hung up' };
    }
    case 'leg.lost': {
      const { detail } = event as Extract<LegEvent, { type: 'leg.lost' }>;
      return { kind: 'lost', sipStatus: null, hangupCause: 'NETWORK_OUT_OF_ORDER', detail };
    }
    default:
      return {
        kind: 'lost',
        sipStatus: null,
        hangupCause: 'NORMAL_TEMPORARY_FAILURE',
        detail: 'the leg could not be dialed',
      };
  }
}
