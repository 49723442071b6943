import { and, enqueueActions, not } from 'xstate';
import { moveOfAnswer } from './call-answer.ts';
import {
  type CallControl,
  legFields,
  legsOf,
  moveOfControl,
  moveOfPlaybackEnd,
  OPEN_TALK,
  type TalkControl,
} from './call-control.ts';
import type { Guest } from './call-events.ts';
import { completed, rejected } from './call-outcome.ts';
import { callSetup } from './call-setup.ts';

/** Stops the announcement. The agent hears nothing else at that time. */
const SILENCE = { type: 'sendToMedia', params: { type: 'path', path: 'idle' } } as const;

const REFUSE_CONTROL = {
  actions: {
    type: 'refuseControl',
    params: ({ event }: { event: { controlId: string } }) => ({
      controlId: event.controlId,
      refusal: 'CALL_NOT_LIVE' as const,
    }),
  },
} as const;

/**
 * One click-to-call. Its row is committed before the machine starts.
 *
 * - `preparing` opens two media ports. Without them the call is rejected before it dials.
 * - `live` is the call itself. `ringingAgent` lasts until the agent answers. In `announcing` an announcement plays to
 *   the agent. In `ringingCustomer` the agent hears ringback or the customer's early media. In `bridged` both talk, and
 *   the wallet hold is extended ahead of the talk. A whisper plays to the agent when the talk starts. Machine
 *   detection, if requested, listens to the customer and may end the call. Failed speech is skipped.
 * - `clearing` hangs up both legs and waits for their end. Every ending leads here; the first one decides the
 *   outcome.
 * - `finishing` closes the recording and takes the last measurements.
 * - `awaitingTranscript` waits up to two seconds for the end of a transcript.
 * - `settling` commits outcome, ledger entry and callback in one transaction, and retries until it succeeds.
 *
 * Every move that users can see is emitted as `moved`, in order. The journal adds the time.
 */
