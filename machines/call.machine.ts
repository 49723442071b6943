import {
  and,
  assign,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  not,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import type {
  CallContext,
  CallEmitted,
  CallEvent,
  CallInput,
  CallMove,
  Funding,
  LocalMedia,
  MediaCommand,
  MediaReport,
  SettleInput,
  TranscriptCommand,
} from './call-events.ts';
import { type CallOutcome, completed, outcomeOf, rejected } from './call-outcome.ts';
import type { LegName, RemoteMedia } from './events.ts';
import { type LegInput, legMachine } from './leg.machine.ts';
import { notProvided } from './not-provided.ts';

/** A leg that was asked to hang up and is not heard of for this long is given up. */
export const LEG_CLEAR_TIMEOUT_MS = 4_000;

/** How far ahead of the end of the paid talk the hold is made to grow. */
export const FUNDING_LEAD_MS = 15_000;

const MAX_FUNDING_FAILURES = 6;

/** What is said last is understood a moment later; the outcome, long decided, waits no longer than this to be told. */
export const LAST_WORDS_MS = 2_000;

/** A free trunk funds a talk for ever; a timer can wait for 2^31 - 1 ms at the most. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const NO_PARTICULARS = {
  leg: null,
  sipStatus: null,
  hangupCause: null,
  detail: null,
  recordingId: null,
  segment: null,
};

/**
 * One click-to-call. Its row is committed before it exists. `preparing` opens two media ports; without them the call
 * is rejected and nobody was disturbed. Then it is `live`: `ringingAgent` until the agent answers, `ringingCustomer`
 * while the agent hears ringback or the customer's early media, `bridged` while they talk and the hold on the wallet
 * is made to grow ahead of the talk. Whatever ends it decides the outcome once and leads to `clearing`, where both
 * legs are hung up and waited for. `finishing` closes the recording and takes the last measurements; a call that is
 * transcribed is `awaitingLastWords` for a moment; `settling` commits outcome, ledger entry and callback together, and
 * is repeated until it has happened. Every move that a user
 * may see is emitted as `moved`, in order; whoever keeps the log stamps the time.
 */
export const callMachine = setup({
  types: {} as { context: CallContext; input: CallInput; events: CallEvent; emitted: CallEmitted },
  actors: {
    /** Owns the media session: takes `MediaCommand`s, reports `media.*` and the edges of `MediaEvent`. */
    media: fromCallback<MediaCommand, { callId: string }>(notProvided('media')),
    leg: legMachine,
    /** Has both legs listened to from its start on. Never throws: a call goes on without a transcript. */
    transcript: fromCallback<TranscriptCommand, { callId: string }>(notProvided('transcript')),
    /** Grows the hold; answers how much longer the talk is paid for. */
    extendFunding: fromPromise<Funding, { callId: string }>(notProvided('extendFunding')),
    /** Commits the outcome. Idempotent; rejects while storage cannot be reached. */
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
    lastWords: LAST_WORDS_MS,
    settleRetry: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.settleFailures, 7)),
  },
  guards: {
    bothLegsGone: ({ context }) => context.legs.agent !== 'up' && context.legs.customer !== 'up',
    fundsRemain: (_, funding: Funding) => funding.fundedForMs > 0,
    fundingMayBeRetried: ({ context }) => context.fundingFailures < MAX_FUNDING_FAILURES,
    ringsFirst: ({ context }, { leg }: { leg: LegName }) => !context.rang[leg],
    bringsEarlyMedia: ({ event }) => event.type === 'customer.ringing' && event.earlyMedia !== null,
    hasEarlyMedia: ({ context }) => context.earlyMedia,
    recordingWanted: ({ context }) => context.record,
    transcriptWanted: ({ context }) => context.transcribe,
    isTranscribing: ({ context }) => context.isTranscribing,
  },
  actions: {
    move: emit((_, move: Partial<CallMove> & Pick<CallMove, 'event' | 'state'>) => ({
      type: 'moved' as const,
      move: { ...NO_PARTICULARS, ...move },
    })),
    announceClearing: emit({ type: 'clearing' }),
    toMedia: sendTo('media', (_, command: MediaCommand) => command),
    connectEarlyMedia: sendTo('media', ({ event }) => ({
      type: 'connect',
      leg: 'customer',
      media: (event as Extract<CallEvent, { earlyMedia: unknown }>).earlyMedia as RemoteMedia,
    })),
    decide: assign(({ context, event }) => ({ outcome: context.outcome ?? outcomeOf(event, context) })),
    end: assign((_, { outcome }: { outcome: CallOutcome }) => ({ outcome })),
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
    }),
    noteGone: assign(({ context, event }) => ({
      legs: { ...context.legs, [event.type === 'agent.gone' ? 'agent' : 'customer']: 'gone' },
    })),
    noteRang: assign(({ context }, { leg }: { leg: LegName }) => ({ rang: { ...context.rang, [leg]: true } })),
    noteEarlyMedia: assign({ earlyMedia: true }),
    noteBridged: assign({ bridged: true }),
    noteOpened: assign((_, { local }: { local: LocalMedia }) => ({ local })),
    noteFunding: assign((_, { fundedForMs }: Funding) => ({ fundedForMs, fundingFailures: 0 })),
    noteFundingFailure: assign(({ context }) => ({ fundingFailures: context.fundingFailures + 1 })),
    startTranscript: enqueueActions(({ enqueue, context }) => {
      enqueue.assign({ isTranscribing: true });
      enqueue(spawnChild('transcript', { id: 'transcript', input: { callId: context.callId } }));
    }),
    noteTranscriptOver: assign({ isTranscribing: false }),
    finishTranscript: enqueueActions(({ enqueue, context }) => {
      if (context.isTranscribing) enqueue(sendTo('transcript', { type: 'finish' }));
    }),
    stopTranscript: stopChild('transcript'),
    noteReport: assign((_, { report }: { report: MediaReport }) => ({ report })),
    noteSettleFailure: assign(({ context }) => ({ settleFailures: context.settleFailures + 1 })),
    stopLegs: enqueueActions(({ enqueue }) => {
      enqueue(stopChild('agent'));
      enqueue(stopChild('customer'));
    }),
  },
}).createMachine({
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
                  target: 'ringingCustomer',
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

/**
 * Checks early enough to grow the hold before it is used up; a remainder too short for that is talked out first, so
 * that the check after it decides.
 */
export function fundingCheckDelayMs(fundedForMs: number): number {
  const delayMs = fundedForMs > 2 * FUNDING_LEAD_MS ? fundedForMs - FUNDING_LEAD_MS : fundedForMs;
  return Math.min(delayMs, LONGEST_TIMER_MS);
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
