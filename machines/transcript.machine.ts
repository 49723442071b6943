import { assign, emit, enqueueActions, fromCallback, fromPromise, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { type CallSegment, isLegName, type LegId } from './events.ts';
import { notProvided } from './not-provided.ts';

/** Longest wait for the last utterances at the end of a talk on a busy machine. */
export const LAST_WORDS_PATIENCE_MS = 30_000;

/**
 * The transcript of a call, from the bridge on. Agent and customer each have a transcriber, which reports every
 * utterance; a third party has one from joining to leaving. The transcribers are `listening` during the talk and
 * `finishing` until all have reported their last utterance. If the transcriber of agent or customer fails, the
 * transcript ends, because one side alone could be taken for the whole conversation. If that of a third party fails,
 * only that transcriber ends. `concluding` stores how the transcript ended, and retries until it succeeds. The call
 * never waits for it.
 */
export const transcriptMachine = setup({
  types: {} as {
    context: TranscriptContext;
    input: { callId: string };
    events: TranscriptEvent;
    emitted: TranscriptEmitted;
  },
  actors: {
    /** Transcribes one leg; reports `transcriber.*`. */
    transcriber: fromCallback<TranscriberCommand, TranscriberInput>(notProvided('transcriber')),
    /** Stores the outcome and the utterances that no event carried. Idempotent. */
    conclude: fromPromise<void, ConcludeInput>(notProvided('conclude')),
  },
  delays: {
    patience: LAST_WORDS_PATIENCE_MS,
    concludeRetry: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.failures, 7)),
  },
  guards: {
    allEnded: ({ context }) => Object.values(context.transcribers).every((state) => state === 'ended'),
    isThirdParty: (_, { leg }: { leg: LegId }) => !isLegName(leg),
    isNew: ({ context }, { leg }: { leg: LegId }) => context.transcribers[leg] === undefined,
  },
  actions: {
    emitSegment: emit((_, { segment }: { segment: CallSegment }) => ({ type: 'said' as const, segment })),
    emitLegFailure: emit((_, { leg, reason }: { leg: LegId; reason: string }) => ({
      type: 'leg.failed' as const,
      leg,
      reason,
    })),
    openTranscriber: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      enqueue.assign({ transcribers: { ...context.transcribers, [leg]: 'open' } });
      enqueue(spawnChild('transcriber', { id: leg, input: { callId: context.callId, leg } }));
    }),
    closeTranscribers: enqueueActions(({ enqueue, context }) => {
      for (const leg of Object.keys(context.transcribers)) enqueue(stopChild(leg));
    }),
    markLegEnded: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      enqueue.assign({ transcribers: { ...context.transcribers, [leg]: 'ended' } });
      enqueue(stopChild(leg));
    }),
    storeError: assign((_, { reason }: { reason: string }) => ({ error: reason })),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    finishTranscriber: enqueueActions(({ enqueue, context }, { leg }: { leg: LegId }) => {
      if (context.transcribers[leg] === 'open') enqueue(sendTo(leg, { type: 'finish' }));
    }),
    finishTranscribers: enqueueActions(({ enqueue, context }) => {
      for (const [leg, state] of Object.entries(context.transcribers)) {
        if (state === 'open') enqueue(sendTo(leg, { type: 'finish' }));
      }
    }),
  },
}).createMachine({
  id: 'transcript',
  context: ({ input: { callId } }) => ({
    callId,
    transcribers: {},
    error: null,
    failures: 0,
  }),
  initial: 'transcribing',
  states: {
    transcribing: {
      entry: [
        { type: 'openTranscriber', params: { leg: 'agent' } },
        { type: 'openTranscriber', params: { leg: 'customer' } },
      ],
      exit: 'closeTranscribers',
      always: { guard: 'allEnded', target: 'concluding' },
      on: {
        'transcriber.segment': {
          actions: { type: 'emitSegment', params: ({ event }) => ({ segment: event.segment }) },
        },
        'transcriber.ended': { actions: { type: 'markLegEnded', params: ({ event }) => event } },
        'transcriber.failed': [
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
        'leg.left': { actions: { type: 'finishTranscriber', params: ({ event }) => event } },
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
              actions: { type: 'openTranscriber', params: ({ event }) => event },
            },
          },
        },
        finishing: {
          entry: 'finishTranscribers',
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
  transcribers: Readonly<Record<LegId, 'open' | 'ended'>>;
  /** An error code; null unless the transcript failed. */
  error: string | null;
  failures: number;
}

export type TranscriptEvent =
  | TranscriberReport
  | { type: 'talk.over' }
  | { type: 'leg.joined'; leg: LegId }
  | { type: 'leg.left'; leg: LegId }
  /** Ends the transcript as failed. */
  | { type: 'stopped'; reason: string };

type TranscriptEmitted = { type: 'said'; segment: CallSegment } | { type: 'leg.failed'; leg: LegId; reason: string };

/** Events of a transcriber. None follows `transcriber.ended` or `transcriber.failed`. */
export type TranscriberReport =
  | { type: 'transcriber.segment'; segment: CallSegment }
  | { type: 'transcriber.ended'; leg: LegId }
  | { type: 'transcriber.failed'; leg: LegId; reason: string };

export type TranscriberCommand = { type: 'finish' };

export interface TranscriberInput {
  callId: string;
  leg: LegId;
}

export interface ConcludeInput {
  callId: string;
  error: string | null;
}
