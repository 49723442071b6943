import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import { type SettleInput, type TtsStreamInput, ttsStreamMachine } from '../../machines/tts-stream.machine.ts';
import { testEachCell } from './state-table.ts';

type Port = 'charge' | 'speak' | 'settle';
type Happening =
  | `${Port} done`
  | `${Port} failed`
  | 'charge refused'
  | 'client left'
  | 'client left before the audio'
  | 'client dropped'
  | 'backoff passed';
const HAPPENINGS: Happening[] = [
  'charge done',
  'charge refused',
  'charge failed',
  'speak done',
  'speak failed',
  'settle done',
  'settle failed',
  'client left',
  'client left before the audio',
  'client dropped',
  'backoff passed',
];

const PATHS = {
  charging: [],
  speaking: ['charge done'],
  settling: ['charge done', 'speak failed'],
  waitingToSettle: ['charge done', 'speak failed', 'settle failed'],
  refused: ['charge refused'],
  settled: ['charge done', 'speak failed', 'settle done'],
} satisfies Record<string, Happening[]>;

const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  charging: { 'charge done': 'speaking', 'charge refused': 'refused', 'charge failed': 'settling' },
  speaking: {
    'speak done': 'settling',
    'speak failed': 'settling',
    'client left': 'settling',
    'client left before the audio': 'settling',
    'client dropped': 'settling',
  },
  settling: { 'settle done': 'settled', 'settle failed': 'waitingToSettle' },
  waitingToSettle: { 'backoff passed': 'settling' },
  refused: {},
  settled: {},
};

describe('synthesis machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: startStream });
});

describe('synthesis request', () => {
  it.each([
    [['speak done'], { outcome: 'completed', owes: true }],
    [['speak failed'], { outcome: 'failed', owes: false }],
    [['client left'], { outcome: 'abandoned', owes: true }],
    [['client left before the audio'], { outcome: 'abandoned', owes: false }],
    [['client dropped'], { outcome: 'failed', owes: false }],
    // Too late to change the outcome.
    [['speak done', 'client dropped'], { outcome: 'completed', owes: true }],
    [['speak failed', 'client left'], { outcome: 'failed', owes: false }],
    [['client left', 'settle failed', 'client dropped', 'backoff passed'], { outcome: 'abandoned', owes: true }],
  ] as const)('stores the outcome after the charge and %j: %j', async (steps, ending) => {
    const stream = startStream();
    await stream.take('charge done');
    for (const step of steps) await stream.take(step);
    await stream.take('settle done');
    expect(stream.outcome()).toEqual(ending);
    expect(stream.stored.at(-1)).toEqual({ streamId: 'tts-1', ending });
  });

  it('skips synthesis and refunds when the client disconnects during the charge', async () => {
    const stream = startStream();
    await stream.take('client left before the audio');
    await stream.take('charge done');
    expect(stream.state()).toBe('settling');
    await stream.take('settle done');
    expect(stream.outcome()).toEqual({ outcome: 'abandoned', owes: false });
    expect(stream.asked).toEqual(['charge', 'settle']);
  });

  it('ends without an outcome when refused, even if the client disconnected meanwhile', async () => {
    const stream = startStream();
    await stream.take('client left before the audio');
    await stream.take('charge refused');
    expect(stream.outcome()).toBeNull();
    expect(stream.asked).toEqual(['charge']);
  });

  it('assumes the charge when its result is unknown, and skips synthesis', async () => {
    const stream = startStream();
    await stream.take('charge failed');
    await stream.take('settle done');
    expect(stream.outcome()).toEqual({ outcome: 'failed', owes: false });
    expect(stream.asked).toEqual(['charge', 'settle']);
  });

  it('charges once, synthesises once, and retries storing the outcome until that succeeds', async () => {
    const stream = startStream();
    for (const step of ['charge done', 'speak failed'] as const) await stream.take(step);
    for (let failures = 0; failures < 10; failures += 1) {
      await stream.take('settle failed');
      await stream.take('backoff passed');
    }
    await stream.take('settle done');
    expect(stream.asked.filter((port) => port !== 'settle')).toEqual(['charge', 'speak']);
    expect(new Set(stream.stored.map(({ ending }) => ending?.outcome))).toEqual(new Set(['failed']));
  });
});

function startStream() {
  const clock = new SimulatedClock();
  const asked: Port[] = [];
  const stored: Partial<SettleInput>[] = [];
  const pending = new Map<Port, PromiseWithResolvers<void>>();
  const port = <Input extends TtsStreamInput & Partial<SettleInput>>(name: Port) =>
    fromPromise<void, Input>(async ({ input }) => {
      expect(input.streamId).toBe('tts-1');
      if (input.ending !== undefined) stored.push(input);
      asked.push(name);
      const answer = Promise.withResolvers<void>();
      pending.set(name, answer);
      await answer.promise;
    });
  const machine = ttsStreamMachine.provide({
    actors: { charge: port('charge'), speak: port('speak'), settle: port<SettleInput>('settle') },
  });
  const actor = createActor(machine, { input: { streamId: 'tts-1' }, clock });
  actor.subscribe({ error: () => {} });
  actor.start();
  const LEAVING = {
    'client left': { ofOwnAccord: true, hasReceivedAudio: true },
    'client left before the audio': { ofOwnAccord: true, hasReceivedAudio: false },
    'client dropped': { ofOwnAccord: false, hasReceivedAudio: true },
  };
  return {
    asked,
    stored,
    state: () => actor.getSnapshot().value,
    outcome: () => actor.getSnapshot().output,
    async take(happening: Happening) {
      if (happening in LEAVING) {
        actor.send({ type: 'listener.left', ...LEAVING[happening as keyof typeof LEAVING] });
      } else if (happening === 'backoff passed') clock.increment(60_000);
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
