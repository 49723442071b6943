import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inheritedEnvironment } from '../process/server-process.ts';

export const EXECUTABLE = resolve(import.meta.dirname, '../../bin/tandem');

export interface Run {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** The only JSON document on standard output; throws if there is any other output. */
  document: { success: boolean; code?: string; message?: string; data: never };
}

export interface RunningCommand {
  child: ChildProcess;
  untilPrinted(text: string): Promise<void>;
  ended: Promise<Run>;
}

export interface CommandLineOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string;
  executable?: string;
}

/** Runs `bin/tandem` in a separate process without our environment. */
export function startTandemCommand(
  argv: readonly string[],
  { env = {}, cwd = tmpdir(), stdin, executable = EXECUTABLE }: CommandLineOptions = {},
): RunningCommand {
  const child = spawn(executable, argv, {
    cwd,
    env: { ...inheritedEnvironment(), TMPDIR: tmpdir(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const waiting = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const look of waiting) look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // The command may stop reading early.
  child.stdin.on('error', () => {}).end(stdin ?? '');
  const ended = once(child, 'close').then(([exitCode]) => ({
    exitCode: exitCode as number | null,
    stdout,
    stderr,
    get document() {
      return JSON.parse(stdout) as Run['document'];
    },
  }));
  return {
    child,
    ended,
    async untilPrinted(text) {
      const printed = Promise.withResolvers<void>();
      const look = () => {
        if (stdout.includes(text)) printed.resolve();
      };
      waiting.add(look);
      look();
      void ended.then(({ exitCode }) =>
        printed.reject(new Error(`it ended with ${exitCode} before it printed ${text}: ${stdout}${stderr}`)),
      );
      await printed.promise.finally(() => waiting.delete(look));
    },
  };
}

export async function tandem(argv: readonly string[], options?: CommandLineOptions): Promise<Run> {
  return await startTandemCommand(argv, options).ended;
}

/** A folder with an empty `.env`, which shadows a developer's settings. */
export async function serverFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'tandem-cli-'));
  await writeFile(join(path, '.env'), '');
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
