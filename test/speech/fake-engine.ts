import type { Recognition } from '../../machines/utterances.ts';
import {
  type EngineName,
  type Hypothesis,
  type RecognitionEngine,
  type Recognizer,
  type RecognizerDescription,
  RecognizerError,
  type UtteranceOptions,
} from '../../speech/recognizer.ts';
import { Arrivals } from './arrivals.ts';

/** An engine that recognises numbers: each sample other than 0 is a word. A script is called before each step. */
export interface FakeEngineOptions {
  engine?: EngineName;
  model?: string;
  languages?: readonly string[];
  detectsLanguage?: boolean;
  streams?: boolean;
  utterancesAtOnce?: number;
  maxInstances?: number;
  /** The detected language if none is given. */
  detected?: string;
  /** Called before each step; may throw or block. */
  script?: (step: FakeStep) => void | Promise<void>;
}

export interface FakeStep {
  type: 'load' | 'begin' | 'write' | 'pause' | 'hypothesis' | 'finish' | 'cancel' | 'close';
  model: string;
  instance: number;
  /** All words of the utterance, including those of this step. */
  words: readonly number[];
  options: UtteranceOptions | null;
}

export interface FakeEngine extends RecognitionEngine {
  readonly steps: Arrivals<FakeStep>;
  readonly alive: number;
}

export function createFakeEngine(options: FakeEngineOptions = {}): FakeEngine {
  const { engine = 'pocketsphinx', model = 'en-us', languages = ['en'], maxInstances = 16 } = options;
  const description: RecognizerDescription = {
    engine,
    model,
    languages,
    detectsLanguage: options.detectsLanguage ?? false,
    streams: options.streams ?? true,
    boostsKeywords: false,
    hasConfidence: true,
    utterancesAtOnce: options.utterancesAtOnce ?? 1,
  };
  const steps = new Arrivals<FakeStep>();
  let loaded = 0;
  let alive = 0;

  async function take(step: FakeStep): Promise<void> {
    steps.push(step);
    await options.script?.(step);
  }

  return {
    name: engine,
    maxInstances,
    steps,
    get alive() {
      return alive;
    },
    describe: async () => [description],
    async load(wanted) {
      const instance = loaded++;
      await take({ type: 'load', model: wanted.model, instance, words: [], options: null });
      alive += 1;
      return new FakeRecognizer({
        description,
        detected: options.detected ?? languages[0]!,
        take: (step) => take({ ...step, model: wanted.model, instance }),
        onClosed: () => {
          alive -= 1;
        },
      });
    },
  };
}

/** Samples that encode words, spread over a duration. */
export function spoken(words: readonly number[], durationMs = 100): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(durationMs * 16);
  words.forEach((word, index) => {
    samples[Math.floor((index * samples.length) / words.length)] = word;
  });
  return samples;
}

export function crash(): never {
  throw new RecognizerError('crashed', 'as the script says', { retryable: true });
}

interface FakeRecognizerOptions {
  description: RecognizerDescription;
  detected: string;
  take: (step: Pick<FakeStep, 'type' | 'words' | 'options'>) => Promise<void>;
  onClosed: () => void;
}

class FakeRecognizer implements Recognizer {
  readonly description: RecognizerDescription;
  readonly #options: FakeRecognizerOptions;
  #utterance: UtteranceOptions | null = null;
  #words: { word: number; atMs: number }[] = [];
  #samples = 0;
  #isClosed = false;
  readonly #beside: FakeRecognizer[] = [];

  constructor(options: FakeRecognizerOptions) {
    this.#options = options;
    this.description = options.description;
  }

  async begin(options: UtteranceOptions): Promise<void> {
    if (this.#utterance !== null || this.#isClosed) throw new Error('a recognizer does one utterance at a time');
    this.#utterance = options;
    this.#words = [];
    this.#samples = 0;
    await this.#take('begin');
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    this.#requireUtterance();
    samples.forEach((word, index) => {
      if (word !== 0) this.#words.push({ word, atMs: (this.#samples + index) / 16 });
    });
    this.#samples += samples.length;
    await this.#take('write');
  }

  async pause(): Promise<void> {
    this.#requireUtterance();
    await this.#take('pause');
  }

  async hypothesis(): Promise<Hypothesis | null> {
    this.#requireUtterance();
    await this.#take('hypothesis');
    return this.#words.length === 0 ? null : this.#understood();
  }

  async finish(): Promise<Recognition> {
    const { language } = this.#requireUtterance();
    await this.#take('finish');
    this.#utterance = null;
    const { engine, model } = this.description;
    return {
      ...this.#understood(),
      language: language ?? this.#options.detected,
      languageProbability: language === null ? 0.9 : null,
      confidence: 0.9,
      model: `${engine}/${model}`,
    };
  }

  async cancel(): Promise<void> {
    if (this.#utterance === null) return;
    await this.#take('cancel');
    this.#utterance = null;
  }

  beside(): Recognizer {
    const other = new FakeRecognizer(this.#options);
    this.#beside.push(other);
    return other;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    for (const other of this.#beside) other.#isClosed = true;
    this.#isClosed = true;
    await this.#take('close');
    this.#options.onClosed();
  }

  #understood(): Hypothesis {
    const words = this.#words.map(({ word, atMs }) => ({
      word: String(word),
      startMs: atMs,
      endMs: atMs + 10,
      confidence: 0.9,
      speaker: null,
      original: null,
    }));
    return { text: words.map(({ word }) => word).join(' '), words };
  }

  #requireUtterance(): UtteranceOptions {
    if (this.#utterance === null || this.#isClosed) throw new Error('no utterance was begun');
    return this.#utterance;
  }

  async #take(type: FakeStep['type']): Promise<void> {
    await this.#options.take({ type, words: this.#words.map(({ word }) => word), options: this.#utterance });
  }
}
