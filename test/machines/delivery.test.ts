import { describe, expect, test } from 'vitest';
import { createActor, fromPromise, SimulatedClock, waitFor } from 'xstate';
import type { AttemptResult, DeliveryInput } from '../../machines/delivery.machine.ts';
import {
  deliveryMachine,
  MAX_ATTEMPTS,
  MAX_JITTER_SHARE,
  MAX_RETRY_AFTER_MS,
  RETRY_DELAYS_MS,
} from '../../machines/delivery.machine.ts';
import * as fc from '../properties.ts';

const START_MS = 1_790_000_000_000;
const HOUR_MS = 3_600_000;

const fresh: DeliveryInput = {
  deliveryId: 'd1',
  attempts: 0,
  nextAttemptAtMs: null,
  nowMs: START_MS,
  lastHttpStatus: null,
  lastError: null,
};

/** An actor on a simulated clock; `answer` ends each attempt. */
function startDelivery(input: Partial<DeliveryInput> = {}) {
  const clock = new SimulatedClock();
  let pending: PromiseWithResolvers<AttemptResult> | null = null;
  const attempts: { attempt: number; atMs: number }[] = [];
  const actor = createActor(
    deliveryMachine.provide({
      actors: {
        postDelivery: fromPromise(({ input: { attempt } }) => {
          attempts.push({ attempt, atMs: clock.now() });
          pending = Promise.withResolvers<AttemptResult>();
          return pending.promise;
        }),
      },
    }),
    { input: { ...fresh, ...input }, clock },
  );
  actor.start();
  return {
    actor,
    clock,
    attempts,
    state: () => actor.getSnapshot().value,
    context: () => actor.getSnapshot().context,
    async answer(result: Partial<AttemptResult>): Promise<void> {
      const atMs = START_MS + clock.now();
      pending?.resolve({ httpStatus: null, error: null, retryAfterMs: null, jitter: 0, atMs, ...result });
      await waitFor(actor, (snapshot) => !snapshot.matches('attempting'));
    },
    async break(): Promise<void> {
      pending?.reject(new Error('no secret'));
      await waitFor(actor, (snapshot) => !snapshot.matches('attempting'));
    },
  };
}

/** Brings a delivery into each of its states. */
const inState = {
  pending: async () => startDelivery({ nextAttemptAtMs: START_MS + 1_000 }),
  attempting: async () => {
    const delivery = startDelivery();
    delivery.clock.increment(0);
    return delivery;
  },
  waiting: async () => {
    const delivery = await inState.attempting();
    await delivery.answer({ httpStatus: 500 });
    return delivery;
  },
  delivered: async () => {
    const delivery = await inState.attempting();
    await delivery.answer({ httpStatus: 200 });
    return delivery;
  },
  disabled: async () => {
    const delivery = await inState.attempting();
    await delivery.answer({ httpStatus: 410 });
    return delivery;
  },
  failed: async () => {
    const delivery = startDelivery({ attempts: MAX_ATTEMPTS - 1 });
    delivery.clock.increment(0);
    await delivery.answer({ httpStatus: 500 });
    return delivery;
  },
};
type State = keyof typeof inState;
type Delivery = ReturnType<typeof startDelivery>;

const happenings: Record<string, (delivery: Delivery) => Promise<void> | void> = {
  'delivery.due': ({ actor }) => actor.send({ type: 'delivery.due' }),
  'the deadline': ({ clock }) => clock.increment(24 * HOUR_MS),
  'a 204': (delivery) => delivery.answer({ httpStatus: 204 }),
  'a 302': (delivery) => delivery.answer({ httpStatus: 302 }),
  'a 410': (delivery) => delivery.answer({ httpStatus: 410 }),
  'a 503': (delivery) => delivery.answer({ httpStatus: 503 }),
  'no answer': (delivery) => delivery.answer({ error: 'timeout' }),
  'a broken port': (delivery) => delivery.break(),
};

/** Rows are states, columns events. Answers have an effect only while attempting. */
const table: Record<State, Record<keyof typeof happenings, State>> = {
  pending: row('pending', { 'delivery.due': 'attempting', 'the deadline': 'attempting' }),
  attempting: row('attempting', {
    'a 204': 'delivered',
    'a 302': 'waiting',
    'a 410': 'disabled',
    'a 503': 'waiting',
    'no answer': 'waiting',
    'a broken port': 'waiting',
  }),
  waiting: row('waiting', { 'delivery.due': 'attempting', 'the deadline': 'attempting' }),
  delivered: row('delivered', {}),
  disabled: row('disabled', {}),
  failed: row('failed', {}),
};

function row(stays: State, moves: Record<string, State>): Record<string, State> {
  return { ...Object.fromEntries(Object.keys(happenings).map((name) => [name, stays])), ...moves };
}

describe('delivery machine, state by event', () => {
  const cells = Object.entries(table).flatMap(([state, columns]) =>
    Object.entries(columns).map(([happening, next]) => [state as State, happening, next] as const),
  );
  test.each(cells)('%s, then %s: %s', async (state, happening, next) => {
    const delivery = await inState[state]();
    expect(delivery.state()).toBe(state);
    // Outside `attempting` the promise of an attempt is over, so an answer has no receiver.
    await happenings[happening]?.(delivery);
    expect(delivery.state()).toBe(next);
    expect(delivery.actor.getSnapshot().status).toBe(
      ['delivered', 'disabled', 'failed'].includes(next) ? 'done' : 'active',
    );
  });
});

