import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { type CompletionInput, type ConcludeInput, completionMachine } from '../../machines/completion.machine.ts';
import { TandemError } from '../../machines/errors.ts';
import { testEachCell } from './state-table.ts';

type Port = 'admit' | 'generate' | 'conclude';
type Happening =
  | `${Port} done`
  | `${Port} failed`
  | 'admit refused'
  | 'client left'
  | 'client dropped'
  | 'backoff passed'
  | 'limit passed';
const HAPPENINGS: Happening[] = [
  'admit done',
  'admit refused',
  'admit failed',
  'generate done',
  'generate failed',
  'conclude done',
  'conclude failed',
  'client left',
  'client dropped',
  'backoff passed',
  'limit passed',
];

const PATHS = {
  admitting: [],
  generating: ['admit done'],
  concluding: ['admit done', 'generate done'],
  waitingToConclude: ['admit done', 'generate done', 'conclude failed'],
  completed: ['admit done', 'generate done', 'conclude done'],
  abandoned: ['admit done', 'client left', 'conclude done'],
  failed: ['admit refused'],
} satisfies Record<string, Happening[]>;

const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  admitting: { 'admit done': 'generating', 'admit refused': 'failed', 'admit failed': 'concluding' },
  generating: {
    'generate done': 'concluding',
    'generate failed': 'concluding',
    'client left': 'concluding',
    'client dropped': 'concluding',
    'limit passed': 'concluding',
  },
  concluding: { 'conclude done': 'completed', 'conclude failed': 'waitingToConclude' },
  waitingToConclude: { 'backoff passed': 'concluding', 'limit passed': 'concluding' },
  completed: {},
  abandoned: {},
  failed: {},
};

describe('completion machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: startCompletion });
});

describe('completion', () => {
  it.each([
    [['generate done'], 'completed', true],
    [['limit passed'], 'completed', true],
    [['generate failed'], 'failed', false],
    [['client left'], 'abandoned', true],
    [['client dropped'], 'failed', false],
    // Too late to change the outcome.
    [['generate done', 'client dropped'], 'completed', true],
    [['generate failed', 'client left'], 'failed', false],
    [['client left', 'conclude failed', 'client dropped', 'backoff passed'], 'abandoned', true],
  ] as const)('stores the outcome after admission and %j: %s', async (steps, outcome, owes) => {
    const completion = startCompletion();
    await completion.take('admit done');
    for (const step of steps) await completion.take(step);
    await completion.take('conclude done');
    expect(completion.state()).toBe(outcome);
    expect(completion.outcome()).toEqual({ outcome, owes });
    expect(completion.stored.at(-1)).toEqual({ completionId: 'c-1', ending: { outcome, owes } });
  });

  it('skips generation and owes nothing when the client disconnects during admission', async () => {
    const completion = startCompletion();
    await completion.take('client left');
    await completion.take('admit done');
    await completion.take('conclude done');
    expect(completion.outcome()).toEqual({ outcome: 'abandoned', owes: false });
    expect(completion.asked).toEqual(['admit', 'conclude']);
  });

  it('ends without an outcome when refused, even if the client disconnected meanwhile', async () => {
    const completion = startCompletion();
    await completion.take('client left');
    await completion.take('admit refused');
    expect(completion.state()).toBe('failed');
    expect(completion.outcome()).toBeNull();
    expect(completion.asked).toEqual(['admit']);
  });

  it('assumes admission when its result is unknown, and skips generation', async () => {
    const completion = startCompletion();
    await completion.take('admit failed');
    await completion.take('conclude done');
    expect(completion.outcome()).toEqual({ outcome: 'failed', owes: false });
    expect(completion.asked).toEqual(['admit', 'conclude']);
  });

  it('generates once, and retries storing the outcome until that succeeds', async () => {
    const completion = startCompletion();
    for (const step of ['admit done', 'generate done'] as const) await completion.take(step);
    for (let failures = 0; failures < 10; failures += 1) {
      await completion.take('conclude failed');
      await completion.take('backoff passed');
    }
    await completion.take('conclude done');
    expect(completion.asked.filter((port) => port !== 'conclude')).toEqual(['admit', 'generate']);
    expect(completion.stored).toHaveLength(11);
    expect(completion.state()).toBe('completed');
  });
});

function startCompletion() {
  const clock = new SimulatedClock();
  const asked: Port[] = [];
  const stored: Partial<ConcludeInput>[] = [];
  const pending = new Map<Port, PromiseWithResolvers<void>>();
  const port = <Input extends CompletionInput & Partial<ConcludeInput>>(name: Port) =>
    fromPromise<void, Input>(async ({ input }) => {
      expect(input.completionId).toBe('c-1');
      if (input.ending !== undefined) stored.push(input);
      asked.push(name);
      const answer = Promise.withResolvers<void>();
      pending.set(name, answer);
      await answer.promise;
    });
  const machine = completionMachine.provide({
    actors: { admit: port('admit'), generate: port('generate'), conclude: port<ConcludeInput>('conclude') },
  });
  const actor = createActor(machine, { input: { completionId: 'c-1', limitMs: 600_000 }, clock });
  actor.subscribe({ error: () => {} });
  actor.start();
  return {
    asked,
    stored,
    state: () => actor.getSnapshot().value,
    outcome: () => actor.getSnapshot().output,
    async take(happening: Happening) {
      if (happening === 'client left') actor.send({ type: 'listener.left', ofOwnAccord: true });
      else if (happening === 'client dropped') actor.send({ type: 'listener.left', ofOwnAccord: false });
      else if (happening === 'backoff passed') clock.increment(60_000);
      else if (happening === 'limit passed') clock.increment(600_000);
      else {
        const [name, how] = happening.split(' ') as [Port, 'done' | 'failed' | 'refused'];
        const answer = pending.get(name);
        if (how === 'done') answer?.resolve();
        else answer?.reject(how === 'refused' ? new TandemError('INSUFFICIENT_CREDITS', 'no') : new Error('no'));
      }
      // Lets promises settle and reach the machine.
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    },
  };
}
