import { and, enqueueActions, not, sendTo } from 'xstate';
import { completed, rejected } from './call-outcome.ts';
import { callSetup } from './call-setup.ts';

/** Ends what is said to the agent, who hears nothing else at that time. */
const SILENCE = { type: 'toMedia', params: { type: 'path', path: 'idle' } } as const;

/**
 * One click-to-call. Its row is committed before it exists. `preparing` opens two media ports; without them the call
 * is rejected and nobody was disturbed. Then it is `live`: `ringingAgent` until the agent answers, `announcing` while the
 * agent is told who is going to be called, if there is something to tell, `ringingCustomer` while the agent hears
 * ringback or the customer's early media, `bridged` while they talk and the hold on the wallet is made to grow ahead of
 * the talk; a whisper tells the agent alone something as they begin. What cannot be said is left out, and the call goes
 * on. Whatever ends it decides the outcome once and leads to `clearing`, where both
 * legs are hung up and waited for. `finishing` closes the recording and takes the last measurements; a call that is
 * transcribed is `awaitingLastWords` for a moment; `settling` commits outcome, ledger entry and callback together, and
 * is repeated until it has happened. Every move that a user
 * may see is emitted as `moved`, in order; whoever keeps the log stamps the time.
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
    outcome: null,
    report: null,
  }),
  initial: 'active',
  states: {
    active: {
      invoke: {
        id: 'media',
        src: 'media',
        input: ({ context }) => ({ callId: context.callId }),
        onError: { target: 'settling', actions: 'decide' },
      },
      on: {
        // Also while clearing: the command may have crossed the end of the talk, and there is a file now.
        'recording.started': {
          actions: {
            type: 'move',
            params: ({ event }) => ({ event: 'recording.started', state: 'bridged', recordingId: event.recordingId }),
          },
        },
        'transcript.started': { actions: { type: 'move', params: { event: 'transcript.started', state: 'bridged' } } },
        'transcript.final': {
          actions: {
            type: 'move',
            params: ({ event: { segment } }) => ({
              event: 'transcript.final',
              state: 'bridged',
              leg: segment.leg,
              segment,
            }),
          },
        },
        'transcript.failed': {
          actions: [
            'noteTranscriptOver',
            {
              type: 'move',
              params: ({ event }) => ({ event: 'transcript.failed', state: 'bridged', detail: event.reason }),
            },
          ],
        },
        'transcript.ended': { actions: 'noteTranscriptOver' },
        'tap.overrun': { guard: 'isTranscribing', actions: sendTo('transcript', { type: 'overrun' }) },
      },
      initial: 'preparing',
      states: {
        preparing: {
          after: {
            prepareTimeout: {
              target: '#call.settling',
              actions: { type: 'end', params: { outcome: rejected('no media port was opened in time') } },
            },
          },
          on: {
            'media.opened': {
              target: 'live',
              actions: { type: 'noteOpened', params: ({ event }) => ({ local: event.local }) },
            },
            'media.unavailable': { target: '#call.settling', actions: 'decide' },
            'media.lost': { target: '#call.settling', actions: 'decide' },
            'hangup.requested': { target: '#call.settling', actions: 'decide' },
          },
        },
        live: {
          entry: [{ type: 'move', params: { event: 'call.initiated', state: 'initiated', leg: 'agent' } }, 'dialAgent'],
          initial: 'ringingAgent',
          on: {
            'agent.media': {
              actions: {
                type: 'toMedia',
                params: ({ event }) => ({ type: 'connect', leg: 'agent', media: event.media }),
              },
            },
            'customer.media': {
              actions: {
                type: 'toMedia',
                params: ({ event }) => ({ type: 'connect', leg: 'customer', media: event.media }),
              },
            },
            'agent.gone': { target: 'clearing', actions: ['noteGone', 'decide'] },
            'customer.gone': { target: 'clearing', actions: ['noteGone', 'decide'] },
            'media.lost': { target: 'clearing', actions: 'decide' },
            'hangup.requested': { target: 'clearing', actions: 'decide' },
          },
          states: {
            ringingAgent: {
              on: {
                'agent.ringing': {
                  guard: { type: 'ringsFirst', params: { leg: 'agent' } },
                  actions: [
                    { type: 'noteRang', params: { leg: 'agent' } },
                    {
                      type: 'move',
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
                      type: 'toMedia',
                      params: ({ event }) => ({ type: 'connect', leg: 'agent', media: event.media }),
                    },
                    {
                      type: 'move',
                      params: { event: 'agent.answered', state: 'initiated', leg: 'agent', sipStatus: 200 },
                    },
                  ],
                },
              },
            },
            answered: {
              always: [{ guard: 'announcementWanted', target: 'announcing' }, { target: 'ringingCustomer' }],
            },
            announcing: {
              entry: { type: 'toMedia', params: { type: 'say', speech: 'announcement' } },
              initial: 'awaitingSpeech',
              on: {
                'speech.finished': {
                  guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'announcement' }) },
                  target: 'ringingCustomer',
                  actions: {
                    type: 'move',
                    params: { event: 'announcement.finished', state: 'initiated', leg: 'agent' },
                  },
                },
                'speech.failed': {
                  guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'announcement' }) },
                  target: 'ringingCustomer',
                  actions: {
                    type: 'move',
                    params: ({ event }) => notAnnounced(event.detail),
                  },
                },
              },
              states: {
                awaitingSpeech: {
                  after: {
                    speechBegin: {
                      target: '#call.active.live.ringingCustomer',
                      actions: [SILENCE, { type: 'move', params: notAnnounced('it did not begin in time') }],
                    },
                  },
                  on: {
                    'speech.started': {
                      guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'announcement' }) },
                      target: 'speaking',
                      actions: {
                        type: 'move',
                        params: { event: 'announcement.started', state: 'initiated', leg: 'agent' },
                      },
                    },
                  },
                },
                speaking: {
                  after: {
                    speechEnd: {
                      target: '#call.active.live.ringingCustomer',
                      actions: [SILENCE, { type: 'move', params: notAnnounced('it did not end in time') }],
                    },
                  },
                },
              },
            },
            ringingCustomer: {
              entry: [
                { type: 'move', params: { event: 'customer.dialing', state: 'initiated', leg: 'customer' } },
                'dialCustomer',
              ],
              on: {
                'customer.ringing': [
                  {
                    // A further 183 may move the early media to another port (RFC 3960 §3).
                    guard: and(['bringsEarlyMedia', 'hasEarlyMedia']),
                    actions: 'connectEarlyMedia',
                  },
                  {
                    guard: 'bringsEarlyMedia',
                    actions: [
                      'connectEarlyMedia',
                      { type: 'toMedia', params: { type: 'path', path: 'early-media' } },
                      'noteEarlyMedia',
                      { type: 'noteRang', params: { leg: 'customer' } },
                      {
                        type: 'move',
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
                    guard: { type: 'ringsFirst', params: { leg: 'customer' } },
                    actions: [
                      { type: 'toMedia', params: { type: 'path', path: 'ringback' } },
                      { type: 'noteRang', params: { leg: 'customer' } },
                      {
                        type: 'move',
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
                    type: 'toMedia',
                    params: ({ event }) => ({ type: 'connect', leg: 'customer', media: event.media }),
                  },
                },
              },
            },
            bridged: {
              entry: [
                'noteBridged',
                { type: 'toMedia', params: { type: 'path', path: 'bridged' } },
                {
                  type: 'move',
                  params: { event: 'call.bridged', state: 'bridged', leg: 'customer', sipStatus: 200 },
                },
                enqueueActions(({ enqueue, check }) => {
                  if (check('recordingWanted')) enqueue({ type: 'toMedia', params: { type: 'record' } });
                  if (check('transcriptWanted')) enqueue('startTranscript');
                  if (check('whisperWanted')) enqueue('whisper');
                }),
              ],
              after: {
                maxDuration: {
                  target: '#call.active.clearing',
                  actions: { type: 'end', params: { outcome: completed('MAX_DURATION') } },
                },
              },
              on: {
                'rtp.timeout': { target: '#call.active.clearing', actions: 'decide' },
                'recording.failed': {
                  actions: {
                    type: 'move',
                    params: ({ event }) => ({ event: 'recording.failed', state: 'bridged', detail: event.detail }),
                  },
                },
                'speech.started': {
                  guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: [
                    'expectWhisperNoMore',
                    { type: 'move', params: { event: 'whisper.started', state: 'bridged', leg: 'agent' } },
                  ],
                },
                'speech.finished': {
                  guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: { type: 'move', params: { event: 'whisper.finished', state: 'bridged', leg: 'agent' } },
                },
                'speech.failed': {
                  guard: { type: 'tellsOf', params: ({ event }) => ({ speech: event.speech, of: 'whisper' }) },
                  actions: ['expectWhisperNoMore', { type: 'move', params: ({ event }) => notWhispered(event.detail) }],
                },
                'whisper.overdue': {
                  actions: [
                    // Ends the whisper and nothing else.
                    { type: 'toMedia', params: { type: 'path', path: 'bridged' } },
                    { type: 'move', params: notWhispered('it did not begin in time') },
                  ],
                },
              },
              initial: 'funded',
              states: {
                funded: { after: { fundingCheck: 'extending' } },
                extending: {
                  // A storage that does not answer at all would let them talk on unpaid.
                  after: {
                    fundingTimeout: [
                      {
                        guard: 'fundingMayBeRetried',
                        target: 'extending',
                        reenter: true,
                        actions: 'noteFundingFailure',
                      },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'end', params: { outcome: completed('NORMAL_TEMPORARY_FAILURE') } },
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
                        actions: { type: 'noteFunding', params: ({ event }) => event.output },
                      },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'end', params: { outcome: completed('INSUFFICIENT_FUNDS') } },
                      },
                    ],
                    onError: [
                      { guard: 'fundingMayBeRetried', target: 'retryingFunding', actions: 'noteFundingFailure' },
                      {
                        target: '#call.active.clearing',
                        actions: { type: 'end', params: { outcome: completed('NORMAL_TEMPORARY_FAILURE') } },
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
            'hangUpLegs',
            { type: 'toMedia', params: { type: 'path', path: 'idle' } },
            'finishTranscript',
          ],
          always: { guard: 'bothLegsGone', target: 'finishing' },
          after: { clearTimeout: 'finishing' },
          on: {
            'agent.gone': { actions: 'noteGone' },
            'customer.gone': { actions: 'noteGone' },
          },
        },
        finishing: {
          entry: { type: 'toMedia', params: { type: 'finish' } },
          after: { finishTimeout: '#call.settling' },
          on: {
            'media.finished': {
              target: 'awaitingLastWords',
              actions: { type: 'noteReport', params: ({ event }) => ({ report: event.report }) },
            },
            'media.lost': 'awaitingLastWords',
          },
        },
        awaitingLastWords: {
          always: { guard: not('isTranscribing'), target: '#call.settling' },
          after: { lastWords: '#call.settling' },
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
            onError: { target: 'waiting', actions: 'noteSettleFailure' },
          },
        },
        waiting: { after: { settleRetry: 'committing' } },
      },
    },
    settled: { type: 'final' },
  },
});

function notAnnounced(detail: string) {
  return { event: 'announcement.failed', state: 'initiated', leg: 'agent', detail } as const;
}

function notWhispered(detail: string) {
  return { event: 'whisper.failed', state: 'bridged', leg: 'agent', detail } as const;
}
