import { assign, emit, enqueueActions, fromCallback, fromPromise, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { type CallSegment, isLegName, type LegId } from './events.ts';
import { notProvided } from './not-provided.ts';

/** Longest wait for the last utterances at the end of a talk on a busy machine. */
export const LAST_WORDS_PATIENCE_MS = 30_000;

/**
 * The transcript of a call, from the bridge on. Agent and customer each have an ear, which reports every utterance; a
 * third party has one from joining to leaving. The ears are `listening` during the talk and `finishing` until all have
 * reported their last utterance. If the ear of agent or customer fails, the transcript ends, because one side alone
 * could be taken for the whole conversation. If that of a third party fails, only that ear ends. `concluding` stores
 * how the transcript ended, and retries until it succeeds. The call never waits for it.
 */
export const transcriptMachine = setup({
  types: {} as {
    context: TranscriptContext;
    input: { callId: string };
    events: TranscriptEvent;
    emitted: TranscriptEmitted;
  },
  actors: {
    /** Transcribes one leg; reports `ear.*`. */
    ear: fromCallback<EarCommand, EarInput>(notProvided('ear')),
    /** Stores the outcome and the utterances that no event carried. Idempotent. */
    conclude: fromPromise<void, ConcludeInput>(notProvided('conclude')),
  },
  delays: {
    patience: LAST_WORDS_PATIENCE_MS,
    concludeRetry: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.failures, 7)),
  },
  guards: {
    allEnded: ({ context }) => Object.values(context.ears).every((state) => state === 'ended'),
    isThirdParty: (_, { leg }: { leg: LegId }) => !isLegName(leg),
    isNew: ({ context }, { leg }: { leg: LegId }) => context.ears[leg] === undefined,
  },
  actions: {
    emitSegment: emit((_, { segment }: { segment: CallSegment }) => ({ type: 'said' as const, segment })),
    emitLegFailure: emit((_, { leg, reason }: { leg: LegId; reason: string }) => ({
      type: 'leg.failed' as const,
      leg,
      reason,
    })),
    openEar: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      enqueue.assign({ ears: { ...context.ears, [leg]: 'open' } });
      enqueue(spawnChild('ear', { id: leg, input: { callId: context.callId, leg } }));
    }),
    closeEars: enqueueActions(({ enqueue, context }) => {
      for (const leg of Object.keys(context.ears)) enqueue(stopChild(leg));
    }),
    markLegEnded: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      enqueue.assign({ ears: { ...context.ears, [leg]: 'ended' } });
      enqueue(stopChild(leg));
    }),
    storeError: assign((_, { reason }: { reason: string }) => ({ error: reason })),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    finishEar: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      if (context.ears[leg] === 'open') enqueue(sendTo(leg, { type: 'finish' }));
    }),
    finishEars: enqueueActions(({ enqueue, context }) => {
      for (const [leg, state] of Object.entries(context.ears)) {
        if (state === 'open') enqueue(sendTo(leg, { type: 'finish' }));
      }
    }),
  },
}).createMachine({
  id: 'transcript',
  context: ({ input: { callId } }) => ({
    callId,
    ears: {},
    error: null,
    failures: 0,
  }),
  initial: 'hearing',
  states: {
    hearing: {
      entry: [
        { type: 'openEar', params: { leg: 'agent' } },
        { type: 'openEar', params: { leg: 'customer' } },
      ],
      exit: 'closeEars',
      always: { guard: 'allEnded', target: 'concluding' },
      on: {
        'ear.said': { actions: { type: 'emitSegment', params: ({ event }) => ({ segment: event.segment }) } },
        'ear.ended': { actions: { type: 'markLegEnded', params: ({ event }) => event } },
        'ear.failed': [
          {
            guard: { type: 'isThirdParty', params: ({ event }) => event },
            actions: [
              { type: 'emitLegFailure', params: ({ event }) => event },
              { type: 'markLegEnded', params: ({ event }) => event },
            ],
          },
          {
            target: 'concluding',
            actions: { type: 'storeError', params: ({ event }) => ({ reason: event.reason }) },
          },
        ],
        'leg.left': { actions: { type: 'finishEar', params: ({ event }) => event } },
        stopped: {
          target: 'concluding',
          actions: { type: 'storeError', params: ({ event }) => ({ reason: event.reason }) },
        },
      },
      initial: 'listening',
      states: {
        listening: {
          on: {
            'talk.over': 'finishing',
            'leg.joined': {
              guard: { type: 'isNew', params: ({ event }) => event },
              actions: { type: 'openEar', params: ({ event }) => event },
            },
          },
        },
        finishing: {
          entry: 'finishEars',
          after: {
            patience: {
              target: '#transcript.concluding',
              actions: { type: 'storeError', params: { reason: 'OVERLOADED' } },
            },
          },
        },
      },
    },
    concluding: {
      initial: 'storing',
      states: {
        storing: {
          invoke: {
            src: 'conclude',
            input: ({ context: { callId, error } }) => ({ callId, error }),
            onDone: '#transcript.concluded',
            onError: { target: 'waiting', actions: 'countFailure' },
          },
        },
        waiting: { after: { concludeRetry: 'storing' } },
      },
    },
    concluded: { type: 'final' },
  },
});

interface TranscriptContext {
  callId: string;
  /** By leg, including legs that have left. */
  ears: Readonly<Record<LegId, 'open' | 'ended'>>;
  /** An error code; null unless the transcript failed. */
  error: string | null;
  failures: number;
}

export type TranscriptEvent =
  | EarReport
  | { type: 'talk.over' }
  | { type: 'leg.joined'; leg: LegId }
  | { type: 'leg.left'; leg: LegId }
  /** Ends the transcript as failed. */
  | { type: 'stopped'; reason: string };

type TranscriptEmitted = { type: 'said'; segment: CallSegment } | { type: 'leg.failed'; leg: LegId; reason: string };

/** Events of an ear. None follows `ear.ended` or `ear.failed`. */
export type EarReport =
  | { type: 'ear.said'; segment: CallSegment }
  | { type: 'ear.ended'; leg: LegId }
  | { type: 'ear.failed'; leg: LegId; reason: string };

export type EarCommand = { type: 'finish' };

export interface EarInput {
  callId: string;
  leg: LegId;
}

export interface ConcludeInput {
  callId: string;
  error: string | null;
}
