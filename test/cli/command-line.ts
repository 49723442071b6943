import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { CommandHost } from '../../bin/cli/host.ts';
import { runCommandLine } from '../../bin/cli/run.ts';
import { inheritedEnvironment } from '../process/server-process.ts';

export const EXECUTABLE = resolve(import.meta.dirname, '../../bin/tandem');

export interface Run {
  /** Null after a signal. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** The only JSON document on standard output; throws if there is any other output. */
  document: { success: boolean; code?: string; message?: string; data: never };
}

export interface RunningCommand {
  /** Sends SIGINT, as Ctrl-C does. */
  interrupt(): void;
  untilPrinted(text: string): Promise<void>;
  ended: Promise<Run>;
}

export interface CommandLineOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string;
}

/** Runs a command line in this process, with nothing else in its environment. A tenth of the time of `tandemProcess`. */
export async function tandem(argv: readonly string[], options?: CommandLineOptions): Promise<Run> {
  return await startTandem(argv, options).ended;
}

export function startTandem(argv: readonly string[], options: CommandLineOptions = {}): RunningCommand {
  const host = new TestHost(options);
  const { stdout, stderr } = host;
  const exited = runCommandLine(argv, host).finally(async () => {
    await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
    if (host.eventNames().length > 0) throw new Error('the command still listens for signals');
  });
  return {
    ...watch({ stdout, stderr, exited }),
    interrupt() {
      if (!host.emit('SIGINT')) throw new Error('SIGINT would kill the process of the command');
    },
  };
}

/** Runs `bin/tandem`, without our environment. */
export async function tandemProcess(argv: readonly string[], options?: ProcessOptions): Promise<Run> {
  return await startTandemProcess(argv, options).ended;
}

export interface ProcessOptions extends CommandLineOptions {
  executable?: string;
}

export function startTandemProcess(
  argv: readonly string[],
  { env = {}, cwd = tmpdir(), stdin, executable = EXECUTABLE }: ProcessOptions = {},
): RunningCommand & { child: ChildProcess } {
  const child = spawn(executable, argv, {
    cwd,
    env: { ...inheritedEnvironment(), TMPDIR: tmpdir(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // The command may stop reading early.
  child.stdin.on('error', () => {}).end(stdin ?? '');
  const { stdout, stderr } = child;
  const exited = once(child, 'close').then(([exitCode]) => exitCode as number | null);
  return { child, ...watch({ stdout, stderr, exited }), interrupt: () => void child.kill('SIGINT') };
}

/** A folder with an empty `.env`, which shadows a developer's settings. */
export async function serverFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'tandem-cli-'));
  await writeFile(join(path, '.env'), '');
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Emits the signals that a process would get. Its streams are pipes. */
export class TestHost extends EventEmitter implements CommandHost {
  readonly env: Record<string, string>;
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly #cwd: string;

  constructor({ env = {}, cwd = tmpdir(), stdin = '' }: CommandLineOptions = {}) {
    super();
    this.env = env;
    this.#cwd = cwd;
    this.stdin.end(stdin);
  }

  cwd(): string {
    return this.#cwd;
  }
}

interface Watched {
  stdout: Readable;
  stderr: Readable;
  /** Once both streams have ended. */
  exited: Promise<number | null>;
}

function watch({ stdout, stderr, exited }: Watched): Pick<RunningCommand, 'untilPrinted' | 'ended'> {
  const printed = { stdout: '', stderr: '' };
  const waiting = new Set<() => void>();
  stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.stdout += text;
    for (const look of waiting) look();
  });
  stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr += text;
  });
  const ended = exited.then((exitCode) => ({
    ...{ exitCode, ...printed },
    get document() {
      return JSON.parse(printed.stdout) as Run['document'];
    },
  }));
  return {
    ended,
    async untilPrinted(text) {
      const found = Promise.withResolvers<void>();
      const look = () => {
        if (printed.stdout.includes(text)) found.resolve();
      };
      waiting.add(look);
      look();
      void ended.then(({ exitCode, stdout: out, stderr: err }) =>
        found.reject(new Error(`it ended with ${exitCode} before it printed ${text}: ${out}${err}`)),
      );
      await found.promise.finally(() => waiting.delete(look));
    },
  };
}
