import {
  assign,
  cancel,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import { endsCall } from './call-answer.ts';
import {
  type CallControl,
  type ControlRefusal,
  isInEffect,
  isTalking,
  legFields,
  legsOf,
  moveOfControl,
  moveOfPlaybackEnd,
  oppositeOf,
  type TalkControl,
  talkAfter,
  talkWith,
  talkWithout,
  withPast,
} from './call-control.ts';
import type {
  CallContext,
  CallEmitted,
  CallEvent,
  CallInput,
  CallMove,
  CallOutcome,
  Funding,
  LocalMedia,
  MediaCommand,
  MediaReport,
  SettleInput,
  SpeechName,
  TranscriptCommand,
} from './call-events.ts';
import { completed, outcomeOf } from './call-outcome.ts';
import {
  heldInConsultation,
  heldInTransfer,
  placeOf,
  talkAfterTransfer,
  transferOf,
  withoutHolds,
  withoutLeaving,
} from './call-transfer.ts';
import {
  type AnswerResult,
  type HangupCause,
  isLegName,
  type LegId,
  type LegName,
  type RemoteMedia,
  type Transfer,
} from './events.ts';
import { isRepeatedPress, isSilentPress, type KeyPress, withPress } from './key-presses.ts';
import { type LegEnding, type LegInput, legMachine } from './leg.machine.ts';
import { notProvided } from './not-provided.ts';

/** After a hangup, give up a leg whose end SIP does not report in this time. */
export const LEG_CLEAR_TIMEOUT_MS = 4_000;

/** Extend the wallet hold this long before the funded talk ends. */
export const FUNDING_LEAD_MS = 15_000;

const MAX_FUNDING_FAILURES = 6;

/** Longest wait for the last utterances before the settlement. */
export const TRANSCRIPT_TIMEOUT_MS = 2_000;

/** Skip speech that has not started in this time: it is not synthesised yet, or the agent is on hold. */
export const SPEECH_BEGIN_TIMEOUT_MS = 4_000;

export const LONGEST_SPEECH_MS = 30_000;

/** A free trunk funds unlimited talk, but timers are limited to 2^31 - 1 ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const EMPTY_MOVE = {
  leg: null,
  sipStatus: null,
  hangupCause: null,
  detail: null,
  recordingId: null,
  segment: null,
  data: null,
};

/** Per call. Each press is a row of the event log, and a peer can press keys for hours. */
const MOST_DIGITS_RECEIVED = 1_000;

/** Besides agent and customer. */
export const MOST_GUESTS = 8;

interface ControlParams {
  controlId: string;
  control: TalkControl;
}

interface GuestParams {
  legId: LegId;
}

interface PlaybackParams {
  playbackId: string;
}

export const callSetup = setup({
  types: {} as { context: CallContext; input: CallInput; events: CallEvent; emitted: CallEmitted },
  actors: {
    /** Owns the media session. Accepts `MediaCommand`s; reports `media.*` and `MediaEvent`s. */
    media: fromCallback<MediaCommand, { callId: string }>(notProvided('media')),
    leg: legMachine,
    /** Transcribes both legs. Never throws: a call continues without a transcript. */
    transcript: fromCallback<TranscriptCommand, { callId: string }>(notProvided('transcript')),
    /** Extends the hold. Returns how much longer the talk is funded. */
    extendFunding: fromPromise<Funding, { callId: string }>(notProvided('extendFunding')),
    /** Commits the outcome. Idempotent; rejects while storage is unreachable. */
    settle: fromPromise<void, SettleInput>(notProvided('settle')),
  },
  delays: {
    maxDuration: ({ context }) => context.maxDurationMs,
    fundingCheck: ({ context }) => fundingCheckDelayMs(context.fundedForMs),
    fundingRetry: 5_000,
    fundingTimeout: 5_000,
    prepareTimeout: 5_000,
    clearTimeout: LEG_CLEAR_TIMEOUT_MS + 1_000,
    finishTimeout: 5_000,
    transcriptTimeout: TRANSCRIPT_TIMEOUT_MS,
    speechBegin: SPEECH_BEGIN_TIMEOUT_MS,
    speechEnd: LONGEST_SPEECH_MS + 2_000,
    settleRetry: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.settleFailures, 7)),
  },
  guards: {
    allLegsGone: ({ context }) =>
      context.legs.agent !== 'up' && context.legs.customer !== 'up' && Object.keys(context.guests).length === 0,
    fundsRemain: (_, funding: Funding) => funding.fundedForMs > 0,
    canRetryFunding: ({ context }) => context.fundingFailures < MAX_FUNDING_FAILURES,
    isFirstRinging: ({ context }, { leg }: { leg: LegName }) => !context.rang[leg],
    carriesEarlyMedia: ({ event }) => event.type === 'customer.ringing' && event.earlyMedia !== null,
    hasEarlyMedia: ({ context }) => context.earlyMedia,
    wantsRecording: ({ context }) => context.record,
    wantsMachineDetection: ({ context }) => context.onMachine !== null,
    endsCall: ({ context }, { result }: { result: AnswerResult }) => endsCall(context.onMachine, result),
    wantsTranscript: ({ context }) => context.transcribe,
    isTranscribing: ({ context }) => context.isTranscribing,
    wantsAnnouncement: ({ context }) => context.announce,
    wantsWhisper: ({ context }) => context.whisper,
    isControlInEffect: ({ context }, { control }: { control: TalkControl }) => isInEffect(context.talk, control),
    isForMissingLeg: ({ context }, { control }: { control: CallControl }) => {
      if (control.type === 'leg.add') return false;
      if (control.type === 'transfer') return placeOf(context.talk, control.leg) === null;
      if (control.type === 'leg.drop') return (context.guests[control.leg]?.state ?? 'opening') === 'opening';
      if (control.type === 'supervise') return (context.talk.guests[control.leg] ?? null) === null;
      return !legsOf(control).every((leg) => isTalking(context.talk, leg));
    },
    /** A sound goes on as long as one of its legs hears it, so it must stay known. */
    hasLostItsLegs: ({ context }, { control }: { control: TalkControl }) => {
      if (control.type === 'supervise') return (context.talk.guests[control.leg] ?? null) === null;
      const legs = legsOf(control);
      return legs.length > 0 && !legs.some((leg) => isTalking(context.talk, leg));
    },
    isOverriddenHold: ({ context }, { controlId, control }: ControlParams) =>
      control.type === 'hold' && !Object.hasOwn(context.pendingHolds, controlId),
    isForMissingPlayback: ({ context }, { control }: { control: CallControl }) =>
      control.type === 'play.stop' && !context.playbacks.includes(control.playbackId),
    isPlaying: ({ context }, { playbackId }: PlaybackParams) => context.playbacks.includes(playbackId),
    isAddingTooMany: ({ context }, { control }: { control: CallControl }) =>
      (control.type === 'leg.add' || control.type === 'transfer') && Object.keys(context.guests).length >= MOST_GUESTS,
    isSecondTransfer: ({ context }, { control }: { control: CallControl }) =>
      control.type === 'transfer' && context.talk.transfer !== null,
    isForMissingTransfer: ({ context }, { control }: { control: CallControl }) => {
      const { transfer } = context.talk;
      if (control.type !== 'transfer.cancel' && control.type !== 'transfer.complete') return false;
      if (control.target !== undefined && control.target !== transfer?.target) return true;
      if (control.type === 'transfer.cancel') {
        return (context.guests[transfer?.target ?? '']?.state ?? 'opening') === 'opening';
      }
      return transfer?.mode !== 'attended' || isTargetLeaving(context);
    },
    isTooEarly: ({ context }, { control }: { control: CallControl }) =>
      control.type === 'transfer.complete' && !hasTargetAnswered(context),
    hasLeft: ({ context }, { leg }: { leg: LegName }) => context.talk.left.includes(leg),
    isLeaving: ({ context }, { legId }: GuestParams) => context.talk.transfer?.leaving === legId,
    isTarget: ({ context }, { legId }: GuestParams) => context.talk.transfer?.target === legId,
    isTalkingOwnLeg: ({ context }, { legId }: GuestParams) => isLegName(legId) && isTalking(context.talk, legId),
    endsTalk: ({ context: { talk } }, { legId }: GuestParams) => {
      const { transfer } = talk;
      if (transfer?.target === legId) return !isTalking(talk, transfer.leaving);
      return placeOf(talk, legId) !== null && transfer?.leaving !== legId;
    },
    isControlOf: (_, { control, type }: { control: CallControl; type: CallControl['type'] }) => control.type === type,
    isFirstRingingOfGuest: ({ context }, { legId }: GuestParams) => context.guests[legId]?.state === 'dialing',
    hasGuest: ({ context }, { legId }: GuestParams) => Object.hasOwn(context.guests, legId),
    needsRecording: ({ context }, { control }: { control: CallControl }) =>
      control.type.startsWith('recording.') && !context.isRecording,
    isRepeatedPress: ({ context }, event: KeyPress) => isRepeatedPress(context.keyPresses, event),
    mayTellDigit: ({ context }) => context.digitsReceived < MOST_DIGITS_RECEIVED,
    isSpeech: (_, { speech, of }: Record<'speech' | 'of', SpeechName>) => speech === of,
  },
  actions: {
    emitMove: emit((_, move: Partial<CallMove> & Pick<CallMove, 'event' | 'state'>) => ({
      type: 'moved' as const,
      move: { ...EMPTY_MOVE, ...move },
    })),
    announceClearing: emit({ type: 'clearing' }),
    sendToMedia: sendTo('media', (_, command: MediaCommand) => command),
    connectEarlyMedia: sendTo('media', ({ event }) => ({
      type: 'connect',
      leg: 'customer',
      media: (event as Extract<CallEvent, { earlyMedia: unknown }>).earlyMedia as RemoteMedia,
    })),
    decideOutcome: assign(({ context, event }) => ({ outcome: context.outcome ?? outcomeOf(event, context) })),
    /** The outcome when an added leg that took a place hangs up. */
    endByGuest: assign(({ context }, { legId, ending }: GuestParams & { ending: LegEnding }) => ({
      outcome: completed(ending.hangupCause, placeOf(context.talk, legId)),
    })),
    setOutcome: assign((_, { outcome }: { outcome: CallOutcome }) => ({ outcome })),
    dialAgent: enqueueActions(({ enqueue, context }) => {
      enqueue.assign({ legs: { ...context.legs, agent: 'up' } });
      enqueue(spawnChild('leg', { id: 'agent', input: legInput(context, 'agent') }));
    }),
    dialCustomer: enqueueActions(({ enqueue, context }) => {
      enqueue.assign({ legs: { ...context.legs, customer: 'up' } });
      enqueue(spawnChild('leg', { id: 'customer', input: legInput(context, 'customer') }));
    }),
    hangUpLegs: enqueueActions(({ enqueue, context }) => {
      const cause = context.outcome?.hangupCause ?? 'NORMAL_CLEARING';
      if (context.legs.agent === 'up') enqueue(sendTo('agent', { type: 'hangup', cause }));
      if (context.legs.customer === 'up') enqueue(sendTo('customer', { type: 'hangup', cause }));
      // A leg without a media port was not dialed yet. Its control is refused as the call ends.
      const dialed = Object.entries(context.guests).filter(([, { state }]) => state !== 'opening');
      enqueue.assign({ guests: Object.fromEntries(dialed) });
      for (const [legId] of dialed) enqueue(sendTo(legId, { type: 'hangup', cause }));
    }),
    addGuest: enqueueActions(
      ({ enqueue, context }, { controlId, control }: { controlId: string; control: CallControl }) => {
        if (control.type === 'transfer') {
          const { leg: leaving, target, mode, requestedBy } = control;
          const transfer = transferOf(context.talk, { leaving, target, mode, requestedBy });
          enqueue.assign({ talk: { ...context.talk, transfer } });
        } else if (control.type !== 'leg.add') return;
        const { leg, role, mode } =
          control.type === 'transfer' ? { leg: control.target, role: 'party' as const, mode: null } : control;
        enqueue.assign({
          guests: {
            ...context.guests,
            [leg]: { role, mode, state: 'opening', isConnected: false, controlId, isLeaving: false, drops: [] },
          },
        });
        enqueue.sendTo('media', { type: 'add-party', leg });
      },
    ),
    dialGuest: enqueueActions(
      ({ enqueue, context }, { legId, local }: GuestParams & { local: { host: string; rtpPort: number } }) => {
        const guest = context.guests[legId]!;
        enqueue.assign({ guests: { ...context.guests, [legId]: { ...guest, state: 'dialing' } } });
        const ringTimeoutMs = context.customerRingTimeoutMs;
        const input = {
          callId: context.callId,
          leg: legId,
          local,
          ringTimeoutMs,
          clearTimeoutMs: LEG_CLEAR_TIMEOUT_MS,
        };
        enqueue(spawnChild('leg', { id: legId, input }));
        const { transfer } = context.talk;
        if (transfer?.target === legId) {
          const resumed = heldInConsultation(context.talk);
          const talk = withoutHolds(context.talk, resumed);
          enqueue.assign({ talk, pendingHolds: withoutHoldsOf(context.pendingHolds, resumed) });
          enqueue.sendTo('media', { type: 'route', talk });
          enqueue.emit(movedAt({ event: 'transfer.started', data: transferData(transfer) }));
          for (const leg of resumed) {
            enqueue(sendTo(leg, { type: 'hold', isHeld: false }));
            enqueue.emit(movedAt(moveOfControl({ type: 'resume', leg })));
          }
        }
        enqueue.emit({ type: 'controlled', controlId: guest.controlId, refusal: null });
      },
    ),
    /** `controlId` is the control that requested it, answered once the leg is gone. */
    hangUpGuest: enqueueActions(
      ({ enqueue, context }, { legId, cause, controlId }: GuestParams & { cause: HangupCause; controlId?: string }) => {
        const guest = context.guests[legId];
        if (guest === undefined || guest.state === 'opening') return;
        const drops = controlId === undefined ? guest.drops : [...guest.drops, controlId];
        enqueue.assign({ guests: { ...context.guests, [legId]: { ...guest, isLeaving: true, drops } } });
        enqueue(sendTo(legId, { type: 'hangup', cause }));
      },
    ),
    hangUpOwnLeg: enqueueActions(({ enqueue, context }, { legId, cause }: GuestParams & { cause: HangupCause }) => {
      if (isLegName(legId) && context.legs[legId] === 'up') enqueue(sendTo(legId, { type: 'hangup', cause }));
    }),
    markGuestRinging: assign(({ context }, { legId }: GuestParams) => ({
      guests: { ...context.guests, [legId]: { ...context.guests[legId]!, state: 'ringing' as const } },
    })),
    letGuestTalk: enqueueActions(({ enqueue, context }, { legId, media }: GuestParams & { media: RemoteMedia }) => {
      const guest = context.guests[legId]!;
      const talk = talkWith(context.talk, legId, guest.mode);
      enqueue.assign({ talk, guests: { ...context.guests, [legId]: { ...guest, state: 'talking' } } });
      enqueue.sendTo('media', { type: 'connect', leg: legId, media });
      enqueue.sendTo('media', { type: 'route', talk });
      enqueue.raise({ type: 'legs.changed' });
    }),
    markGuestConnected: enqueueActions(({ enqueue, context }, { legId }: GuestParams) => {
      enqueue.assign({ guests: { ...context.guests, [legId]: { ...context.guests[legId]!, isConnected: true } } });
      if (context.isTranscribing && isAudibleToAll(context, legId)) {
        enqueue.sendTo('transcript', { type: 'join', leg: legId });
      }
    }),
    /** Other modes only mute the tap, so an existing transcriber stays. */
    transcribeSupervisor: enqueueActions(({ enqueue, context }, { control }: { control: TalkControl }) => {
      if (control.type !== 'supervise' || !context.isTranscribing || !isAudibleToAll(context, control.leg)) return;
      enqueue.sendTo('transcript', { type: 'join', leg: control.leg });
    }),
    removeGuest: enqueueActions(({ enqueue, context }, { legId }: GuestParams) => {
      const { [legId]: gone, ...guests } = context.guests;
      if (gone === undefined) return;
      const talk = talkWithout(context.talk, legId);
      enqueue.assign({ guests, talk });
      if (gone.state === 'talking') {
        enqueue.sendTo('media', { type: 'route', talk });
        enqueue.raise({ type: 'legs.changed' });
      }
      if (context.isTranscribing && gone.state === 'talking') {
        enqueue.sendTo('transcript', { type: 'leave', leg: legId });
      }
      enqueue.sendTo('media', { type: 'remove-party', leg: legId });
    }),
    /** The target takes its place. The replaced leg is hung up unless it has left already. */
    completeTransfer: enqueueActions(({ enqueue, context }) => {
      const { transfer } = context.talk;
      if (transfer === null) return;
      const { leaving, mode } = transfer;
      const talk = talkAfterTransfer(context.talk);
      const resumed = heldInTransfer(context.talk);
      enqueue.assign({ talk, pendingHolds: withoutHoldsOf(context.pendingHolds, resumed) });
      enqueue.sendTo('media', { type: 'route', talk });
      enqueue.emit(movedAt({ event: 'transfer.completed', data: transferData(transfer) }));
      for (const leg of resumed) {
        enqueue(sendTo(leg, { type: 'hold', isHeld: false }));
        enqueue.emit(movedAt(moveOfControl({ type: 'resume', leg })));
      }
      const isThere = isLegName(leaving) ? context.legs[leaving] === 'up' : context.guests[leaving] !== undefined;
      const cause = mode === 'blind' ? 'BLIND_TRANSFER' : 'ATTENDED_TRANSFER';
      if (isThere) enqueue(sendTo(leaving, { type: 'hangup', cause }));
      const mustLeave = isLegName(leaving) && isTalking(context.talk, leaving);
      if (mustLeave && context.isTranscribing) enqueue.sendTo('transcript', { type: 'leave', leg: leaving });
    }),
    /**
     * Completes a transfer whose target has answered: a blind one once the target is connected, because it could still
     * fail; any one when the leaving leg hangs up.
     */
    settleTransfer: enqueueActions(({ enqueue, context }) => {
      const { talk, guests } = context;
      if (talk.transfer === null || !hasTargetAnswered(context)) return;
      const { target, leaving, mode } = talk.transfer;
      if ((mode === 'blind' && guests[target]?.isConnected) || !isTalking(talk, leaving)) {
        enqueue.raise({ type: 'transfer.due' });
      }
    }),
    /** The leaving leg has hung up by itself. */
    markLeft: enqueueActions(({ enqueue, context }, { leg }: { leg: LegName }) => {
      const talk = withoutLeaving(context.talk, leg);
      enqueue.assign({ talk });
      enqueue.sendTo('media', { type: 'route', talk });
      if (context.isTranscribing) enqueue.sendTo('transcript', { type: 'leave', leg });
    }),
    /** The target is gone: the two parties talk as before, unless the leaving leg has hung up. */
    endTransfer: enqueueActions(({ enqueue, context }, { legId, ending }: GuestParams & { ending: LegEnding }) => {
      const { transfer } = context.talk;
      if (transfer?.target !== legId) return;
      const talk = { ...context.talk, transfer: null };
      const isCancelled = (context.guests[transfer.target]?.drops.length ?? 0) > 0;
      const { sipStatus, hangupCause, detail } = ending;
      const failure = isCancelled ? {} : { sipStatus, hangupCause, detail };
      const event = isCancelled ? 'transfer.cancelled' : 'transfer.failed';
      enqueue.assign({ talk });
      enqueue.sendTo('media', { type: 'route', talk });
      enqueue.emit(movedAt({ event, ...failure, data: transferData(transfer) }));
    }),
    /** The call ends before the transfer. One whose target is not being dialed has not begun. */
    abandonTransfer: enqueueActions(({ enqueue, context }) => {
      const { transfer } = context.talk;
      if ((context.guests[transfer?.target ?? '']?.state ?? 'opening') === 'opening') return;
      enqueue.emit(movedAt({ event: 'transfer.cancelled', data: transferData(transfer!) }));
    }),
    /** The target got no media port. A control since its request has already routed the audio for the transfer. */
    forgetTransfer: enqueueActions(({ enqueue, context }, { legId }: GuestParams) => {
      if (context.talk.transfer?.target !== legId) return;
      const talk = { ...context.talk, transfer: null };
      enqueue.assign({ talk });
      enqueue.sendTo('media', { type: 'route', talk });
    }),
    /** The media keeps its port and measurements until the call ends. */
    releaseOwnLeg: enqueueActions(({ enqueue }, { leg, ending }: { leg: LegName; ending: LegEnding }) => {
      enqueue.sendTo('media', { type: 'end-playback', leg });
      enqueue.emit(movedAt({ event: 'leg.left', leg, hangupCause: ending.hangupCause, detail: ending.detail }));
    }),
    /** Used while the call is cleared, when no parties are connected. */
    forgetGuest: assign(({ context }, { legId }: GuestParams) => {
      const { [legId]: _, ...guests } = context.guests;
      return { guests };
    }),
    emitGuestJoined: enqueueActions(({ enqueue, context }, { legId }: GuestParams) => {
      const { role, mode } = context.guests[legId]!;
      enqueue.emit(movedAt({ event: 'leg.joined', sipStatus: 200, ...legFields(legId) }));
      if (role === 'supervisor') {
        enqueue.emit(movedAt({ event: 'supervision.started', ...legFields(legId, { mode }) }));
      }
    }),
    emitGuestGone: enqueueActions(({ enqueue, context }, { legId, ending }: GuestParams & { ending: LegEnding }) => {
      const guest = context.guests[legId];
      if (guest === undefined) return;
      const { sipStatus, hangupCause, detail } = ending;
      const hasTalked = guest.state === 'talking';
      if (hasTalked && guest.role === 'supervisor') {
        enqueue.emit(movedAt({ event: 'supervision.ended', ...legFields(legId) }));
      }
      const event = hasTalked ? 'leg.left' : 'leg.failed';
      enqueue.emit(movedAt({ event, sipStatus, hangupCause, detail, ...legFields(legId) }));
      for (const controlId of guest.drops) enqueue.emit({ type: 'controlled', controlId, refusal: null });
    }),
    refuseGuest: emit(({ context }, { legId, refusal }: GuestParams & { refusal: ControlRefusal }) => ({
      type: 'controlled' as const,
      controlId: context.guests[legId]!.controlId,
      refusal,
    })),
    markLegGone: assign(({ context, event }) => ({
      legs: { ...context.legs, [event.type === 'agent.gone' ? 'agent' : 'customer']: 'gone' },
    })),
    markRang: assign(({ context }, { leg }: { leg: LegName }) => ({ rang: { ...context.rang, [leg]: true } })),
    markEarlyMedia: assign({ earlyMedia: true }),
    markBridged: assign({ bridged: true }),
    storeMediaAddress: assign((_, { local }: { local: LocalMedia }) => ({ local })),
    storeFunding: assign((_, { fundedForMs }: Funding) => ({ fundedForMs, fundingFailures: 0 })),
    countFundingFailure: assign(({ context }) => ({ fundingFailures: context.fundingFailures + 1 })),
    startTranscript: enqueueActions(({ enqueue, context }) => {
      enqueue.assign({ isTranscribing: true });
      enqueue(spawnChild('transcript', { id: 'transcript', input: { callId: context.callId } }));
    }),
    whisper: enqueueActions(({ enqueue }) => {
      enqueue.sendTo('media', { type: 'say', speech: 'whisper' });
      // An agent who has put the call on hold cannot hear it, and a late whisper is pointless.
      enqueue.raise({ type: 'whisper.overdue' }, { id: 'whisper', delay: 'speechBegin' });
    }),
    cancelWhisperTimer: cancel('whisper'),
    markRecording: assign((_, { isRecording }: { isRecording: boolean }) => ({ isRecording })),
    startControl: enqueueActions(({ enqueue, context }, { controlId, control: requested }: ControlParams) => {
      const control = withPast(context.talk, requested);
      const talk = talkAfter(context.talk, control);
      enqueue.assign({ talk });
      enqueue.sendTo('media', { type: 'control', controlId, control, talk });
      if (control.type === 'hold') {
        enqueue.assign({ pendingHolds: { ...context.pendingHolds, [controlId]: control.leg } });
      }
      if (control.type !== 'hold' && control.type !== 'resume') return;
      enqueue(sendTo(control.leg, { type: 'hold', isHeld: control.type === 'hold' }));
    }),
    undoControl: enqueueActions(({ enqueue, context }, control: TalkControl) => {
      const opposite = oppositeOf(control);
      // A later control has changed it again, or the leg is gone.
      const isGone = 'leg' in control && !isTalking(context.talk, control.leg);
      if (opposite === null || isGone || !isInEffect(context.talk, control)) return;
      enqueue.assign({ talk: talkAfter(context.talk, opposite) });
      if (opposite.type !== 'hold' && opposite.type !== 'resume') return;
      enqueue(sendTo(opposite.leg, { type: 'hold', isHeld: opposite.type === 'hold' }));
    }),
    refuseControl: emit((_, { controlId, refusal }: { controlId: string; refusal: ControlRefusal }) => ({
      type: 'controlled' as const,
      controlId,
      refusal,
    })),
    confirmControl: emit((_, { controlId }: { controlId: string }) => ({
      type: 'controlled' as const,
      controlId,
      refusal: null,
    })),
    forgetHold: assign(({ context }, { controlId }: { controlId: string }) => {
      const { [controlId]: _, ...pendingHolds } = context.pendingHolds;
      return { pendingHolds };
    }),
    keepPlaybacks: assign(({ context }, { control }: { control: TalkControl }) => {
      if (control.type === 'play') return { playbacks: [...context.playbacks, control.playbackId] };
      return control.type === 'play.stop' ? { playbacks: without(context.playbacks, control.playbackId) } : {};
    }),
    endPlaybacks: enqueueActions(({ enqueue, context }) => {
      for (const playbackId of context.playbacks) {
        enqueue.emit(movedAt(moveOfPlaybackEnd({ playbackId, end: 'stopped' })));
      }
      enqueue.assign({ playbacks: [] });
    }),
    forgetPlayback: assign(({ context }, { playbackId }: PlaybackParams) => ({
      playbacks: without(context.playbacks, playbackId),
    })),
    notePress: assign(({ context }, event: KeyPress) => ({ keyPresses: withPress(context.keyPresses, event) })),
    passPressOn: enqueueActions(({ enqueue, context: { keyPresses, talk } }, press: KeyPress) => {
      if (!isSilentPress(keyPresses, press)) return;
      const { leg, digit, durationMs } = press;
      enqueue.sendTo('media', { type: 'press', leg, digit, durationMs, talk });
    }),
    countDigit: assign(({ context }) => ({ digitsReceived: context.digitsReceived + 1 })),
    markTranscriptEnded: assign({ isTranscribing: false }),
    sendToTranscript: sendTo('transcript', (_, command: TranscriptCommand) => command),
    finishTranscript: enqueueActions(({ enqueue, context }) => {
      if (context.isTranscribing) enqueue(sendTo('transcript', { type: 'finish' }));
    }),
    stopTranscript: stopChild('transcript'),
    storeReport: assign((_, { report }: { report: MediaReport }) => ({ report })),
    countSettleFailure: assign(({ context }) => ({ settleFailures: context.settleFailures + 1 })),
    stopLegs: enqueueActions(({ enqueue, context }) => {
      for (const legId of Object.keys(context.guests)) enqueue(stopChild(legId));
      enqueue(stopChild('agent'));
      enqueue(stopChild('customer'));
    }),
  },
});

