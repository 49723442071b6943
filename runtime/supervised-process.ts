import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { encodeMessage, FrameError, type FrameLimits, type JsonValue, type Message, readMessages } from './frames.ts';

export interface ProcessOptions {
  /** A module that calls `serveProcess`. */
  entry: URL;
  /** Used in messages, such as `the engine process`. */
  name: string;
  /** Flags of Node and V8. Default: none. */
  nodeFlags?: readonly string[] | undefined;
  /** Environment variables that it receives besides `ENVIRONMENT`. */
  environment?: readonly string[];
  limits?: FrameLimits;
  /** @throws FrameError for a message that violates the protocol, which ends the process */
  onMessage: (message: Message) => void;
  /** Called once, with the first reason. The process is about to end. */
  onLost: (error: ProcessError) => void;
}

/** The process died, hung, or violated the protocol. The same work may succeed in another one. */
export class ProcessError extends Error {
  override readonly name = 'ProcessError';
  readonly #output: string;

  constructor(message: string, { output = '', cause }: { output?: string; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.#output = output;
  }

  /** The end of its output. Not a field, so that loggers do not print it: it may quote speech. */
  get output(): string {
    return this.#output;
  }
}

/** The only environment variables that a child receives, to protect our secrets. */
const ENVIRONMENT = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'HOME', 'LD_LIBRARY_PATH', 'NODE_COMPILE_CACHE'];
/** Enough for the end of a stack trace or a library's last message. */
const MOST_OUTPUT_CHARACTERS = 4000;
/** A child exits by itself when its pipe ends, unless it is computing. */
const LEAVE_WITHIN_MS = 1000;

type LaunchedChild = ChildProcess & { stdout: Readable; stderr: Readable };

/**
 * The owner's end of a child process that runs foreign code. The child ends with its pipe, so also when we are killed.
 * Its own session keeps Ctrl-C in our terminal from ending it before the drain. It receives none of our flags and
 * secrets.
 */
export class SupervisedProcess {
  readonly #options: ProcessOptions;
  readonly #child: LaunchedChild;
  readonly #pipe: Duplex;
  readonly #ended = Promise.withResolvers<void>();
  #output = '';
  #failure: ProcessError | null = null;

  /** @throws ProcessError if no pipes are available */
  constructor(options: ProcessOptions) {
    this.#options = options;
    const { child, pipe } = launch(options);
    this.#child = child;
    this.#pipe = pipe;
    // `close`, not `exit`: by then its last output has been read.
    child.once('close', (code, signal) => {
      this.breakOff(`${options.name} ended (${signal ?? `code ${code}`})`);
      this.#ended.resolve();
    });
    // Wait for its exit status, which says more than the broken pipe.
    pipe.on('error', () => child.kill('SIGKILL'));
    this.#keepOutput(child.stdout);
    this.#keepOutput(child.stderr);
    void this.#read();
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Why the process is unusable; null while it works. */
  get failure(): ProcessError | null {
    return this.#failure;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** @throws RangeError if the message is too long */
  send(head: JsonValue, body?: Uint8Array): void {
    for (const part of encodeMessage(head, body, this.#options.limits)) this.#pipe.write(part);
  }

  /** Kills the process after this time, unless the returned function is called before. */
  breakOffAfter(ms: number, what = 'is stuck'): () => void {
    const timer = setTimeout(() => this.breakOff(`${this.#options.name} ${what}`), ms);
    return () => clearTimeout(timer);
  }

  /** Kills the process. Only the first reason is reported. */
  breakOff(message: string, cause?: unknown): ProcessError {
    const error = new ProcessError(message, { output: this.#output, cause });
    this.#lose(error);
    this.#child.kill('SIGKILL');
    this.#pipe.destroy();
    return error;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#lose(new ProcessError(`${this.#options.name} was closed`));
    this.#pipe.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), LEAVE_WITHIN_MS);
    await this.#ended.promise;
    clearTimeout(timer);
  }

  #lose(error: ProcessError): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.#options.onLost(error);
  }

  async #read(): Promise<void> {
    const { name, limits, onMessage } = this.#options;
    try {
      for await (const message of readMessages(this.#pipe, limits)) onMessage(message);
    } catch (error) {
      if (error instanceof FrameError) this.breakOff(`${name} broke the protocol (${error.message})`, error);
    }
    // It is unusable without its pipe.
    this.#child.kill('SIGKILL');
  }

  #keepOutput(stream: Readable): void {
    stream.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MOST_OUTPUT_CHARACTERS);
    });
    stream.on('error', () => {});
  }
}

function launch({ entry, name, nodeFlags = [], environment = [] }: ProcessOptions): {
  child: LaunchedChild;
  pipe: Duplex;
} {
  const visible = [...ENVIRONMENT, ...environment].filter((variable) => variable in process.env);
  // A separate pipe, so that a library's standard output cannot break the protocol.
  const child = spawn(process.execPath, [...nodeFlags, fileURLToPath(entry)], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: Object.fromEntries(visible.map((variable) => [variable, process.env[variable]])),
    detached: true,
  });
  // `close` follows, unless no pipes were available.
  child.on('error', () => {});
  const pipe = child.stdio?.[3];
  if (pipe === undefined) throw new ProcessError(`${name} could not be started`);
  return { child: child as LaunchedChild, pipe: pipe as Duplex };
}
