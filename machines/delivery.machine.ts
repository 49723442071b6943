import { assign, fromPromise, setup } from 'xstate';
import { notProvided } from './not-provided.ts';

/**
 * One callback or webhook delivery.
 *
 * It starts as `pending` and is due at once, or at the time in its row. `attempting` is one POST. A 2xx makes it
 * `delivered`, a 410 `disabled`: the receiver wants no more. Anything else leads to `waiting` until the next step of
 * the schedule, or longer by Retry-After. After the eighth failure it has `failed`. `delivery.due`, from the queue or a
 * user, ends a wait early.
 *
 * The machine has no clock. Every result of the port carries its time and a random number for the jitter. The next
 * deadline is an absolute time in the context, so a restart resumes the wait.
 */
export const deliveryMachine = setup({
  types: {
    context: {} as DeliveryContext,
    input: {} as DeliveryInput,
    events: {} as DeliveryEvent,
    output: {} as DeliveryOutput,
  },
  actors: {
    /**
     * One POST of the stored body. Resolves for every response and network error; rejects only if the attempt could not
     * be made.
     */
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
  attempts: number;
  /** Unix ms; null means now. */
  nextAttemptAtMs: number | null;
  /** Unix ms at creation. */
  nowMs: number;
  lastHttpStatus: number | null;
  lastError: string | null;
}

/** Content of the delivery's row, and the latest reported time. */
export type DeliveryContext = DeliveryInput;

export type DeliveryEvent = { type: 'delivery.due' };

export interface DeliveryOutput {
  attempts: number;
  lastHttpStatus: number | null;
  lastError: string | null;
}

export interface PostDeliveryInput {
  deliveryId: string;
  /** 1 for the first attempt. */
  attempt: number;
}

export interface AttemptResult {
  /** Null without a response; `error` then has the reason in one word. */
  httpStatus: number | null;
  error: string | null;
  /** Retry-After of the receiver, in ms from `atMs`; null without one. */
  retryAfterMs: number | null;
  atMs: number;
  /** 0 to 1, random: the part of `MAX_JITTER_SHARE` that is added to the wait. */
  jitter: number;
}

/** Waits after the first, second, ... failed attempt (contracts.md, Webhooks). */
export const RETRY_DELAYS_MS: readonly number[] = [
  5_000,
  5 * 60_000,
  30 * 60_000,
  2 * 3_600_000,
  5 * 3_600_000,
  10 * 3_600_000,
  10 * 3_600_000,
];

export const MAX_ATTEMPTS = RETRY_DELAYS_MS.length + 1;

/** Jitter only lengthens a wait: no attempt is earlier than scheduled. */
export const MAX_JITTER_SHARE = 0.1;

export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

function isSuccess(httpStatus: number | null): boolean {
  return httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
}

/** The later of the schedule and Retry-After. Ignores invalid numbers of a port. */
function nextAttemptAtMs(failedAttempts: number, result: AttemptResult): number {
  const delayMs = RETRY_DELAYS_MS[failedAttempts - 1] ?? RETRY_DELAYS_MS.at(-1) ?? 0;
  const jitter = Math.min(1, Math.max(0, result.jitter || 0));
  const scheduledMs = Math.round(delayMs * (1 + MAX_JITTER_SHARE * jitter));
  const requestedMs = Math.min(MAX_RETRY_AFTER_MS, Math.max(0, result.retryAfterMs || 0));
  return result.atMs + Math.max(scheduledMs, requestedMs);
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

/** The result of a rejected port. A rejection carries no time, so this uses the latest known one. */
function notTried(context: DeliveryContext): AttemptResult {
  const atMs = Math.max(context.nowMs, context.nextAttemptAtMs ?? context.nowMs);
  return { httpStatus: null, error: NOT_ATTEMPTED, retryAfterMs: null, atMs, jitter: 0 };
}