describe('retry schedule', () => {
  test('attempts after 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, then fails', async () => {
    const delivery = startDelivery();
    delivery.clock.increment(0);
    for (const delayMs of RETRY_DELAYS_MS) {
      await delivery.answer({ httpStatus: 500 });
      expect(delivery.state()).toBe('waiting');
      delivery.clock.increment(delayMs - 1);
      expect(delivery.state()).toBe('waiting');
      delivery.clock.increment(1);
      expect(delivery.state()).toBe('attempting');
    }
    await delivery.answer({ httpStatus: 502 });
    expect(delivery.state()).toBe('failed');
    expect(delivery.actor.getSnapshot().output).toEqual({ attempts: 8, lastHttpStatus: 502, lastError: null });
    expect(delivery.context().nextAttemptAtMs).toBeNull();
    const gapsMs = delivery.attempts.slice(1).map(({ atMs }, index) => atMs - (delivery.attempts[index]?.atMs ?? 0));
    expect(gapsMs).toEqual([5_000, 300_000, 1_800_000, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS]);
    expect(delivery.attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('adds jitter of up to a tenth', async () => {
    const delivery = await inState.attempting();
    await delivery.answer({ httpStatus: 500, jitter: 1 });
    expect(delivery.context().nextAttemptAtMs).toBe(START_MS + 5_500);
  });

  test('counts a throwing port as an attempt', async () => {
    const delivery = startDelivery({ attempts: MAX_ATTEMPTS - 1 });
    delivery.clock.increment(0);
    await delivery.break();
    expect(delivery.state()).toBe('failed');
    expect(delivery.context()).toMatchObject({ attempts: MAX_ATTEMPTS, lastError: 'not_attempted' });
  });
});

describe('Retry-After', () => {
  test.each([
    ['extends the wait beyond the schedule', 60_000, 60_000],
    ['never shortens the wait', 1_000, 5_000],
    ['counts up to a day', 365 * 24 * HOUR_MS, MAX_RETRY_AFTER_MS],
    ['changes nothing in the past', -5_000, 5_000],
    ['changes nothing when not a number', Number.NaN, 5_000],
  ])('%s', async (_name, retryAfterMs, waitMs) => {
    const delivery = await inState.attempting();
    await delivery.answer({ httpStatus: 429, retryAfterMs });
    expect(delivery.context().nextAttemptAtMs).toBe(START_MS + waitMs);
  });
});

describe('delivery restored from its row', () => {
  test('waits only for its remaining time', () => {
    const delivery = startDelivery({ attempts: 3, nextAttemptAtMs: START_MS + 10_000, nowMs: START_MS + 4_000 });
    delivery.clock.increment(5_999);
    expect(delivery.state()).toBe('pending');
    delivery.clock.increment(1);
    expect(delivery.state()).toBe('attempting');
    expect(delivery.attempts).toEqual([{ attempt: 4, atMs: 6_000 }]);
  });

  test('starts at once when its time has passed', () => {
    const delivery = startDelivery({ attempts: 3, nextAttemptAtMs: START_MS - 10 * HOUR_MS });
    delivery.clock.increment(0);
    expect(delivery.state()).toBe('attempting');
  });
});

test('the machine reaches a defined state without its port', async () => {
  const clock = new SimulatedClock();
  const actor = createActor(deliveryMachine, { input: fresh, clock });
  actor.start();
  clock.increment(0);
  await waitFor(actor, (snapshot) => snapshot.matches('waiting'));
  expect(actor.getSnapshot().context).toMatchObject({ attempts: 1, lastError: 'not_attempted' });
});

test('the context of a delivery is plain data', async () => {
  const delivery = await inState.waiting();
  const context = delivery.context();
  expect(JSON.parse(JSON.stringify(context))).toEqual(context);
});

test('waits stay between schedule and one day, and end, for any results', async () => {
  const anyResult = fc.record({
    httpStatus: fc.option(fc.integer({ min: 100, max: 599 })),
    retryAfterMs: fc.option(fc.double()),
    jitter: fc.double(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(anyResult, { minLength: MAX_ATTEMPTS, maxLength: MAX_ATTEMPTS }), async (results) => {
      const delivery = startDelivery();
      delivery.clock.increment(0);
      for (const [index, result] of results.entries()) {
        const endedAtMs = START_MS + delivery.clock.now();
        await delivery.answer(result);
        if (delivery.state() !== 'waiting') break;
        const waitMs = (delivery.context().nextAttemptAtMs ?? 0) - endedAtMs;
        expect(waitMs).toBeGreaterThanOrEqual(RETRY_DELAYS_MS[index] ?? 0);
        expect(waitMs).toBeLessThanOrEqual(Math.max(MAX_RETRY_AFTER_MS, 10 * HOUR_MS * (1 + MAX_JITTER_SHARE)));
        delivery.clock.increment(waitMs);
      }
      expect(delivery.actor.getSnapshot().status).toBe('done');
    }),
    { numRuns: 50 },
  );
});
