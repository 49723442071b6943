import { resolve } from 'node:path';

/** The part of a process that commands use. `process` is one. */
export interface CommandHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of relative file arguments. */
  cwd(): string;
  readonly stdin: NodeJS.ReadableStream & Interactive;
  readonly stdout: NodeJS.WritableStream & Interactive;
  readonly stderr: NodeJS.WritableStream & Interactive;
  on(signal: Interrupt, listener: () => void): unknown;
  once(signal: Interrupt, listener: () => void): unknown;
  off(signal: Interrupt, listener: () => void): unknown;
}

/** They end the process if nothing listens. */
type Interrupt = 'SIGINT' | 'SIGTERM';

interface Interactive {
  readonly isTTY?: boolean;
}

/**
 * Makes a path that is relative to a folder usable by this process. It stays as it is if that folder is the working
 * directory, because system errors repeat it.
 */
export function pathIn(folder: string, path: string): string {
  return folder === process.cwd() ? path : resolve(folder, path);
}
