import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, FrameError, type JsonValue, readMessages } from './frames.ts';

export interface EngineProcessOptions {
  /** A module that calls `serveEngine`. */
  entry: URL;
  /** What the engine is made with. */
  argument: JsonValue;
  /** Longer than this, and the process is ended. Default 60 s: a large model on a busy disk. */
  loadWithinMs?: number;
  /** How long a call, or a part of an answer, may take before the process is taken for stuck. Default 120 s. */
  answerWithinMs?: number;
  /** Aborting ends the process at once, while it loads and after. */
  signal?: AbortSignal;
}

/** The process is gone: it died, was stuck, or broke the protocol. What it was asked for may succeed in another one. */
export class EngineProcessError extends Error {
  override readonly name = 'EngineProcessError';
  readonly #output: string;

  constructor(message: string, { output = '', cause }: { output?: string; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.#output = output;
  }

  /** The end of what it wrote for people. Not a field, so that no logger prints it unasked: it may quote speech. */
  get output(): string {
    return this.#output;
  }
}

/** The engine refused a call, and goes on. */
export class EngineCallError extends Error {
  override readonly name = 'EngineCallError';
  /** Of the error that the engine threw; null when that had none. */
  readonly code: string | null;

  constructor(code: string | null, message: string) {
    super(message);
    this.code = code;
  }
}

/** Of the child's output: enough for the end of a stack trace or the last words of a library. */
const MOST_OUTPUT_CHARACTERS = 4000;
/** A child whose pipe has ended exits by itself, unless it computes. */
const LEAVE_WITHIN_MS = 1000;

/** What a child may know of our environment: not our secrets. */
const ENVIRONMENT = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'HOME', 'LD_LIBRARY_PATH', 'NODE_COMPILE_CACHE'];

const Answer = Compile(
  Type.Union([
    Type.Object({ id: Type.Integer(), value: Type.Unknown() }),
    Type.Object({ id: Type.Integer(), part: Type.Unknown() }),
    Type.Object({
      id: Type.Integer(),
      error: Type.Object({ code: Type.Union([Type.String(), Type.Null()]), message: Type.String() }),
    }),
  ]),
);

type LaunchedChild = ChildProcess & { stdout: Readable; stderr: Readable };

interface LaunchedProcess {
  child: LaunchedChild;
  pipe: Duplex;
}

interface Answered {
  value: unknown;
  bytes: Buffer;
}

interface PendingCall extends PromiseWithResolvers<Answered> {
  /** Null: it did not ask for parts. */
  onPart: ((part: Answered) => void) | null;
}

/**
 * A child process that runs foreign code, which answers calls one after the other. It ends when its pipe does, so with
 * us, however we end. It has a lower priority than we, because speech can wait and telephony cannot, a session of its
 * own, so that Ctrl-C in our terminal does not reach it before the drain is over, and none of our flags and secrets.
 */
export class EngineProcess {
  readonly #child: LaunchedChild;
  readonly #pipe: Duplex;
  #answerWithinMs: number;
  /** In the order in which they will be answered. */
  readonly #pending = new Map<number, PendingCall>();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #answerTimer: NodeJS.Timeout | null = null;
  #output = '';
  #failure: EngineProcessError | null = null;

  /** Resolves when the engine is made. @throws EngineProcessError, EngineCallError what making it threw */
  static async start(options: EngineProcessOptions): Promise<EngineProcess> {
    const { loadWithinMs = 60_000, answerWithinMs = 120_000, signal } = options;
    signal?.throwIfAborted();
    const engine = new EngineProcess(launch(options.entry), loadWithinMs);
    const abort = (): void => void engine.breakOff('the engine process was ended by its owner');
    signal?.addEventListener('abort', abort);
    void engine.#exited.then(() => signal?.removeEventListener('abort', abort));
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

  private constructor({ child, pipe }: LaunchedProcess, loadWithinMs: number) {
    this.#child = child;
    this.#pipe = pipe;
    this.#answerWithinMs = loadWithinMs;
    this.#exited = new Promise((resolve) => {
      // `close`, not `exit`: what it said last has been read by then.
      child.once('close', (code, signal) => {
        this.breakOff(`the engine process ended (${signal ?? `code ${code}`})`);
        resolve();
      });
    });
    // How it ended says more than that the pipe broke.
    pipe.on('error', () => child.kill('SIGKILL'));
    this.#keepOutput(child.stdout);
    this.#keepOutput(child.stderr);
    void this.#readAnswers();
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws EngineProcessError, EngineCallError, RangeError when the argument or the body is too long */
  async call(name: string, argument: JsonValue, body?: Uint8Array): Promise<unknown> {
    return (await this.callForBytes(name, argument, body)).value;
  }

