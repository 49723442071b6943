import {
  type Clause,
  type SpokenBlock,
  type SynthesisEngine,
  type SynthesisEngineName,
  type Synthesizer,
  SynthesizerError,
} from '../../../speech/synthesizer.ts';

/** Sample rate; each word takes 100 ms and ends with 20 ms of silence. */
export const FAKE_RATE_HZ = 8000;
export const WORD_SAMPLES = 800;
const SOUND_SAMPLES = 640;

export interface FakeEngineOptions {
  name?: SynthesisEngineName;
  source?: string;
  maxInstances?: number;
  /** Called before each word; may wait or throw. */
  script?: (step: FakeStep) => void | Promise<void>;
  /** Whether the words have no sound. Default false. */
  isMute?: boolean;
  onStart?: (model: string) => void | Promise<void>;
  idle?: () => Promise<void>;
}

export interface FakeStep {
  /** Counted from 1, in starting order. */
  instance: number;
  word: string;
  clause: Clause;
}

export interface FakeEngine extends SynthesisEngine {
  /** Clauses by their words, in starting order. */
  asked: string[];
  started: string[];
  running: Set<number>;
  mostRunning: number;
  closed: number;
}

/** An engine that encodes the number in a word as loudness. */
export function createFakeEngine(options: FakeEngineOptions = {}): FakeEngine {
  const engine: FakeEngine = {
    name: options.name ?? 'espeak-ng',
    ...(options.source !== undefined && { source: options.source }),
    controlsPitch: true,
    maxInstances: options.maxInstances ?? 2,
    asked: [],
    started: [],
    running: new Set(),
    mostRunning: 0,
    closed: 0,
    voices: async () => [{ name: 'v', model: 'm', language: 'en-us', gender: null, clones: false }],
    problem: async () => null,
    async start({ model, signal }) {
      engine.started.push(model);
      const instance = engine.started.length;
      await options.onStart?.(model);
      signal.throwIfAborted();
      const { script = () => {}, isMute = false, idle } = options;
      return { ...synthesizer(engine, { instance, script, isMute }), ...(idle !== undefined && { idle }) };
    },
  };
  return engine;
}

function synthesizer(
  engine: FakeEngine,
  { instance, script, isMute }: { instance: number; script: (step: FakeStep) => void | Promise<void>; isMute: boolean },
): Synthesizer {
  return {
    sampleRateHz: FAKE_RATE_HZ,
    async *speak(clause, signal): AsyncGenerator<SpokenBlock, void> {
      engine.asked.push(clause.words.map(({ spoken }) => spoken).join(' '));
      engine.running.add(instance);
      engine.mostRunning = Math.max(engine.mostRunning, engine.running.size);
      try {
        for (const [word, { spoken }] of clause.words.entries()) {
          await script({ instance, word: spoken, clause });
          await new Promise((resolve) => setImmediate(resolve));
          signal.throwIfAborted();
          yield {
            samples: isMute ? new Int16Array(WORD_SAMPLES) : soundOf(spoken),
            marks: [{ word, atMs: word * 100 }],
          };
        }
      } finally {
        engine.running.delete(instance);
      }
    },
    async close() {
      engine.closed += 1;
    },
  };
}

export function crash(): never {
  throw new SynthesizerError('crashed', 'as the script says');
}

function soundOf(word: string): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(WORD_SAMPLES);
  const amplitude = 1000 * (1 + (Number(/\d+/.exec(word)?.[0] ?? 0) % 20));
  for (let index = 0; index < SOUND_SAMPLES; index++) samples[index] = index % 2 === 0 ? amplitude : -amplitude;
  return samples;
}

export function decodeWords(samples: Int16Array): number[] {
  const words: number[] = [];
  for (let start = 0; start < samples.length; start += WORD_SAMPLES) {
    words.push(Math.round(Math.abs(samples[start + 300]!) / 1000) - 1);
  }
  return words;
}
