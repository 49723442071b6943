import { FrameError, type JsonValue, type Message } from '../../../runtime/frames.ts';
import { ProcessError, SupervisedProcess } from '../../../runtime/supervised-process.ts';
import { LanguageEngineError } from '../../engine.ts';
import {
  type AnswerEnd,
  type AnswerPart,
  type AnswerRequest,
  FromChild,
  LLAMA_LIMITS,
  type Load,
  type Loaded,
  type ToChild,
} from './protocol.ts';

export interface LlamaProcessOptions {
  /** A module that speaks the protocol. */
  entry: URL;
  load: Load;
  /** Load timeout, after which the process is killed. Default 10 min: tens of gigabytes from a slow disk. */
  loadWithinMs?: number;
  /** Timeout after a stop request, after which the process counts as stuck. Default 2 min: one piece of a prompt. */
  stopWithinMs?: number;
}

/** The model did not load: the file is invalid, or the library is missing. */
export class NotLoadedError extends Error {
  override readonly name = 'NotLoadedError';
}

/** Control which processors the library uses. */
const ENVIRONMENT = ['CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES', 'GGML_VK_VISIBLE_DEVICES', 'VK_ICD_FILENAMES'];

const LOAD_WITHIN_MS = 600_000;
const STOP_WITHIN_MS = 120_000;

interface PendingAnswer {
  /** Not consumed yet. */
  parts: AnswerPart[];
  end: AnswerEnd | null;
  failure: LanguageEngineError | null;
  changed: PromiseWithResolvers<void>;
  /** Resolves when the child has finished with the answer. */
  over: PromiseWithResolvers<void>;
}

/** One life of the process that runs a model. */
export class LlamaProcess {
  readonly #process: SupervisedProcess;
  readonly #stopWithinMs: number;
  readonly #answers = new Map<number, PendingAnswer>();
  readonly #loading = Promise.withResolvers<Loaded>();
  #nextId = 1;
  #isLoaded = false;
  #failure: Error | null = null;

  /** @throws LanguageEngineError if the process cannot be started */
  constructor({ entry, load, loadWithinMs = LOAD_WITHIN_MS, stopWithinMs = STOP_WITHIN_MS }: LlamaProcessOptions) {
    this.#stopWithinMs = stopWithinMs;
    try {
      this.#process = new SupervisedProcess({
        entry,
        name: 'the process of the model',
        environment: ENVIRONMENT,
        limits: LLAMA_LIMITS,
        onMessage: (message) => this.#receive(message),
        onLost: (error) => this.#fail(error),
      });
    } catch (error) {
      throw error instanceof ProcessError ? unavailable(error) : error;
    }
    const stopWaiting = this.#process.breakOffAfter(loadWithinMs, 'did not load the model in time');
    // Avoids an unhandled rejection. Waiters see the failure themselves.
    this.#loading.promise.then(stopWaiting, stopWaiting);
    this.#send(load);
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Rejects with NotLoadedError, or an Error that says how the process ended. */
  get loaded(): Promise<Loaded> {
    return this.#loading.promise;
  }

  /** Resolves when the process has exited. */
  get ended(): Promise<void> {
    return this.#process.ended;
  }

  /** Reason of the exit, for logs; null while it runs. */
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

  /** Resolves when the child has finished all answers requested so far. */
  async idle(): Promise<void> {
    await Promise.all([...this.#answers.values()].map(({ over }) => over.promise));
  }

  /** Idempotent. Answers in progress fail. */
  close(): Promise<void> {
    return this.#process.close();
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
      throw new LanguageEngineError('context_too_long', `the request has more than ${LLAMA_LIMITS.headBytes} bytes`, {
        cause: error,
      });
    }
    this.#answers.set(id, answer);
    return { id, answer };
  }

  /** Kills the process if the answer does not stop in time, because a stuck one blocks the others. */
  #stop(id: number): void {
    const answer = this.#answers.get(id);
    if (answer === undefined) return;
    this.#send({ type: 'stop', id });
    void answer.over.promise.then(this.#process.breakOffAfter(this.#stopWithinMs));
  }

  #send(message: ToChild): void {
    this.#process.send(message as JsonValue);
  }

  #receive({ head: message }: Message): void {
    if (!FromChild.matches(message)) throw new FrameError('not a message of a model');
    if (message.type === 'loaded') {
      this.#isLoaded = true;
      this.#loading.resolve(message.loaded);
    } else if (message.type === 'notLoaded') {
      this.#fail(new NotLoadedError(message.message));
      this.#process.breakOff(message.message);
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

  /** Keeps the first reason. Later requests fail with it too. */
  #fail(error: NotLoadedError | ProcessError): void {
    this.#failure ??= error instanceof ProcessError ? new Error(this.#withLastWords(error), { cause: error }) : error;
    this.#loading.reject(this.#failure);
    for (const answer of this.#answers.values()) {
      answer.failure = unavailable(this.#failure);
      answer.changed.resolve();
      answer.over.resolve();
    }
    this.#answers.clear();
  }

  /** Adds the process's last line while it loads. Later lines may quote a conversation. */
  #withLastWords({ message, output }: ProcessError): string {
    const lastLine = this.#isLoaded ? '' : (output.trimEnd().split('\n').at(-1)?.slice(0, 300) ?? '');
    return lastLine === '' ? message : `${message}: ${lastLine}`;
  }
}

function failureOf({ code, message }: Extract<FromChild, { type: 'failed' }>): LanguageEngineError {
  return new LanguageEngineError(code === 'stopped' ? 'unavailable' : code, message);
}

function unavailable(failure: Error): LanguageEngineError {
  return new LanguageEngineError('unavailable', failure.message, { cause: failure });
}
