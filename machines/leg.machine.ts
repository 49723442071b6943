import { assertEvent, assign, fromCallback, sendParent, sendTo, setup } from 'xstate';
import {
  type HangupCause,
  isLegName,
  type LegEvent,
  type LegId,
  type LegName,
  type MediaEvent,
  type RemoteMedia,
} from './events.ts';
import { notProvided } from './not-provided.ts';

/**
 * One party of a call. The leg is `dialing`, `ringing` once the peer reports it, and `answered` once a dialog exists.
 * After a hangup it is `clearing` until SIP reports its end. If an answer crosses the CANCEL, the dialog port sends a
 * BYE. A leg that rings too long reports `gone` at once and clears as `abandoned`. A leg whose end SIP does not report
 * is given up after `clearTimeoutMs`: stopping the machine releases the dialog. A leg has no other timers. The call
 * receives exactly one `gone`.
 */
export const legMachine = setup({
  types: {} as {
    context: LegContext;
    input: LegInput;
    events: LegEvent | LegCommand;
  },
  actors: {
    dialog: fromCallback<DialogCommand, DialogInput>(notProvided('dialog')),
  },
  delays: {
    ringTimeout: ({ context }) => context.ringTimeoutMs,
    clearTimeout: ({ context }) => context.clearTimeoutMs,
    // RFC 3261 §14.1: the owner of the Call-ID waits 2.1 to 4 s, the other side up to 2 s.
    glareDelay: 3_000,
  },
  actions: {
    reportRinging: sendParent(({ context, event }) => {
      assertEvent(event, 'leg.ringing');
      const { sipStatus, earlyMedia } = event;
      return report(context, 'ringing', { sipStatus, earlyMedia });
    }),
    reportAnswered: sendParent(({ context, event }) => {
      assertEvent(event, 'leg.answered');
      return report(context, 'answered', { media: event.media });
    }),
    reportMedia: sendParent(({ context, event }) => {
      assertEvent(event, 'leg.media');
      return report(context, 'media', { media: event.media });
    }),
    reportPress: sendParent(({ context, event }) => {
      assertEvent(event, 'leg.pressed');
      const { digit, durationMs } = event;
      return { type: 'dtmf.pressed', leg: context.leg, digit, durationMs, by: 'info' } satisfies LegReport;
    }),
    reportNoAnswer: sendParent(({ context }) =>
      report(context, 'gone', {
        ending: {
          kind: 'no-answer',
          sipStatus: null,
          hangupCause: 'NO_ANSWER',
          detail: context.rang
            ? `rang for ${context.ringTimeoutMs / 1000} s without an answer`
            : `did not ring within ${context.ringTimeoutMs / 1000} s`,
        },
      }),
    ),
    reportGone: sendParent(({ context, event }) =>
      report(context, 'gone', { ending: endingOf(event as LegEvent, context.rang) }),
    ),
    reportUnconfirmedEnd: sendParent(({ context }) =>
      report(context, 'gone', {
        ending: {
          kind: 'ended',
          sipStatus: null,
          hangupCause: context.hangupCause,
          detail: 'the peer did not confirm the end of the leg in time',
        },
      }),
    ),
    holdDialog: sendTo('dialog', ({ event }) => {
      assertEvent(event, 'hold');
      return event;
    }),
    offerAgain: sendTo('dialog', { type: 'offer-again' }, { id: 'offer-again', delay: 'glareDelay' }),
    hangUpDialog: sendTo('dialog', ({ context }) => ({ type: 'hangup', cause: context.hangupCause })),
    storeCause: assign(({ event }) => {
      assertEvent(event, 'hangup');
      return { hangupCause: event.cause };
    }),
    storeNoAnswer: assign({ hangupCause: 'NO_ANSWER' }),
    markRung: assign({ rang: true }),
  },
}).createMachine({
  id: 'leg',
  context: ({ input }) => ({ ...input, rang: false, hangupCause: 'NORMAL_CLEARING' }),
  invoke: {
    id: 'dialog',
    src: 'dialog',
    input: ({ context }) => ({ callId: context.callId, leg: context.leg, local: context.local }),
    onError: { target: '.gone', actions: 'reportGone' },
  },
  initial: 'unanswered',
  on: {
    'leg.refused': { target: '.gone', actions: 'reportGone' },
    'leg.ended': { target: '.gone', actions: 'reportGone' },
    'leg.lost': { target: '.gone', actions: 'reportGone' },
  },
  states: {
    unanswered: {
      after: { ringTimeout: { target: 'abandoned', actions: ['storeNoAnswer', 'hangUpDialog', 'reportNoAnswer'] } },
      on: {
        'leg.answered': { target: 'answered', actions: 'reportAnswered' },
        hangup: { target: 'clearing', actions: ['storeCause', 'hangUpDialog'] },
      },
      initial: 'dialing',
      states: {
        dialing: { on: { 'leg.ringing': { target: 'ringing', actions: ['markRung', 'reportRinging'] } } },
        ringing: { on: { 'leg.ringing': { actions: 'reportRinging' } } },
      },
    },
    answered: {
      on: {
        'leg.media': { actions: 'reportMedia' },
        'leg.pressed': { actions: 'reportPress' },
        'leg.glare': { actions: 'offerAgain' },
        hold: { actions: 'holdDialog' },
        hangup: { target: 'clearing', actions: ['storeCause', 'hangUpDialog'] },
      },
    },
    clearing: { after: { clearTimeout: { target: 'gone', actions: 'reportUnconfirmedEnd' } } },
    /** The call has received `gone`; SIP is still clearing. */
    abandoned: {
      after: { clearTimeout: 'gone' },
      on: { 'leg.refused': 'gone', 'leg.ended': 'gone', 'leg.lost': 'gone' },
    },
    gone: { type: 'final' },
  },
});

