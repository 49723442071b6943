import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import {
  type DecodedAudio,
  type RecognisedFile,
  type Settlement,
  transcriptionMachine,
} from '../../machines/transcription.machine.ts';
import { testEachCell } from './state-table.ts';

type Happening = 'upload' | 'upload with context' | 'port done' | 'port failed' | 'cancelled' | 'time is up';
const HAPPENINGS: Happening[] = [
  'upload',
  'upload with context',
  'port done',
  'port failed',
  'cancelled',
  'time is up',
];

type State =
  | 'uploading'
  | 'admitting'
  | 'decoding'
  | 'quoting'
  | 'recognising'
  | 'refining'
  | 'settling'
  | 'reporting'
  | 'done'
  | 'failed'
  | 'cancelled';

const RECOGNISING: Happening[] = ['upload with context', 'port done', 'port done', 'port done'];
const PATHS: Record<State, Happening[]> = {
  uploading: [],
  admitting: ['upload'],
  decoding: ['upload', 'port done'],
  quoting: ['upload', 'port done', 'port done'],
  recognising: RECOGNISING,
  refining: [...RECOGNISING, 'port done'],
  settling: [...RECOGNISING, 'port done', 'port done'],
  reporting: ['time is up'],
  done: [...RECOGNISING, 'port done', 'port done', 'port done'],
  failed: ['upload', 'port failed'],
  cancelled: ['cancelled'],
};

const WORKING = { cancelled: 'cancelled', 'time is up': 'reporting' } as const;

const TABLE: Record<State, Partial<Record<Happening, State>>> = {
  uploading: { ...WORKING, upload: 'admitting', 'upload with context': 'admitting' },
  admitting: { ...WORKING, 'port done': 'decoding', 'port failed': 'failed' },
  decoding: { ...WORKING, 'port done': 'quoting', 'port failed': 'reporting' },
  quoting: { ...WORKING, 'port done': 'recognising', 'port failed': 'failed' },
  recognising: { ...WORKING, 'port done': 'refining', 'port failed': 'reporting' },
  refining: { ...WORKING, 'port done': 'settling', 'port failed': 'settling' },
  settling: { 'port done': 'done', 'port failed': 'reporting' },
  reporting: { 'port done': 'failed', 'port failed': 'failed' },
  done: {},
  failed: {},
  cancelled: {},
};

describe('transcription machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: start });
});

describe('transcription', () => {
  it('skips refinement without context or text', async () => {
    const bare = start();
    for (const step of ['upload', 'port done', 'port done', 'port done', 'port done'] as const) await bare.take(step);
    expect(bare.state()).toBe('settling');
    const silent = start({ ...FILE, text: '' });
    for (const step of PATHS.refining) await silent.take(step);
    expect(silent.state()).toBe('settling');
  });

  it('checks the funds for its duration before recognition', async () => {
    const transcription = start();
    for (const step of PATHS.recognising) await transcription.take(step);
    expect(transcription.asked.map(([port, input]) => [port, input.durationMs])).toEqual([
      ['requireFunds', null],
      ['decode', undefined],
      ['requireFunds', 1_500],
      ['recognise', undefined],
    ]);
  });

  it('returns audio, file, refinement and settlement', async () => {
    const transcription = start();
    for (const step of PATHS.done) await transcription.take(step);
    expect(transcription.output()).toEqual({
      outcome: 'done',
      audio: AUDIO,
      file: FILE,
      refined: REFINED,
      settlement: SETTLEMENT,
    });
  });

  it("fails with the port's error code, or with INTERNAL for other errors", async () => {
    const refused = start();
    await refused.take('upload');
    await refused.fail(new TandemError('INSUFFICIENT_CREDITS', 'Too little.', { details: { required: 1 } }));
    expect(refused.output()).toMatchObject({
      outcome: 'failed',
      failure: { code: 'INSUFFICIENT_CREDITS', message: 'Too little.', details: { required: 1 } },
    });
    const broken = start();
    await broken.take('upload');
    await broken.fail(Object.assign(new Error('/secret/path'), { code: 'ENOENT' }));
    expect(broken.output()).toMatchObject({ failure: { code: 'INTERNAL' } });
    expect(JSON.stringify(broken.output())).not.toContain('secret');
  });

  it('fails with STT_TIMEOUT in any state', async () => {
    const late = start();
    for (const step of PATHS.recognising) await late.take(step);
    await late.take('time is up');
    expect(late.asked.at(-1)).toMatchObject(['reportFailure', { failure: { code: 'STT_TIMEOUT' } }]);
    await late.take('port done');
    expect(late.output()).toMatchObject({ failure: { code: 'STT_TIMEOUT' } });
  });

  it('aborts its work when cancelled', async () => {
    const transcription = start();
    for (const step of PATHS.recognising) await transcription.take(step);
    const signal = transcription.signal();
    await transcription.take('cancelled');
    expect(signal.aborted).toBe(true);
    expect(transcription.output()).toMatchObject({ failure: { code: 'STT_CLIENT_CANCELLED' } });
  });
});