export const callMachine = callSetup.createMachine({
  id: 'call',
  context: ({ input }) => ({
    ...input,
    local: null,
    legs: { agent: 'none', customer: 'none' },
    rang: { agent: false, customer: false },
    earlyMedia: false,
    bridged: false,
    fundingFailures: 0,
    settleFailures: 0,
    isTranscribing: false,
    isRecording: false,
    talk: OPEN_TALK,
    pendingHolds: {},
    guests: {},
    digitsReceived: 0,
    keyPresses: {},
    playbacks: [],
    outcome: null,
    report: null,
  }),
  initial: 'active',
  on: {
    'control.requested': REFUSE_CONTROL,
    'control.done': REFUSE_CONTROL,
    'control.failed': REFUSE_CONTROL,
  },
  states: {
    active: {
      invoke: {
        id: 'media',
        src: 'media',
        input: ({ context }) => ({ callId: context.callId }),
        onError: { target: 'settling', actions: 'decideOutcome' },
      },
      on: {
        // Handled in every state: the command may have crossed the end of the talk, and the file exists.
        'recording.started': {
          actions: [
            { type: 'markRecording', params: { isRecording: true } },
            {
              type: 'emitMove',
              params: ({ event }) => ({ event: 'recording.started', state: 'bridged', recordingId: event.recordingId }),
            },
          ],
        },
        'recording.failed': {
          actions: [
            { type: 'markRecording', params: { isRecording: false } },
            {
              type: 'emitMove',
              params: ({ event }) => ({ event: 'recording.failed', state: 'bridged', detail: event.detail }),
            },
          ],
        },
        'transcript.started': {
          actions: { type: 'emitMove', params: { event: 'transcript.started', state: 'bridged' } },
        },
        'transcript.final': {
          actions: {
            type: 'emitMove',
            params: ({ event: { segment } }) => ({
              event: 'transcript.final',
              state: 'bridged',
              ...legFields(segment.leg),
              segment,
            }),
          },
        },
        'transcript.leg_failed': {
          actions: {
            type: 'emitMove',
            params: ({ event: { leg, reason } }) => ({
              event: 'transcript.leg_failed',
              state: 'bridged',
              detail: reason,
              ...legFields(leg),
            }),
          },
        },
        'transcript.failed': {
          actions: [
            'markTranscriptEnded',
            {
              type: 'emitMove',
              params: ({ event }) => ({ event: 'transcript.failed', state: 'bridged', detail: event.reason }),
            },
          ],
        },
        'transcript.ended': { actions: 'markTranscriptEnded' },
        'tap.overrun': {
          guard: 'isTranscribing',
          actions: { type: 'sendToTranscript', params: ({ event }) => ({ type: 'overrun', leg: event.leg }) },
        },
      },
      initial: 'preparing',
      states: {
        preparing: {
          after: {
            prepareTimeout: {
              target: '#call.settling',
              actions: { type: 'setOutcome', params: { outcome: rejected('no media port was opened in time') } },
            },
          },
          on: {
            'media.opened': {
              target: 'live',
              actions: { type: 'storeMediaAddress', params: ({ event }) => ({ local: event.local }) },
            },
            'media.unavailable': { target: '#call.settling', actions: 'decideOutcome' },
            'media.lost': { target: '#call.settling', actions: 'decideOutcome' },
            'hangup.requested': { target: '#call.settling', actions: 'decideOutcome' },
          },
        },
        live: {
          entry: [
            { type: 'emitMove', params: { event: 'call.initiated', state: 'initiated', leg: 'agent' } },
            'dialAgent',
          ],
          initial: 'ringingAgent',
          on: {
            'agent.media': {
              actions: {
                type: 'sendToMedia',
                params: ({ event }) => ({ type: 'connect', leg: 'agent', media: event.media }),
              },
            },
            'customer.media': {
              actions: {
                type: 'sendToMedia',
                params: ({ event }) => ({ type: 'connect', leg: 'customer', media: event.media }),
              },
            },
            'agent.gone': { target: 'clearing', actions: ['markLegGone', 'decideOutcome'] },
            'customer.gone': { target: 'clearing', actions: ['markLegGone', 'decideOutcome'] },
            'media.lost': { target: 'clearing', actions: 'decideOutcome' },
            'hangup.requested': { target: 'clearing', actions: 'decideOutcome' },
          },
          states: {
            ringingAgent: {
              on: {
                'agent.ringing': {
                  guard: { type: 'isFirstRinging', params: { leg: 'agent' } },
                  actions: [
                    { type: 'markRang', params: { leg: 'agent' } },
                    {
                      type: 'emitMove',
                      params: ({ event }) => ({
                        event: 'agent.ringing',
                        state: 'initiated',
                        leg: 'agent',
                        sipStatus: event.sipStatus,
                      }),
                    },
                  ],
                },
                'agent.answered': {
                  target: 'answered',
                  actions: [
                    {
                      type: 'sendToMedia',
                      params: ({ event }) => ({ type: 'connect', leg: 'agent', media: event.media }),
                    },
                    {
                      type: 'emitMove',
                      params: { event: 'agent.answered', state: 'initiated', leg: 'agent', sipStatus: 200 },
                    },
                  ],
                },
              },
            },
            answered: {
              always: [{ guard: 'wantsAnnouncement', target: 'announcing' }, { target: 'ringingCustomer' }],
            },
            announcing: {
              entry: { type: 'sendToMedia', params: { type: 'say', speech: 'announcement' } },
              initial: 'awaitingSpeech',
              on: {
                'speech.finished': {
                  guard: { type: 'isSpeech', params: ({ event }) => ({ speech: event.speech, of: 'announcement' }) },
                  target: 'ringingCustomer',
                  actions: {
                    type: 'emitMove',
                    params: { event: 'announcement.finished', state: 'initiated', leg: 'agent' },
                  },
                },
                'speech.failed': {
                  guard: { type: 'isSpeech', params: ({ event }) => ({ speech: event.speech, of: 'announcement' }) },
                  target: 'ringingCustomer',
                  actions: {
                    type: 'emitMove',
                    params: ({ event }) => announcementFailed(event.detail),
                  },
                },
              },
              states: {
                awaitingSpeech: {
                  after: {
                    speechBegin: {
                      target: '#call.active.live.ringingCustomer',
                      actions: [SILENCE, { type: 'emitMove', params: announcementFailed('it did not begin in time') }],
                    },
                  },
                  on: {
                    'speech.started': {
                      guard: {
                        type: 'isSpeech',
                        params: ({ event }) => ({ speech: event.speech, of: 'announcement' }),
                      },
                      target: 'speaking',
                      actions: {
                        type: 'emitMove',
                        params: { event: 'announcement.started', state: 'initiated', leg: 'agent' },
                      },
                    },
                  },
                },
                speaking: {
                  after: {
                    speechEnd: {
                      target: '#call.active.live.ringingCustomer',
                      actions: [SILENCE, { type: 'emitMove', params: announcementFailed('it did not end in time') }],
                    },
                  },
                },
              },
            },
            ringingCustomer: {
              entry: [
                { type: 'emitMove', params: { event: 'customer.dialing', state: 'initiated', leg: 'customer' } },
                'dialCustomer',
              ],
              on: {
                'customer.ringing': [
                  {
                    // A further 183 may move the early media to another port (RFC 3960 §3).
                    guard: and(['carriesEarlyMedia', 'hasEarlyMedia']),
                    actions: 'connectEarlyMedia',
                  },
                  {
                    guard: 'carriesEarlyMedia',
                    actions: [
                      'connectEarlyMedia',
                      { type: 'sendToMedia', params: { type: 'path', path: 'early-media' } },
                      'markEarlyMedia',
                      { type: 'markRang', params: { leg: 'customer' } },
                      {
                        type: 'emitMove',
                        params: ({ event }) => ({
                          event: 'customer.early_media',
                          state: 'initiated',
                          leg: 'customer',
                          sipStatus: event.sipStatus,
                        }),
                      },
                    ],
                  },
                  { guard: 'hasEarlyMedia' },
                  {
                    guard: { type: 'isFirstRinging', params: { leg: 'customer' } },
                    actions: [
                      { type: 'sendToMedia', params: { type: 'path', path: 'ringback' } },
                      { type: 'markRang', params: { leg: 'customer' } },
                      {
                        type: 'emitMove',
                        params: ({ event }) => ({
                          event: 'customer.ringing',
                          state: 'initiated',
                          leg: 'customer',
                          sipStatus: event.sipStatus,
                        }),
                      },
                    ],
                  },
                ],
                'customer.answered': {
                  target: 'bridged',
                  actions: {
                    type: 'sendToMedia',
                    params: ({ event }) => ({ type: 'connect', leg: 'customer', media: event.media }),
                  },
                },
              },
            },
            bridged: {
              entry: [
                'markBridged',
                { type: 'sendToMedia', params: { type: 'path', path: 'bridged' } },
                {
                  type: 'emitMove',
                  params: { event: 'call.bridged', state: 'bridged', leg: 'customer', sipStatus: 200 },
                },
                enqueueActions(({ enqueue, check }) => {
                  if (check('wantsRecording')) enqueue({ type: 'sendToMedia', params: { type: 'record' } });
                  if (check('wantsMachineDetection')) {
                    enqueue({ type: 'sendToMedia', params: { type: 'detect-machine' } });
                  }
                  if (check('wantsTranscript')) enqueue('startTranscript');
                  if (check('wantsWhisper')) enqueue('whisper');
                }),
              ],
              after: {
                maxDuration: {
                  target: '#call.active.clearing',
                  actions: { type: 'setOutcome', params: { outcome: completed('MAX_DURATION') } },
                },
              },
              on: {
                'machine.detected': [
                  {
                    guard: { type: 'endsCall', params: ({ event }) => event },
                    target: '#call.active.clearing',
                    actions: [{ type: 'emitMove', params: ({ event }) => moveOfAnswer(event) }, 'decideOutcome'],
                  },
                  { actions: { type: 'emitMove', params: ({ event }) => moveOfAnswer(event) } },
                ],
                'rtp.timeout': [
                  {
                    guard: { type: 'hasGuest', params: ({ event }) => ({ legId: event.leg }) },
                    actions: {
                      type: 'hangUpGuest',
                      params: ({ event }) => ({ legId: event.leg, cause: 'MEDIA_TIMEOUT' }),
                    },
                  },
                  {
                    // As when it hangs up: the other party waits for the target of the transfer.
                    guard: { type: 'isLeaving', params: ({ event }) => ({ legId: event.leg }) },
                    actions: {
                      type: 'hangUpOwnLeg',
                      params: ({ event }) => ({ legId: event.leg, cause: 'MEDIA_TIMEOUT' }),
                    },
                  },
                  {
                    // A leg that has left may have been silent before.
                    guard: { type: 'isTalkingOwnLeg', params: ({ event }) => ({ legId: event.leg }) },
                    target: '#call.active.clearing',
                    actions: 'decideOutcome',
                  },
                ],
                'guest.opened': {
                  guard: { type: 'hasGuest', params: ({ event }) => event },
                  actions: [
                    {
                      type: 'emitMove',
                      params: ({ event: { legId }, context }) => ({
                        event: 'leg.dialing',
                        state: 'bridged',
                        ...legFields(legId, guestFields(context.guests[legId])),
                      }),
                    },
                    { type: 'dialGuest', params: ({ event }) => event },
                  ],
                },
                'guest.unavailable': [
                  {
                    // The leg that the target was to replace has hung up.
                    guard: { type: 'endsTalk', params: ({ event }) => event },
                    target: '#call.active.clearing',
                    actions: [
                      { type: 'refuseGuest', params: ({ event }) => event },
                      { type: 'forgetGuest', params: ({ event }) => event },
                      { type: 'setOutcome', params: { outcome: completed('SWITCH_CONGESTION') } },
                    ],
                  },
                  {
                    guard: { type: 'hasGuest', params: ({ event }) => event },
                    actions: [
                      { type: 'forgetTransfer', params: ({ event }) => event },
                      { type: 'refuseGuest', params: ({ event }) => event },
                      { type: 'forgetGuest', params: ({ event }) => event },
                    ],
                  },
                ],
                'guest.ringing': {
                  guard: { type: 'isFirstRingingOfGuest', params: ({ event }) => event },
                  actions: [
                    { type: 'markGuestRinging', params: ({ event }) => event },
                    {
                      type: 'emitMove',
                      params: ({ event: { legId, sipStatus } }) => ({
                        event: 'leg.ringing',
                        state: 'bridged',
                        sipStatus,
                        ...legFields(legId),
                      }),
                    },
                  ],
                },
                'guest.answered': {
                  actions: [
                    { type: 'letGuestTalk', params: ({ event }) => event },
                    { type: 'emitGuestJoined', params: ({ event }) => event },
                    'settleTransfer',
                  ],
                },
                'guest.connected': {
                  guard: { type: 'hasGuest', params: ({ event }) => event },
                  actions: [{ type: 'markGuestConnected', params: ({ event }) => event }, 'settleTransfer'],
                },
                'guest.unconnected': {
                  guard: { type: 'hasGuest', params: ({ event }) => event },
                  actions: {
                    type: 'hangUpGuest',
                    params: ({ event }) => ({ legId: event.legId, cause: 'INCOMPATIBLE_DESTINATION' }),
                  },
                },
                'guest.media': {
                  actions: {
                    type: 'sendToMedia',
                    params: ({ event }) => ({ type: 'connect', leg: event.legId, media: event.media }),
                  },
                },
                'guest.gone': [
                  {
                    // The remaining party has no one to talk to.
                    guard: { type: 'endsTalk', params: ({ event }) => event },
                    target: '#call.active.clearing',
                    actions: [
                      { type: 'emitGuestGone', params: ({ event }) => event },
                      { type: 'endTransfer', params: ({ event }) => event },
                      { type: 'endByGuest', params: ({ event }) => event },
                      { type: 'removeGuest', params: ({ event }) => event },
                    ],
                  },
                  {
                    guard: { type: 'isTarget', params: ({ event }) => event },
                    actions: [
                      { type: 'emitGuestGone', params: ({ event }) => event },
                      { type: 'endTransfer', params: ({ event }) => event },
                      { type: 'removeGuest', params: ({ event }) => event },
                    ],
                  },
                  {
                    actions: [
                      { type: 'emitGuestGone', params: ({ event }) => event },
                      { type: 'removeGuest', params: ({ event }) => event },
                      'settleTransfer',
                    ],
                  },
                ],
                'agent.gone': [
                  {
                    guard: { type: 'hasLeft', params: { leg: 'agent' } },
                    actions: [
                      'markLegGone',
                      { type: 'releaseOwnLeg', params: ({ event }) => ({ leg: 'agent', ending: event.ending }) },
                    ],
                  },
                  {
                    guard: { type: 'isLeaving', params: { legId: 'agent' } },
                    actions: [
                      'markLegGone',
                      { type: 'releaseOwnLeg', params: ({ event }) => ({ leg: 'agent', ending: event.ending }) },
                      { type: 'markLeft', params: { leg: 'agent' } },
                      'settleTransfer',
                    ],
                  },
                  { target: '#call.active.clearing', actions: ['markLegGone', 'decideOutcome'] },
                ],
                'customer.gone': [
                  {
                    guard: { type: 'hasLeft', params: { leg: 'customer' } },
                    actions: [
                      'markLegGone',
                      { type: 'releaseOwnLeg', params: ({ event }) => ({ leg: 'customer', ending: event.ending }) },
                    ],
                  },
                  {
                    guard: { type: 'isLeaving', params: { legId: 'customer' } },
                    actions: [
                      'markLegGone',
                      { type: 'releaseOwnLeg', params: ({ event }) => ({ leg: 'customer', ending: event.ending }) },
                      { type: 'markLeft', params: { leg: 'customer' } },
                      'settleTransfer',
                    ],
                  },
                  { target: '#call.active.clearing', actions: ['markLegGone', 'decideOutcome'] },
                ],
                'transfer.due': { actions: 'completeTransfer' },
                'dtmf.pressed': [
                  {
                    guard: { type: 'isRepeatedPress', params: ({ event }) => event },
                    actions: { type: 'notePress', params: ({ event }) => event },
                  },
                  {
                    guard: 'mayTellDigit',
                    actions: [
                      'countDigit',
                      { type: 'passPressOn', params: ({ event }) => event },
                      { type: 'notePress', params: ({ event }) => event },
                      {
                        type: 'emitMove',
                        params: ({ event }) => ({
                          event: 'dtmf.received',
                          state: 'bridged',
                          ...legFields(event.leg, { digit: event.digit }),
                        }),
                      },
                    ],
                  },
                  { actions: { type: 'passPressOn', params: ({ event }) => event } },
                ],
                'control.requested': [
                  {
                    guard: { type: 'isForMissingLeg', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'LEG_NOT_FOUND' }),
                    },
                  },
                  {
                    guard: { type: 'isForMissingPlayback', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'PLAYBACK_NOT_FOUND' }),
                    },
                  },
                  {
                    guard: { type: 'isAddingTooMany', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'TOO_MANY_LEGS' }),
                    },
                  },
                  {
                    guard: { type: 'isSecondTransfer', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'TRANSFER_IN_PROGRESS' }),
                    },
                  },
                  {
                    guard: { type: 'isForMissingTransfer', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'TRANSFER_NOT_FOUND' }),
                    },
                  },
                  {
                    guard: { type: 'isTooEarly', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'TRANSFER_NOT_ANSWERED' }),
                    },
                  },
                  {
                    guard: {
                      type: 'isControlOf',
                      params: ({ event }) => ({ control: event.control, type: 'leg.add' }),
                    },
                    actions: { type: 'addGuest', params: ({ event }) => event },
                  },
                  {
                    guard: {
                      type: 'isControlOf',
                      params: ({ event }) => ({ control: event.control, type: 'transfer' }),
                    },
                    actions: { type: 'addGuest', params: ({ event }) => event },
                  },
                  {
                    guard: {
                      type: 'isControlOf',
                      params: ({ event }) => ({ control: event.control, type: 'transfer.complete' }),
                    },
                    actions: ['completeTransfer', { type: 'confirmControl', params: ({ event }) => event }],
                  },
                  {
                    guard: {
                      type: 'isControlOf',
                      params: ({ event }) => ({ control: event.control, type: 'transfer.cancel' }),
                    },
                    actions: {
                      type: 'hangUpGuest',
                      params: ({ event: { controlId }, context }) => ({
                        legId: context.talk.transfer?.target ?? '',
                        cause: 'NORMAL_CLEARING',
                        controlId,
                      }),
                    },
                  },
                  {
                    guard: {
                      type: 'isControlOf',
                      params: ({ event }) => ({ control: event.control, type: 'leg.drop' }),
                    },
                    actions: {
                      type: 'hangUpGuest',
                      params: ({ event: { control, controlId } }) => ({
                        legId: legsOf(control)[0]!,
                        cause: 'NORMAL_CLEARING',
                        controlId,
                      }),
                    },
                  },
                  {
                    guard: { type: 'needsRecording', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'RECORDING_UNAVAILABLE' }),
                    },
                  },
                  {
                    guard: { type: 'isControlInEffect', params: ({ event }) => asTalkControl(event) },
                    actions: { type: 'confirmControl', params: ({ event }) => event },
                  },
                  { actions: { type: 'startControl', params: ({ event }) => asTalkControl(event) } },
                ],
                'control.done': [
                  {
                    guard: { type: 'hasLostItsLegs', params: ({ event }) => event },
                    actions: {
                      type: 'refuseControl',
                      params: ({ event }) => ({ controlId: event.controlId, refusal: 'LEG_NOT_FOUND' }),
                    },
                  },
                  {
                    guard: { type: 'isOverriddenHold', params: ({ event }) => event },
                    actions: { type: 'confirmControl', params: ({ event }) => event },
                  },
                  {
                    actions: [
                      { type: 'forgetHold', params: ({ event }) => event },
                      { type: 'keepPlaybacks', params: ({ event }) => event },
                      { type: 'transcribeSupervisor', params: ({ event }) => event },
                      { type: 'emitMove', params: ({ event }) => moveOfControl(event.control) },
                      { type: 'confirmControl', params: ({ event }) => event },
                    ],
                  },
                ],
                'control.failed': {
                  actions: [
                    { type: 'forgetHold', params: ({ event }) => event },
                    { type: 'undoControl', params: ({ event }) => event.control },
                    { type: 'refuseControl', params: ({ event }) => event },
                  ],
                },
                'playback.ended': {
                  guard: { type: 'isPlaying', params: ({ event }) => event },
                  actions: [
                    { type: 'forgetPlayback', params: ({ event }) => event },
                    { type: 'emitMove', params: ({ event }) => moveOfPlaybackEnd(event) },
                  ],
                },
                'speech.started': {
                  guard: { type: 'isSpeech', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: [
                    'cancelWhisperTimer',
                    { type: 'emitMove', params: { event: 'whisper.started', state: 'bridged', leg: 'agent' } },
                  ],
                },
                'speech.finished': {
                  guard: { type: 'isSpeech', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: { type: 'emitMove', params: { event: 'whisper.finished', state: 'bridged', leg: 'agent' } },
                },
                'speech.failed': {
                  guard: { type: 'isSpeech', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: [
                    'cancelWhisperTimer',
                    { type: 'emitMove', params: ({ event }) => whisperFailed(event.detail) },
                  ],
                },
                'whisper.overdue': {
                  actions: [
                    { type: 'sendToMedia', params: { type: 'stop-saying' } },
                    { type: 'emitMove', params: whisperFailed('it did not begin in time') },
                  ],
                },
              },
              initial: 'funded',
              states: {
                funded: { after: { fundingCheck: 'extending' }, on: { 'legs.changed': 'extending' } },
                extending: {
                  on: { 'legs.changed': { target: 'extending', reenter: true } },
                  // Without a timeout, an unresponsive storage would leave the talk unpaid.
                  after: {
                    fundingTimeout: [
                      {
                        guard: 'canRetryFunding',
                        target: 'extending',
                        reenter: true,
                        actions: 'countFundingFailure',
                      },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'setOutcome', params: { outcome: completed('NORMAL_TEMPORARY_FAILURE') } },
                      },
                    ],
                  },
                  invoke: {
                    src: 'extendFunding',
                    input: ({ context }) => ({ callId: context.callId }),
                    onDone: [
                      {
                        guard: { type: 'fundsRemain', params: ({ event }) => event.output },
                        target: 'funded',
                        actions: { type: 'storeFunding', params: ({ event }) => event.output },
                      },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'setOutcome', params: { outcome: completed('INSUFFICIENT_FUNDS') } },
                      },
                    ],
                    onError: [
                      { guard: 'canRetryFunding', target: 'retryingFunding', actions: 'countFundingFailure' },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'setOutcome', params: { outcome: completed('NORMAL_TEMPORARY_FAILURE') } },
                      },
                    ],
                  },
                },
                retryingFunding: { after: { fundingRetry: 'extending' } },
              },
            },
          },
        },
        clearing: {
          entry: [
            'announceClearing',
            'endPlaybacks',
            'abandonTransfer',
            'hangUpLegs',
            { type: 'sendToMedia', params: { type: 'path', path: 'idle' } },
            'finishTranscript',
          ],
          always: { guard: 'allLegsGone', target: 'finishing' },
          after: { clearTimeout: 'finishing' },
          on: {
            'agent.gone': { actions: 'markLegGone' },
            'customer.gone': { actions: 'markLegGone' },
            'guest.gone': {
              actions: [
                { type: 'emitGuestGone', params: ({ event }) => event },
                { type: 'forgetGuest', params: ({ event }) => event },
              ],
            },
          },
        },
        finishing: {
          entry: { type: 'sendToMedia', params: { type: 'finish' } },
          after: { finishTimeout: '#call.settling' },
          on: {
            'media.finished': {
              target: 'awaitingTranscript',
              actions: { type: 'storeReport', params: ({ event }) => ({ report: event.report }) },
            },
            'media.lost': 'awaitingTranscript',
          },
        },
        awaitingTranscript: {
          always: { guard: not('isTranscribing'), target: '#call.settling' },
          after: { transcriptTimeout: '#call.settling' },
        },
      },
    },
    settling: {
      entry: ['stopLegs', 'stopTranscript'],
      initial: 'committing',
      states: {
        committing: {
          invoke: {
            src: 'settle',
            input: ({ context }) => ({
              callId: context.callId,
              outcome: context.outcome ?? rejected('the call ended without a decided outcome'),
              report: context.report,
            }),
            onDone: '#call.settled',
            onError: { target: 'waiting', actions: 'countSettleFailure' },
          },
        },
        waiting: { after: { settleRetry: 'committing' } },
      },
    },
    settled: { type: 'final' },
  },
});

/** Narrows the type. Earlier transitions handle the other controls. */
function asTalkControl<Event extends { control: CallControl }>(event: Event): Event & { control: TalkControl } {
  return event as Event & { control: TalkControl };
}

function guestFields(guest: Guest | undefined) {
  return guest ? { role: guest.role, ...(guest.mode !== null && { mode: guest.mode }) } : null;
}

function announcementFailed(detail: string) {
  return { event: 'announcement.failed', state: 'initiated', leg: 'agent', detail } as const;
}

function whisperFailed(detail: string) {
  return { event: 'whisper.failed', state: 'bridged', leg: 'agent', detail } as const;
}