/** Not once the target is being hung up, or it would take its place and end the call. */
function hasTargetAnswered(context: CallContext): boolean {
  const { talk, guests } = context;
  return guests[talk.transfer?.target ?? '']?.state === 'talking' && !isTargetLeaving(context);
}

function isTargetLeaving({ talk: { transfer }, guests }: CallContext): boolean {
  return guests[transfer?.target ?? '']?.isLeaving ?? false;
}

function transferData({ target, place, mode, requestedBy }: Transfer) {
  return { leg_id: target, replaces: place, mode, requested_by: requestedBy };
}

/** Whether the leg is a third party, or a supervisor in `barge` mode. */
function isAudibleToAll({ guests, talk }: CallContext, legId: LegId): boolean {
  const guest = guests[legId];
  return guest?.state === 'talking' && (guest.role === 'party' || talk.guests[legId] === 'barge');
}

/** Delay until the hold is extended, before it is used up. A remainder too short for that is used up first. */
export function fundingCheckDelayMs(fundedForMs: number): number {
  const delayMs = fundedForMs > 2 * FUNDING_LEAD_MS ? fundedForMs - FUNDING_LEAD_MS : fundedForMs;
  return Math.min(delayMs, LONGEST_TIMER_MS);
}

function withoutHoldsOf(holds: CallContext['pendingHolds'], legs: readonly LegId[]): CallContext['pendingHolds'] {
  return Object.fromEntries(Object.entries(holds).filter(([, leg]) => !legs.includes(leg)));
}

function without(ids: readonly string[], id: string): readonly string[] {
  return ids.filter((other) => other !== id);
}

function movedAt(move: Partial<CallMove> & Pick<CallMove, 'event'>): CallEmitted {
  return { type: 'moved', move: { ...EMPTY_MOVE, state: 'bridged', ...move } };
}

function legInput(context: CallContext, leg: LegName): LegInput {
  return {
    callId: context.callId,
    leg,
    local: context.local?.[leg] ?? { host: '', rtpPort: 0 },
    ringTimeoutMs: leg === 'agent' ? context.agentRingTimeoutMs : context.customerRingTimeoutMs,
    clearTimeoutMs: LEG_CLEAR_TIMEOUT_MS,
  };
}
