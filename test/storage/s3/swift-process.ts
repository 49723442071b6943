import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Other Python installations do not find Debian's packages. */
const PYTHON = '/usr/bin/python3';
export const SWIFT_CREDENTIALS = { accessKeyId: 'tandem:test', secretAccessKey: 'a-secret-of-the-tests' };

/** OpenStack Swift in a process of its own. */
export interface SwiftProcess {
  readonly port: number;
  stop(): Promise<void>;
}

/** @param folder created, for its files */
export async function startSwift(folder: string): Promise<SwiftProcess> {
  await mkdir(folder);
  const script = join(import.meta.dirname, 'swift-server.py');
  const child = spawn(PYTHON, [script, folder, SWIFT_CREDENTIALS.secretAccessKey], { stdio: ['pipe', 'pipe', 'pipe'] });
  const port = await portOf(child);
  return {
    port,
    async stop() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** Whether Debian's python3-swift is installed. Importing it would take most of a second. */
export function isSwiftInstalled(): boolean {
  const program = 'import importlib.util, sys; sys.exit(importlib.util.find_spec("swift") is None)';
  try {
    execFileSync(PYTHON, ['-c', program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function portOf(child: ChildProcess): Promise<number> {
  let errors = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  for await (const line of createInterface({ input: child.stdout! })) {
    const port = /^listening (\d+)$/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`Swift did not start: ${errors}`);
}
