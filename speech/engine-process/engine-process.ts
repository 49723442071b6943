import { FrameError, type JsonValue, type Message } from '../../runtime/frames.ts';
import { schemaCheck } from '../../runtime/schema-check.ts';
import { type ProcessError, SupervisedProcess } from '../../runtime/supervised-process.ts';

export interface EngineProcessOptions {
  /** A module that calls `serveEngine`. */
  entry: URL;
  argument: JsonValue;
  /** Flags of Node and V8. Default: none. */
  nodeFlags?: readonly string[];
  /** Load timeout, after which the process is killed. Default 60 s: a large model on a busy disk. */
  loadWithinMs?: number;
  /** Timeout of a call, or of a part of an answer, after which the process counts as stuck. Default 120 s. */
  answerWithinMs?: number;
  /** Aborting kills the process, also after loading. */
  signal?: AbortSignal;
}

/** The engine rejected a call, and is still usable. */
export class EngineCallError extends Error {
  override readonly name = 'EngineCallError';
  /** Code of the engine's error; null if it had none. */
  readonly code: string | null;

  constructor(code: string | null, message: string) {
    super(message);
    this.code = code;
  }
}

const Answer = schemaCheck({
  anyOf: [
    { type: 'object', required: ['id', 'value'], properties: { id: { type: 'integer' }, value: {} } },
    { type: 'object', required: ['id', 'part'], properties: { id: { type: 'integer' }, part: {} } },
    {
      type: 'object',
      required: ['id', 'error'],
      properties: {
        id: { type: 'integer' },
        error: {
          type: 'object',
          required: ['code', 'message'],
          properties: { code: { type: ['string', 'null'] }, message: { type: 'string' } },
        },
      },
    },
  ],
});

interface Answered {
  value: unknown;
  bytes: Buffer;
}

interface PendingCall extends PromiseWithResolvers<Answered> {
  /** Null: the caller did not ask for parts. */
  onPart: ((part: Answered) => void) | null;
}

/** A child process with an engine, which answers calls one at a time. */
export class EngineProcess {
  readonly #process: SupervisedProcess;
  #answerWithinMs: number;
  /** In the order of their answers. */
  readonly #pending = new Map<number, PendingCall>();
  #nextId = 1;
  #stopWatching = (): void => {};

  /** Resolves when the engine is created. @throws ProcessError, EngineCallError with the creation's error */
  static async start(options: EngineProcessOptions): Promise<EngineProcess> {
    const { loadWithinMs = 60_000, answerWithinMs = 120_000, signal } = options;
    signal?.throwIfAborted();
    const engine = new EngineProcess(options, loadWithinMs);
    const abort = (): void => void engine.breakOff('the engine process was ended by its owner');
    signal?.addEventListener('abort', abort);
    void engine.#process.ended.then(() => signal?.removeEventListener('abort', abort));
    try {
      await engine.call('load', options.argument);
      engine.#answerWithinMs = answerWithinMs;
      return engine;
    } catch (error) {
      await engine.close();
      signal?.throwIfAborted();
      throw error;
    }
  }

  private constructor({ entry, nodeFlags }: EngineProcessOptions, loadWithinMs: number) {
    this.#answerWithinMs = loadWithinMs;
    this.#process = new SupervisedProcess({
      entry,
      nodeFlags,
      name: 'the engine process',
      onMessage: (message) => this.#receive(message),
      onLost: (error) => this.#failAll(error),
    });
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** @throws ProcessError, EngineCallError, RangeError if the argument or the body is too long */
  async call(name: string, argument: JsonValue, body?: Uint8Array): Promise<unknown> {
    return (await this.callForBytes(name, argument, body)).value;
  }

  /** As `call`, for answers with an `AnswerWithBytes`. */
  callForBytes(name: string, argument: JsonValue, body?: Uint8Array): Promise<Answered> {
    return this.#ask(name, { argument, body, onPart: null });
  }

  /**
   * As `callForBytes`, for answers in parts. Parts are buffered without backpressure. Ending the iteration discards
   * further parts, but does not cancel the call.
   * @throws ProcessError, EngineCallError after the parts received so far
   */
  async *stream(name: string, argument: JsonValue, body?: Uint8Array): AsyncGenerator<Answered, void> {
    const parts: Answered[] = [];
    let isOver = false;
    let changed = Promise.withResolvers<void>();
    const onPart = (part: Answered): void => {
      if (isOver) return;
      parts.push(part);
      changed.resolve();
    };
    const answer = this.#ask(name, { argument, body, onPart });
    const settled = answer.then(
      () => changed.resolve(),
      () => changed.resolve(),
    );
    void settled.then(() => {
      isOver = true;
    });
    try {
      for (;;) {
        for (let part = parts.shift(); part !== undefined; part = parts.shift()) yield part;
        if (isOver) break;
        await Promise.race([changed.promise, settled]);
        changed = Promise.withResolvers();
      }
      await answer;
    } finally {
      isOver = true;
      parts.length = 0;
      // Avoids an unhandled rejection.
      answer.catch(() => {});
    }
  }

  /** Resolves when all calls so far are answered, including abandoned ones. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#pending.values()].map(({ promise }) => promise));
  }

  #ask(
    name: string,
    { argument, body, onPart }: { argument: JsonValue; body: Uint8Array | undefined; onPart: PendingCall['onPart'] },
  ): Promise<Answered> {
    if (this.#process.failure !== null) return Promise.reject(this.#process.failure);
    const id = this.#nextId++;
    const answered = Promise.withResolvers<Answered>();
    this.#process.send({ id, call: name, argument }, body);
    this.#pending.set(id, { ...answered, onPart });
    if (this.#pending.size === 1) this.#watch();
    return answered.promise;
  }

  /** Kills the process and fails its calls with this message. Also for invalid answers. */
  breakOff(message: string, cause?: unknown): ProcessError {
    return this.#process.breakOff(message, cause);
  }

  /** Idempotent. Calls in progress fail. */
  close(): Promise<void> {
    return this.#process.close();
  }

  #receive({ head, body }: Message): void {
    if (!Answer.matches(head)) throw new FrameError('not an answer');
    const pending = this.#pending.get(head.id);
    if (pending === undefined) throw new FrameError('an unrequested answer');
    if ('part' in head) {
      if (pending.onPart === null) throw new FrameError('an unrequested part');
      pending.onPart({ value: head.part, bytes: body });
      this.#watch();
      return;
    }
    this.#pending.delete(head.id);
    this.#watch();
    if ('error' in head) pending.reject(new EngineCallError(head.error.code, head.error.message));
    else pending.resolve({ value: head.value, bytes: body });
  }

  /** The timeout only runs for the first call: queued ones are not late. */
  #watch(): void {
    this.#stopWatching();
    if (this.#pending.size > 0) this.#stopWatching = this.#process.breakOffAfter(this.#answerWithinMs);
  }

  #failAll(error: ProcessError): void {
    this.#stopWatching();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }
}
