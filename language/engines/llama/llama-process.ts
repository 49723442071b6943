import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { LanguageEngineError } from '../../engine.ts';
import { encodeMessage, FrameError, MOST_MESSAGE_BYTES, readMessages } from './frames.ts';
import {
  type AnswerEnd,
  type AnswerPart,
  type AnswerRequest,
  FromChild,
  type Load,
  type Loaded,
  type ToChild,
} from './protocol.ts';

export interface LlamaProcessOptions {
  /** A module that speaks the protocol. */
  entry: URL;
  load: Load;
  /** Longer than this, and the process is ended. Default 10 min: tens of gigabytes from a slow disk. */
  loadWithinMs?: number;
  /** After an answer was told to stop. Longer, and the process is taken for stuck. Default 2 min: a piece of a prompt. */
  stopWithinMs?: number;
}

/** The model was not loaded: the file is not what it should be, or the library is not there. */
export class NotLoadedError extends Error {
  override readonly name = 'NotLoadedError';
}

/** What a child may know of our environment: not our secrets. */
const ENVIRONMENT = [
  ...['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'HOME', 'LD_LIBRARY_PATH', 'NODE_COMPILE_CACHE'],
  ...['CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES', 'GGML_VK_VISIBLE_DEVICES', 'VK_ICD_FILENAMES'],
];

/** Of what the child writes for people: enough for the last words of a library. */
const MOST_OUTPUT_CHARACTERS = 4000;
const LEAVE_WITHIN_MS = 1000;
const LOAD_WITHIN_MS = 600_000;
const STOP_WITHIN_MS = 120_000;

type Child = ChildProcess & { stdout: Readable; stderr: Readable };

interface PendingAnswer {
  /** Not taken yet. */
  parts: AnswerPart[];
  end: AnswerEnd | null;
  failure: LanguageEngineError | null;
  changed: PromiseWithResolvers<void>;
  /** Resolves when the child has no more to do with it. */
  over: PromiseWithResolvers<void>;
}

/**
 * One life of the process that a model is run in. It ends when its pipe does, so with us, however we end. It has a lower
 * priority than we, because telephony cannot wait, a session of its own, so that Ctrl-C in our terminal does not reach
 * it before the drain is over, and none of our flags and secrets.
 */
export class LlamaProcess {
  readonly #child: Child;
  readonly #pipe: Duplex;
  readonly #stopWithinMs: number;
  readonly #answers = new Map<number, PendingAnswer>();
  readonly #loading = Promise.withResolvers<Loaded>();
  readonly #ended = Promise.withResolvers<void>();
  #nextId = 1;
  #isLoaded = false;
  #output = '';
  #failure: Error | null = null;

  constructor({ entry, load, loadWithinMs = LOAD_WITHIN_MS, stopWithinMs = STOP_WITHIN_MS }: LlamaProcessOptions) {
    this.#stopWithinMs = stopWithinMs;
    this.#child = launch(entry);
    this.#pipe = this.#child.stdio[3] as Duplex;
    // Whoever waits for one of them hears of it.
    this.#loading.promise.catch(() => {});
    const timer = setTimeout(() => this.#breakOff('did not load the model in time'), loadWithinMs);
    const clear = (): void => clearTimeout(timer);
    this.#loading.promise.then(clear, clear);
    this.#child.once('close', (code, signal) => {
      this.#breakOff(`ended (${signal ?? `code ${code}`})`);
      this.#ended.resolve();
    });
    this.#pipe.on('error', () => this.#child.kill('SIGKILL'));
    this.#keepOutput(this.#child.stdout);
    this.#keepOutput(this.#child.stderr);
    void this.#read();
    this.#send(load);
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Rejects with NotLoadedError, or an Error that says how the process ended. */
  get loaded(): Promise<Loaded> {
    return this.#loading.promise;
  }

  /** Resolves when the process is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** How it ended, for logs; null while it runs. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** @throws LanguageEngineError; the signal's reason */
  async *answer(request: AnswerRequest, signal: AbortSignal): AsyncGenerator<AnswerPart, AnswerEnd> {
    signal.throwIfAborted();
    const { id, answer } = this.#ask(request);
    const wake = (): void => answer.changed.resolve();
    signal.addEventListener('abort', wake);
    try {
      for (;;) {
        signal.throwIfAborted();
        for (let part = answer.parts.shift(); part !== undefined; part = answer.parts.shift()) {
          yield part;
          signal.throwIfAborted();
        }
        if (answer.failure !== null) throw answer.failure;
        if (answer.end !== null) return answer.end;
        await answer.changed.promise;
        answer.changed = Promise.withResolvers();
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#stop(id);
    }
  }

  /** Resolves when the child produces none of the answers it was asked for until now. */
  async idle(): Promise<void> {
    await Promise.all([...this.#answers.values()].map(({ over }) => over.promise));
  }

  /** Idempotent. Answers on their way fail. */
  async close(): Promise<void> {
    this.#fail(new Error('the process of the model was closed'));
    this.#pipe.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), LEAVE_WITHIN_MS);
    await this.#ended.promise;
    clearTimeout(timer);
  }

  #ask(request: AnswerRequest): { id: number; answer: PendingAnswer } {
    if (this.#failure !== null) throw unavailable(this.#failure);
    const id = this.#nextId++;
    const answer = {
      parts: [],
      end: null,
      failure: null,
      changed: Promise.withResolvers<void>(),
      over: Promise.withResolvers<void>(),
    };
    try {
      this.#send({ type: 'answer', id, request });
    } catch (error) {
      throw new LanguageEngineError('context_too_long', `the request has more than ${MOST_MESSAGE_BYTES} bytes`, {
        cause: error,
      });
    }
    this.#answers.set(id, answer);
    return { id, answer };
  }

  /** Nothing to do when it is over. What does not stop is stuck, and stands in the way of others. */
  #stop(id: number): void {
    const answer = this.#answers.get(id);
    if (answer === undefined) return;
    this.#send({ type: 'stop', id });
    const timer = setTimeout(() => this.#breakOff('is stuck'), this.#stopWithinMs);
    void answer.over.promise.then(() => clearTimeout(timer));
  }

  #send(message: ToChild): void {
    this.#pipe.write(encodeMessage(message));
  }

  async #read(): Promise<void> {
    try {
      for await (const message of readMessages(this.#pipe)) {
        if (!FromChild.Check(message)) throw new FrameError('not a message of a model');
        this.#receive(message);
      }
    } catch (error) {
      if (error instanceof FrameError) this.#breakOff(`broke the protocol (${error.message})`);
    }
    // Without its pipe it is of no use.
    this.#child.kill('SIGKILL');
  }

  #receive(message: FromChild): void {
    if (message.type === 'loaded') {
      this.#isLoaded = true;
      this.#loading.resolve(message.loaded);
    } else if (message.type === 'notLoaded') {
      this.#fail(new NotLoadedError(message.message), { andEnd: true });
    } else {
      this.#receiveOf(message);
    }
  }

  #receiveOf(message: Exclude<FromChild, { type: 'loaded' | 'notLoaded' }>): void {
    const answer = this.#answers.get(message.id);
    if (answer === undefined) throw new FrameError('an unrequested answer');
    if (message.type === 'part') {
      answer.parts.push(message.part);
    } else {
      this.#answers.delete(message.id);
      if (message.type === 'finished') answer.end = message.end;
      else answer.failure = failureOf(message);
      answer.over.resolve();
    }
    answer.changed.resolve();
  }

  /** Its last words are told while it loads: later they may quote a conversation. */
  #breakOff(what: string): void {
    const lastLine = this.#isLoaded ? '' : (this.#output.trimEnd().split('\n').at(-1)?.slice(0, 300) ?? '');
    this.#fail(new Error(`the process of the model ${what}${lastLine === '' ? '' : `: ${lastLine}`}`), {
      andEnd: true,
    });
  }

  /** The first reason counts; what is asked from now on fails for it too. */
  #fail(failure: Error, { andEnd = false } = {}): void {
    this.#failure ??= failure;
    this.#loading.reject(this.#failure);
    for (const answer of this.#answers.values()) {
      answer.failure = unavailable(this.#failure);
      answer.changed.resolve();
      answer.over.resolve();
    }
    this.#answers.clear();
    if (!andEnd) return;
    this.#child.kill('SIGKILL');
    this.#pipe.destroy();
  }

  #keepOutput(stream: Readable): void {
    stream.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MOST_OUTPUT_CHARACTERS);
    });
    stream.on('error', () => {});
  }
}

function failureOf({ code, message }: Extract<FromChild, { type: 'failed' }>): LanguageEngineError {
  return new LanguageEngineError(code === 'stopped' ? 'unavailable' : code, message);
}

function unavailable(failure: Error): LanguageEngineError {
  return new LanguageEngineError('unavailable', failure.message, { cause: failure });
}

function launch(entry: URL): Child {
  // A pipe of its own: whatever a library prints to standard output cannot break the protocol.
  const child = spawn(process.execPath, [fileURLToPath(entry)], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: Object.fromEntries(ENVIRONMENT.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : []))),
    detached: true,
  });
  // Followed by `close`, unless there were no pipes to be had in the first place.
  child.on('error', () => {});
  if (child.stdio?.[3] === undefined) {
    throw new LanguageEngineError('unavailable', 'the process of the model could not be started');
  }
  return child as Child;
}
