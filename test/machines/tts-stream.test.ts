import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { ttsStreamMachine } from '../../machines/tts-stream.machine.ts';

type Port = 'charge' | 'speak' | 'refund';
type Happening = `${Port} done` | `${Port} failed` | 'listener left' | 'listener sent away' | 'backoff passed';
const HAPPENINGS: Happening[] = [
  'charge done',
  'charge failed',
  'speak done',
  'speak failed',
  'refund done',
  'refund failed',
  'listener left',
  'listener sent away',
  'backoff passed',
];

const PATHS = {
  charging: [],
  speaking: ['charge done'],
  refunding: ['charge done', 'speak failed'],
  refundLater: ['charge done', 'speak failed', 'refund failed'],
  refused: ['charge failed'],
  completed: ['charge done', 'speak done'],
  abandoned: ['charge done', 'listener left'],
  failed: ['charge done', 'speak failed', 'refund done'],
} satisfies Record<string, Happening[]>;

/** State x what happens. A cell that is absent means: nothing changes. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  charging: { 'charge done': 'speaking', 'charge failed': 'refused' },
  speaking: {
    'speak done': 'completed',
    'speak failed': 'refunding',
    'listener left': 'abandoned',
    'listener sent away': 'refunding',
  },
  refunding: { 'refund done': 'failed', 'refund failed': 'refundLater' },
  refundLater: { 'backoff passed': 'refunding' },
  refused: {},
  completed: {},
  abandoned: {},
  failed: {},
};

describe('the machine of a spoken text, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const happening of HAPPENINGS) {
      const cell = TABLE[state][happening];
      it(`in ${state}, "${happening}" ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, async () => {
        const stream = startStream();
        for (const step of PATHS[state]) await stream.take(step);
        expect(stream.state()).toBe(state);
        await stream.take(happening);
        expect(stream.state()).toBe(cell ?? state);
      });
    }
  }
});

describe('a text', () => {
  it('is paid back when its listener left while it was charged, and nothing is said', async () => {
    const stream = startStream();
    await stream.take('listener left');
    await stream.take('charge done');
    expect(stream.state()).toBe('refunding');
    await stream.take('refund done');
    expect(stream.outcome()).toBe('failed');
    expect(stream.asked).toEqual(['charge', 'refund']);
  });

  it('is asked for once, charged once and refunded until that is stored', async () => {
    const stream = startStream();
    for (const step of ['charge done', 'speak failed'] as const) await stream.take(step);
    for (let failures = 0; failures < 10; failures += 1) {
      await stream.take('refund failed');
      await stream.take('backoff passed');
    }
    await stream.take('refund done');
    expect(stream.outcome()).toBe('failed');
    expect(stream.asked.filter((port) => port !== 'refund')).toEqual(['charge', 'speak']);
  });

  it('tells how it ended', async () => {
    for (const outcome of ['refused', 'completed', 'abandoned', 'failed'] as const) {
      const stream = startStream();
      for (const step of PATHS[outcome]) await stream.take(step);
      expect(stream.outcome()).toBe(outcome);
    }
  });
});

function startStream() {
  const clock = new SimulatedClock();
  const asked: Port[] = [];
  const pending = new Map<Port, PromiseWithResolvers<void>>();
  const port = (name: Port) =>
    fromPromise<void, { streamId: string }>(async ({ input }) => {
      expect(input).toEqual({ streamId: 'tts-1' });
      asked.push(name);
      const answer = Promise.withResolvers<void>();
      pending.set(name, answer);
      await answer.promise;
    });
  const machine = ttsStreamMachine.provide({
    actors: { charge: port('charge'), speak: port('speak'), refund: port('refund') },
  });
  const actor = createActor(machine, { input: { streamId: 'tts-1' }, clock });
  actor.subscribe({ error: () => {} });
  actor.start();
  return {
    asked,
    state: () => actor.getSnapshot().value,
    outcome: () => actor.getSnapshot().output,
    async take(happening: Happening) {
      if (happening === 'listener left') actor.send({ type: 'listener.left', owes: true });
      else if (happening === 'listener sent away') actor.send({ type: 'listener.left', owes: false });
      else if (happening === 'backoff passed') clock.increment(60_000);
      else {
        const [name, how] = happening.split(' ') as [Port, 'done' | 'failed'];
        const answer = pending.get(name);
        if (how === 'done') answer?.resolve();
        else answer?.reject(new Error('no'));
      }
      // Promises settle, and the machine hears of it.
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    },
  };
}
