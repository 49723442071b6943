import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRunning } from '../is-running.ts';
import { ROOT } from '../root.ts';

export interface ServerProcess {
  child: ChildProcess;
  output(): string;
  /** Fields of the JSON log line with that message, once logged. */
  logged(message: string): Promise<Record<string, unknown>>;
  /** Exit code, or the signal that ended the process. */
  exited: Promise<number | NodeJS.Signals | null>;
}

/** The environment that a program needs, without our settings. */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}

/** For processes that end soon: V8's new generation starts with 1 MB, and larger ones took a seventh less CPU time. */
export const SHORT_LIVED = ['--min-semi-space-size=16'];

/** `npm start` without npm, so that a signal reaches the server itself. */
export function startServerProcess(env: Record<string, string>, argv: string[] = []): ServerProcess {
  const child = spawn(process.execPath, [...SHORT_LIVED, join(ROOT, 'main.ts'), ...argv], {
    cwd: env.TANDEM_DATA_DIR ?? ROOT,
    env: { ...inheritedEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      for (const look of waiting) look();
    });
  }
  const exited = once(child, 'exit').then(([code, signal]) => code ?? signal);
  return {
    child,
    output: () => output,
    exited,
    async logged(message) {
      const found = Promise.withResolvers<Record<string, unknown>>();
      const look = () => {
        const line = output.split('\n').find((text) => text.startsWith('{') && text.includes(`"msg":"${message}"`));
        if (line) found.resolve(JSON.parse(line));
      };
      waiting.add(look);
      look();
      void exited.then((code) =>
        found.reject(new Error(`the server ended (${code}) without "${message}":\n${output}`)),
      );
      return await found.promise.finally(() => waiting.delete(look));
    },
  };
}

/** The process id of a data folder's embedded Postgres; null when it is not running. */
export async function postgresPid(dataDir: string): Promise<number | null> {
  const text = await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  return pid > 0 && isRunning(pid) ? pid : null;
}