const AUDIO: DecodedAudio = {
  source: {
    filePath: '/x',
    offset: 44,
    bytes: 100,
    format: { encoding: 'linear16', sampleRateHz: 16_000, channels: 1 },
  },
  durationMs: 1_500,
  container: 'wav',
  isIncomplete: false,
};
const FILE: RecognisedFile = {
  text: 'hello',
  language: 'en',
  languageProbability: null,
  snrDb: 20,
  segments: [],
  speakers: [],
  model: 'fake/model',
  ignoresKeywords: false,
  isChunked: false,
  unusable: [],
};
const REFINED = { text: 'Hello.', llmApplied: true, llmReason: null };
const SETTLEMENT: Settlement = { charge: null };

function start(file = FILE) {
  const clock = new SimulatedClock();
  const asked: [port: string, input: { durationMs?: number | null }][] = [];
  let running = Promise.withResolvers<unknown>();
  let runningSignal = new AbortController().signal;
  let answer: unknown;

  function port<Input extends { transcriptionId: string; durationMs?: number | null }, Output>(
    name: string,
    output: NoInfer<Output>,
  ) {
    return fromPromise<Output, Input>(({ input, signal }) => {
      asked.push([name, input]);
      running = Promise.withResolvers();
      runningSignal = signal;
      answer = output;
      return running.promise as Promise<Output>;
    });
  }

  const machine = transcriptionMachine.provide({
    actors: {
      requireFunds: port('requireFunds', undefined),
      decode: port('decode', AUDIO),
      recognise: port('recognise', file),
      refine: port('refine', REFINED),
      settle: port('settle', SETTLEMENT),
      reportFailure: port('reportFailure', undefined),
    },
  });
  const actor = createActor(machine, { input: { transcriptionId: 'one', limitMs: 600_000 }, clock });
  actor.start();
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  async function fail(error: unknown): Promise<void> {
    // Avoids an unhandled rejection while nothing runs.
    running.promise.catch(() => undefined);
    running.reject(error);
    await settle();
  }

  return {
    asked,
    fail,
    signal: () => runningSignal,
    output: () => actor.getSnapshot().output,
    state(): State {
      const { value } = actor.getSnapshot();
      return (typeof value === 'string' ? value : value.working) as State;
    },
    async take(happening: Happening) {
      if (happening === 'upload') actor.send({ type: 'upload.received', wantsRefinement: false });
      if (happening === 'upload with context') actor.send({ type: 'upload.received', wantsRefinement: true });
      if (happening === 'port done') running.resolve(answer);
      if (happening === 'port failed') await fail(new TandemError('AUDIO_NOT_READABLE', 'No audio.'));
      if (happening === 'cancelled') {
        actor.send({ type: 'transcription.cancelled', code: 'STT_CLIENT_CANCELLED', message: 'Gone.' });
      }
      if (happening === 'time is up') clock.increment(600_000);
      await settle();
    },
  };
}
