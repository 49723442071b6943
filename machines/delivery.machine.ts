import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * One callback or webhook on its way to its receiver.
 *
 * A delivery is born `pending` and becomes due at once, or, read back from its row, when that says. It is then
 * `attempting`: one POST. A 2xx makes it `delivered`. A 410 makes it `disabled`: the receiver wants no more. Anything
 * else sends it to `waiting` until the next step of the schedule, or later when the receiver asked for that with
 * Retry-After; the eighth failure is its last and it has `failed`. `delivery.due` cuts a wait short: the queue or a
 * person says now.
 *
 * There is no clock in here. Every answer of the port carries the time it came and a random number for the jitter,
 * and the next deadline is an absolute time in context, so that a restart resumes the wait where it was.
 */
export const deliveryMachine = setup({
  types: {
    context: {} as DeliveryContext,
    input: {} as DeliveryInput,
    events: {} as DeliveryEvent,
    output: {} as DeliveryOutput,
  },
  actors: {
    /** One POST of the stored body. Resolves whatever the receiver does; rejects only when we could not even try. */
    postDelivery: fromPromise<AttemptResult, PostDeliveryInput>(notProvided('postDelivery')),
  },
  delays: {
    untilNextAttempt: ({ context }) => Math.max(0, (context.nextAttemptAtMs ?? context.nowMs) - context.nowMs),
  },
}).createMachine({
  id: 'delivery',
  context: ({ input }) => ({
    deliveryId: input.deliveryId,
    attempts: input.attempts,
    nextAttemptAtMs: input.nextAttemptAtMs,
    nowMs: input.nowMs,
    lastHttpStatus: input.lastHttpStatus,
    lastError: input.lastError,
  }),
  initial: 'pending',
  states: {
    pending: {
      on: { 'delivery.due': 'attempting' },
      after: { untilNextAttempt: 'attempting' },
    },
    attempting: {
      invoke: {
        src: 'postDelivery',
        input: ({ context }) => ({ deliveryId: context.deliveryId, attempt: context.attempts + 1 }),
        onDone: [
          {
            guard: ({ event }) => isSuccess(event.output.httpStatus),
            target: 'delivered',
            actions: assign(({ context, event }) => afterAttempt(context, event.output, null)),
          },
          {
            guard: ({ event }) => event.output.httpStatus === 410,
            target: 'disabled',
            actions: assign(({ context, event }) => afterAttempt(context, event.output, null)),
          },
          {
            guard: ({ context }) => context.attempts + 1 >= MAX_ATTEMPTS,
            target: 'failed',
            actions: assign(({ context, event }) => afterAttempt(context, event.output, null)),
          },
          {
            target: 'waiting',
            actions: assign(({ context, event }) =>
              afterAttempt(context, event.output, nextAttemptAtMs(context.attempts + 1, event.output)),
            ),
          },
        ],
        onError: [
          {
            guard: ({ context }) => context.attempts + 1 >= MAX_ATTEMPTS,
            target: 'failed',
            actions: assign(({ context }) => afterAttempt(context, notTried(context), null)),
          },
          {
            target: 'waiting',
            actions: assign(({ context }) =>
              afterAttempt(context, notTried(context), nextAttemptAtMs(context.attempts + 1, notTried(context))),
            ),
          },
        ],
      },
    },
    waiting: {
      on: { 'delivery.due': 'attempting' },
      after: { untilNextAttempt: 'attempting' },
    },
    delivered: { type: 'final' },
    failed: { type: 'final' },
    disabled: { type: 'final' },
  },
  output: ({ context }) => ({
    attempts: context.attempts,
    lastHttpStatus: context.lastHttpStatus,
    lastError: context.lastError,
  }),
});

export interface DeliveryInput {
  deliveryId: string;
  /** Attempts already made. */
  attempts: number;
  /** Unix ms; null means now. */
  nextAttemptAtMs: number | null;
  /** Unix ms at the time of creation. */
  nowMs: number;
  lastHttpStatus: number | null;
  lastError: string | null;
}

/** Plain data: what the delivery's row holds, plus the last time anybody told. */
export type DeliveryContext = DeliveryInput;

export type DeliveryEvent = { type: 'delivery.due' };

export interface DeliveryOutput {
  attempts: number;
  lastHttpStatus: number | null;
  lastError: string | null;
}

export interface PostDeliveryInput {
  deliveryId: string;
  /** 1 for the first. */
  attempt: number;
}

export interface AttemptResult {
  /** Null when no answer came; `error` then says why, in one word. */
  httpStatus: number | null;
  error: string | null;
  /** What the receiver's Retry-After asked for, in ms from `atMs`; null without one. */
  retryAfterMs: number | null;
  /** Unix ms when the attempt ended. */
  atMs: number;
  /** 0 to 1, random: how much of `MAX_JITTER_SHARE` is added to the wait. */
  jitter: number;
}

/** How long to wait after the first, second, ... failed attempt (contracts.md, Webhooks). */
export const RETRY_DELAYS_MS: readonly number[] = [
  5_000,
  5 * 60_000,
  30 * 60_000,
  2 * 3_600_000,
  5 * 3_600_000,
  10 * 3_600_000,
  10 * 3_600_000,
];

/** The first attempt and one after every delay. */
export const MAX_ATTEMPTS = RETRY_DELAYS_MS.length + 1;

/** Jitter only adds: nobody is called sooner than the schedule says. */
export const MAX_JITTER_SHARE = 0.1;

/** No Retry-After holds a delivery back longer than this. */
export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

function isSuccess(httpStatus: number | null): boolean {
  return httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
}

/** The later of the schedule and what the receiver asked for. Total: nonsense from a port counts as nothing. */
function nextAttemptAtMs(failedAttempts: number, result: AttemptResult): number {
  const delayMs = RETRY_DELAYS_MS[failedAttempts - 1] ?? RETRY_DELAYS_MS.at(-1) ?? 0;
  const jitter = Math.min(1, Math.max(0, result.jitter || 0));
  const scheduledMs = Math.round(delayMs * (1 + MAX_JITTER_SHARE * jitter));
  const askedMs = Math.min(MAX_RETRY_AFTER_MS, Math.max(0, result.retryAfterMs || 0));
  return result.atMs + Math.max(scheduledMs, askedMs);
}

function afterAttempt(context: DeliveryContext, result: AttemptResult, nextMs: number | null): DeliveryContext {
  return {
    ...context,
    attempts: context.attempts + 1,
    nowMs: result.atMs,
    nextAttemptAtMs: nextMs,
    lastHttpStatus: result.httpStatus,
    lastError: result.error,
  };
}

/** The error of an attempt that failed on our side, before anything was sent. */
export const NOT_ATTEMPTED = 'not_attempted';

/** What a port that rejected amounts to. It could not tell the time, so the last one known has to do. */
function notTried(context: DeliveryContext): AttemptResult {
  const atMs = Math.max(context.nowMs, context.nextAttemptAtMs ?? context.nowMs);
  return { httpStatus: null, error: NOT_ATTEMPTED, retryAfterMs: null, atMs, jitter: 0 };
}
