import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { recordingMachine } from '../../machines/recording.machine.ts';
import { testEachCell } from './state-table.ts';

const RECORDING = { recordingId: 'recording-1', callId: 'call-1', workspaceId: 'workspace-1' };

type Happening = 'store found it' | 'store found nothing' | 'store failed' | 'retry requested' | 'backoff passed';
const HAPPENINGS: Happening[] = [
  'store found it',
  'store found nothing',
  'store failed',
  'retry requested',
  'backoff passed',
];

const PATHS: Record<'storing' | 'waiting' | 'stored' | 'missing', Happening[]> = {
  storing: [],
  waiting: ['store failed'],
  stored: ['store found it'],
  missing: ['store found nothing'],
};

const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  storing: { 'store found it': 'stored', 'store found nothing': 'missing', 'store failed': 'waiting' },
  waiting: { 'retry requested': 'storing', 'backoff passed': 'storing' },
  stored: {},
  missing: {},
};

describe('recording machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: startRecording });
});

describe('finished recording', () => {
  it('uses the same id for each storage attempt', async () => {
    const recording = startRecording();
    await recording.take('store failed');
    await recording.take('backoff passed');
    expect(recording.attempts).toEqual([RECORDING, RECORDING]);
  });

  it('doubles the delay after each failure up to a minute, and never gives up', async () => {
    const recording = startRecording();
    const waits: number[] = [];
    for (let failure = 1; failure <= 40; failure += 1) {
      await recording.take('store failed');
      waits.push(await recording.waitMs());
    }
    expect(waits.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    expect(new Set(waits.slice(8))).toEqual(new Set([60_000]));
    await recording.take('store found it');
    expect(recording.state()).toBe('stored');
  });

  it('runs one attempt at a time', async () => {
    const recording = startRecording();
    await recording.take('retry requested');
    await recording.take('retry requested');
    expect(recording.attempts).toHaveLength(1);
  });

  it('ignores the timer of a delay that a retry replaced', async () => {
    const recording = startRecording();
    await recording.take('store failed');
    await recording.take('retry requested');
    await recording.take('backoff passed');
    expect(recording.attempts).toHaveLength(2);
    expect(recording.state()).toBe('storing');
  });
});

function startRecording() {
  const clock = new SimulatedClock();
  const attempts: unknown[] = [];
  let running = Promise.withResolvers<{ stored: boolean }>();
  const machine = recordingMachine.provide({
    actors: {
      store: fromPromise(({ input }) => {
        attempts.push(input);
        running = Promise.withResolvers();
        return running.promise;
      }),
    },
  });
  const actor = createActor(machine, { input: RECORDING, clock });
  actor.start();
  const state = () => actor.getSnapshot().value;
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    attempts,
    state,
    async take(happening: Happening) {
      if (happening === 'store found it') running.resolve({ stored: true });
      if (happening === 'store found nothing') running.resolve({ stored: false });
      if (happening === 'store failed') running.reject(new Error('the disk is full'));
      if (happening === 'retry requested') actor.send({ type: 'retry.requested' });
      if (happening === 'backoff passed') clock.increment(60_000);
      await settle();
    },
    /** Lets the delay pass, and returns it. */
    async waitMs() {
      const from = clock.now();
      while (state() === 'waiting') clock.increment(500);
      await settle();
      return clock.now() - from;
    },
  };
}
