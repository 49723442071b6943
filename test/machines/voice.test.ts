import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { type ShapedVoice, voiceMachine } from '../../machines/voice.machine.ts';
import { testEachCell } from './state-table.ts';

const VOICE_ID = 'voice-1';
const USABLE: ShapedVoice = { isUsable: true, recipe: { engine: 'e' }, measures: null, approximate: true };
const UNUSABLE: ShapedVoice = { isUsable: false, errorCode: 'VOICE_SAMPLE_UNUSABLE', error: 'Nobody speaks.' };

type Happening =
  | 'samples completed'
  | 'shaped'
  | 'found unusable'
  | 'shaping failed'
  | 'concluded'
  | 'concluding failed'
  | 'backoff passed'
  | 'deleted';
const HAPPENINGS: Happening[] = [
  'samples completed',
  'shaped',
  'found unusable',
  'shaping failed',
  'concluded',
  'concluding failed',
  'backoff passed',
  'deleted',
];

const PATHS = {
  pending: [],
  shaping: ['samples completed'],
  waitingToShape: ['samples completed', 'shaping failed'],
  concluding: ['samples completed', 'shaped'],
  waitingToConclude: ['samples completed', 'shaped', 'concluding failed'],
  ready: ['samples completed', 'shaped', 'concluded'],
  failed: ['samples completed', 'found unusable', 'concluded'],
  deleted: ['deleted'],
} as const satisfies Record<string, Happening[]>;

const TABLE: Record<keyof typeof PATHS, Partial<Record<Happening, string>>> = {
  pending: { 'samples completed': 'shaping', deleted: 'deleted' },
  shaping: {
    shaped: 'concluding',
    'found unusable': 'concluding',
    'shaping failed': 'waitingToShape',
    deleted: 'deleted',
  },
  waitingToShape: { 'backoff passed': 'shaping', deleted: 'deleted' },
  concluding: {
    'samples completed': 'shaping',
    concluded: 'ready',
    'concluding failed': 'waitingToConclude',
    deleted: 'deleted',
  },
  waitingToConclude: { 'samples completed': 'shaping', 'backoff passed': 'concluding', deleted: 'deleted' },
  ready: {},
  failed: {},
  deleted: {},
};

describe('voice machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: startVoice });
});

describe('voice', () => {
  it('starts processing at once when it has samples', () => {
    expect(startVoice({ hasSamples: true }).state()).toBe('shaping');
  });

  it('fails with a reason for unusable samples', async () => {
    const voice = startVoice({ hasSamples: true });
    await voice.take('found unusable');
    expect(voice.concluded).toEqual([UNUSABLE]);
    await voice.take('concluded');
    expect(voice.output()).toBe('failed');
  });

  it('doubles the delay after each internal failure, and fails with INTERNAL after the ninth', async () => {
    const voice = startVoice({ hasSamples: true });
    const waits: number[] = [];
    for (let failure = 1; failure < 9; failure += 1) {
      await voice.take('shaping failed');
      expect(voice.state()).toBe('waitingToShape');
      waits.push(await voice.waitMs());
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    await voice.take('shaping failed');
    expect(voice.state()).toBe('concluding');
    expect(voice.concluded).toMatchObject([{ isUsable: false, errorCode: 'INTERNAL' }]);
    await voice.take('concluded');
    expect(voice.output()).toBe('failed');
  });

  it('retries storing its result until storage returns, without another analysis', async () => {
    const voice = startVoice({ hasSamples: true });
    await voice.take('shaped');
    for (let failure = 1; failure <= 30; failure += 1) {
      await voice.take('concluding failed');
      await voice.waitMs();
    }
    await voice.take('concluded');
    expect(voice.output()).toBe('ready');
    expect(voice.shapings).toHaveLength(1);
    expect(voice.concluded).toHaveLength(31);
  });

  it('analyses other samples that arrive between its stored failure and its end', async () => {
    const voice = startVoice({ hasSamples: true });
    await voice.take('found unusable');
    const storeFailure = voice.concluding();
    await voice.take('samples completed');
    storeFailure.resolve();
    await voice.take('shaped');
    await voice.take('concluded');
    expect(voice.concluded).toEqual([UNUSABLE, USABLE]);
    expect(voice.output()).toBe('ready');
  });

  it('cancels its current work when deleted', async () => {
    const voice = startVoice({ hasSamples: true });
    await voice.take('deleted');
    expect(voice.shapings.map(({ aborted }) => aborted)).toEqual([true]);
    await voice.take('shaped');
    expect([voice.output(), voice.concluded]).toEqual(['deleted', []]);
  });
});

function startVoice({ hasSamples = false } = {}) {
  const clock = new SimulatedClock();
  const shapings: AbortSignal[] = [];
  const concluded: ShapedVoice[] = [];
  let shaping = deferred<ShapedVoice>();
  let concluding = deferred<void>();
  const machine = voiceMachine.provide({
    actors: {
      shape: fromPromise(({ input, signal }) => {
        expect(input.voiceId).toBe(VOICE_ID);
        shapings.push(signal);
        shaping = deferred();
        return shaping.promise;
      }),
      conclude: fromPromise(({ input: { shaped } }) => {
        concluded.push(shaped);
        concluding = deferred();
        return concluding.promise;
      }),
    },
  });
  const actor = createActor(machine, { input: { voiceId: VOICE_ID, hasSamples }, clock });
  actor.start();
  const state = () => {
    const { value } = actor.getSnapshot();
    return typeof value === 'string' ? value : Object.values(value)[0];
  };
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    shapings,
    concluded,
    concluding: () => concluding,
    state,
    output: () => actor.getSnapshot().output,
    async take(happening: Happening) {
      if (happening === 'samples completed') actor.send({ type: 'samples.completed' });
      if (happening === 'shaped') shaping.resolve(USABLE);
      if (happening === 'found unusable') shaping.resolve(UNUSABLE);
      if (happening === 'shaping failed') shaping.reject(new Error('the disk is full'));
      if (happening === 'concluded') concluding.resolve();
      if (happening === 'concluding failed') concluding.reject(new Error('the database is gone'));
      if (happening === 'backoff passed') clock.increment(60_000);
      if (happening === 'deleted') actor.send({ type: 'voice.deleted' });
      await settle();
    },
    /** Lets the delay pass, and returns it. */
    async waitMs() {
      const from = clock.now();
      const waiting = state();
      while (state() === waiting) clock.increment(500);
      await settle();
      return clock.now() - from;
    },
  };
}

/** Avoids unhandled rejections. */
function deferred<T>() {
  const made = Promise.withResolvers<T>();
  made.promise.catch(() => undefined);
  return made;
}
