import { assign, emit, enqueueActions, fromCallback, fromPromise, sendTo, setup } from 'xstate';
import type { CallSegment, LegName } from './events.ts';
import { notProvided } from './not-provided.ts';

/** What was said last may wait this long behind what was said before it, while the machine is busy. */
export const LAST_WORDS_PATIENCE_MS = 30_000;

/**
 * What both parties of a call say, from the bridge on. Each leg has an ear, which tells what it understood, utterance
 * by utterance. They are `listening` while the call is up and `finishing` once the talk is over, until both have told
 * everything. A fault of one ends it for both: one side of a conversation would be read as the whole. `concluding`
 * stores how it ended, and is repeated until it has happened. The call itself never waits for any of it to succeed.
 */
export const transcriptMachine = setup({
  types: {} as {
    context: TranscriptContext;
    input: { callId: string };
    events: TranscriptEvent;
    emitted: { type: 'said'; segment: CallSegment };
  },
  actors: {
    /** Listens to one leg; reports `ear.*`. */
    ear: fromCallback<EarCommand, EarInput>(notProvided('ear')),
    /** Stores what was not told by an event, and the outcome. Idempotent. */
    conclude: fromPromise<void, ConcludeInput>(notProvided('conclude')),
  },
  delays: {
    patience: LAST_WORDS_PATIENCE_MS,
    concludeRetry: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.failures, 7)),
  },
  guards: {
    bothEnded: ({ context }) => context.ended.agent && context.ended.customer,
  },
  actions: {
    emitSegment: emit((_, { segment }: { segment: CallSegment }) => ({ type: 'said' as const, segment })),
    markLegEnded: assign(({ context }, { leg }: { leg: LegName }) => ({ ended: { ...context.ended, [leg]: true } })),
    storeError: assign((_, { reason }: { reason: string }) => ({ error: reason })),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    finishEars: enqueueActions(({ enqueue, context }) => {
      if (!context.ended.agent) enqueue(sendTo('agent', { type: 'finish' }));
      if (!context.ended.customer) enqueue(sendTo('customer', { type: 'finish' }));
    }),
  },
}).createMachine({
  id: 'transcript',
  context: ({ input: { callId } }) => ({
    callId,
    ended: { agent: false, customer: false },
    error: null,
    failures: 0,
  }),
  initial: 'hearing',
  states: {
    hearing: {
      invoke: [
        {
          id: 'agent',
          src: 'ear',
          input: ({ context }) => ({ callId: context.callId, leg: 'agent' }),
          onError: { target: 'concluding', actions: { type: 'storeError', params: { reason: 'INTERNAL' } } },
        },
        {
          id: 'customer',
          src: 'ear',
          input: ({ context }) => ({ callId: context.callId, leg: 'customer' }),
          onError: { target: 'concluding', actions: { type: 'storeError', params: { reason: 'INTERNAL' } } },
        },
      ],
      always: { guard: 'bothEnded', target: 'concluding' },
      on: {
        'ear.said': { actions: { type: 'emitSegment', params: ({ event }) => ({ segment: event.segment }) } },
        'ear.ended': { actions: { type: 'markLegEnded', params: ({ event }) => ({ leg: event.leg }) } },
        'ear.failed': {
          target: 'concluding',
          actions: { type: 'storeError', params: ({ event }) => ({ reason: event.reason }) },
        },
        stopped: {
          target: 'concluding',
          actions: { type: 'storeError', params: ({ event }) => ({ reason: event.reason }) },
        },
      },
      initial: 'listening',
      states: {
        listening: { on: { 'talk.over': 'finishing' } },
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
  ended: Record<LegName, boolean>;
  /** A code; null unless it failed. */
  error: string | null;
  /** To conclude. */
  failures: number;
}

export type TranscriptEvent =
  | EarReport
  | { type: 'talk.over' }
  /** Nobody is to listen any more, for that reason. */
  | { type: 'stopped'; reason: string };

/** What an ear tells. Nothing follows `ear.ended` or `ear.failed`. */
export type EarReport =
  | { type: 'ear.said'; segment: CallSegment }
  | { type: 'ear.ended'; leg: LegName }
  | { type: 'ear.failed'; reason: string };

export type EarCommand = { type: 'finish' };

export interface EarInput {
  callId: string;
  leg: LegName;
}

export interface ConcludeInput {
  callId: string;
  error: string | null;
}