export interface LegInput {
  callId: string;
  leg: LegId;
  /** Our media address for this leg, offered in the SDP. */
  local: { host: string; rtpPort: number };
  ringTimeoutMs: number;
  /** Longest wait for SIP to report the end after a hangup. */
  clearTimeoutMs: number;
}

interface LegContext extends LegInput {
  rang: boolean;
  hangupCause: HangupCause;
}

/** Input of the `dialog` port, which looks up the trunk and its secrets by call. */
export interface DialogInput {
  callId: string;
  leg: LegId;
  local: { host: string; rtpPort: number };
}

export type LegCommand =
  | { type: 'hangup'; cause: HangupCause }
  /** Signals hold or resume to the peer of an answered leg. */
  | { type: 'hold'; isHeld: boolean };

export type DialogCommand = LegCommand | { type: 'offer-again' };

export interface LegEnding {
  /**
   * `refused`: not answered, by the peer or the network. `unencrypted`: answered without the encryption that the trunk
   * requires. `ended`: BYE. `lost`: SIP server gone.
   */
  kind: 'refused' | 'no-answer' | 'unencrypted' | 'ended' | 'lost';
  sipStatus: number | null;
  hangupCause: HangupCause;
  detail: string;
}

/** Reports of a leg to its call. An added leg reports as `guest`, with its id. */
export type LegReport = OwnLegReport | GuestReport | Extract<MediaEvent<LegId>, { type: 'dtmf.pressed' }>;

type OwnLegReport =
  | { type: `${LegName}.ringing`; sipStatus: number; earlyMedia: RemoteMedia | null }
  | { type: `${LegName}.answered`; media: RemoteMedia }
  | { type: `${LegName}.media`; media: RemoteMedia }
  | { type: `${LegName}.gone`; ending: LegEnding };

type GuestReport =
  | { type: 'guest.ringing'; legId: LegId; sipStatus: number; earlyMedia: RemoteMedia | null }
  | { type: 'guest.answered'; legId: LegId; media: RemoteMedia }
  | { type: 'guest.media'; legId: LegId; media: RemoteMedia }
  | { type: 'guest.gone'; legId: LegId; ending: LegEnding };

type ReportFields<Kind extends string> = Kind extends 'ringing'
  ? { sipStatus: number; earlyMedia: RemoteMedia | null }
  : Kind extends 'gone'
    ? { ending: LegEnding }
    : { media: RemoteMedia };

function report<Kind extends 'ringing' | 'answered' | 'media' | 'gone'>(
  { leg }: LegContext,
  kind: Kind,
  fields: ReportFields<Kind>,
): LegReport {
  const isOwn = isLegName(leg);
  return (
    isOwn ? { type: `${leg}.${kind}`, ...fields } : { type: `guest.${kind}`, legId: leg, ...fields }
  ) as LegReport;
}

function endingOf(event: LegEvent | { type: string; detail?: string; error?: unknown }, rang: boolean): LegEnding {
  switch (event.type) {
    case 'leg.refused': {
      const { sipStatus, hangupCause, detail, isUnencrypted } = event as Extract<LegEvent, { type: 'leg.refused' }>;
      if (isUnencrypted) return { kind: 'unencrypted', sipStatus, hangupCause, detail };
      // A 408 means that the callee did not answer if it rang, else that it was not reached.
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