  /** As `call`, for what is answered with an `AnswerWithBytes`. */
  callForBytes(name: string, argument: JsonValue, body?: Uint8Array): Promise<Answered> {
    return this.#ask(name, { argument, body, onPart: null });
  }

  /**
   * As `callForBytes`, for what is answered part by part. Parts that nobody has taken yet are kept: the engine goes on
   * with what it is asked next. Whoever stops taking gets no more, and the engine is not told.
   * @throws EngineProcessError, EngineCallError after the parts that came
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
      // Nobody waits for it any more.
      answer.catch(() => {});
    }
  }

  /** Resolves when all that it was asked until now is answered, also what nobody waits for any more. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#pending.values()].map(({ promise }) => promise));
  }

  #ask(
    name: string,
    { argument, body, onPart }: { argument: JsonValue; body: Uint8Array | undefined; onPart: PendingCall['onPart'] },
  ): Promise<Answered> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    const parts = encodeMessage({ id, call: name, argument }, body);
    const answered = Promise.withResolvers<Answered>();
    this.#pending.set(id, { ...answered, onPart });
    if (this.#pending.size === 1) this.#watch();
    for (const part of parts) this.#pipe.write(part);
    return answered.promise;
  }

  /** Kills it, and fails what it was asked, for the reason given. For when it answers what it must not, too. */
  breakOff(message: string, cause?: unknown): EngineProcessError {
    const failure = new EngineProcessError(message, { output: this.#output, cause });
    this.#settleAll(failure);
    this.#child.kill('SIGKILL');
    this.#pipe.destroy();
    return failure;
  }

  /** Idempotent. Calls on their way fail. */
  async close(): Promise<void> {
    this.#settleAll(new EngineProcessError('the engine process was closed'));
    this.#pipe.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), LEAVE_WITHIN_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  async #readAnswers(): Promise<void> {
    try {
      for await (const { head, body } of readMessages(this.#pipe)) {
        if (!Answer.Check(head)) throw new FrameError('not an answer');
        const pending = this.#pending.get(head.id);
        if (pending === undefined) throw new FrameError('an unrequested answer');
        if ('part' in head) {
          if (pending.onPart === null) throw new FrameError('an unrequested part');
          pending.onPart({ value: head.part, bytes: body });
          this.#watch();
          continue;
        }
        this.#pending.delete(head.id);
        this.#watch();
        if ('error' in head) pending.reject(new EngineCallError(head.error.code, head.error.message));
        else pending.resolve({ value: head.value, bytes: body });
      }
    } catch (error) {
      if (error instanceof FrameError) this.breakOff('the engine process broke the protocol', error);
    }
    // Without its pipe it is of no use.
    this.#child.kill('SIGKILL');
  }

  /** Time runs for the call whose turn it is: those behind it wait without being late. */
  #watch(): void {
    if (this.#answerTimer !== null) clearTimeout(this.#answerTimer);
    this.#answerTimer = null;
    if (this.#pending.size === 0) return;
    this.#answerTimer = setTimeout(() => this.breakOff('the engine process is stuck'), this.#answerWithinMs);
  }

  #keepOutput(stream: Readable): void {
    stream.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MOST_OUTPUT_CHARACTERS);
    });
    stream.on('error', () => {});
  }

  /** The first reason counts; what is asked from now on fails for it too. */
  #settleAll(failure: EngineProcessError): void {
    this.#failure ??= failure;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#watch();
    for (const { reject } of pending) reject(this.#failure);
  }
}

/** @throws EngineProcessError */
function launch(entry: URL): LaunchedProcess {
  // A pipe of its own: whatever a library prints to standard output cannot break the protocol.
  const child = spawn(process.execPath, [fileURLToPath(entry)], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: Object.fromEntries(ENVIRONMENT.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : []))),
    detached: true,
  });
  // Followed by `close`, unless there were no pipes to be had in the first place.
  child.on('error', () => {});
  const pipe = child.stdio?.[3];
  if (pipe === undefined) throw new EngineProcessError('the engine process could not be started');
  return { child: child as LaunchedChild, pipe: pipe as Duplex };
}
