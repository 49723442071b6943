import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Debian programs that are run as the other end of a call, beside the server, or to watch it. */
export type PeerProgram =
  | 'sipp'
  | 'baresip'
  | 'kamailio'
  | 'linphonec'
  | 'prometheus'
  | 'promtool'
  | 'caddy'
  | 'redis-server'
  | 'sh';

/** False where the program is not installed: then its tests are reported as skipped, by name. */
export function peerAvailable(program: PeerProgram): boolean {
  return pathOf(program) !== null;
}

export interface RunningPeer {
  child: ChildProcessWithoutNullStreams;
  /** What it has written to both outputs, the last 20 000 characters. */
  output: () => string;
  exited: Promise<number | null>;
  /** Ends this process and no other; resolves when it is gone. */
  stop: () => Promise<void>;
}

interface PeerOptions {
  args: readonly string[];
  cwd: string;
  /** Added to our own environment. */
  env?: Record<string, string>;
}

/** Runs a peer in its own folder. Its standard input stays open. */
export function runPeer(program: PeerProgram, options: PeerOptions): RunningPeer {
  const path = pathOf(program);
  if (path === null) throw new Error(`${program} is not installed`);
  const { args, cwd, env } = options;
  const child = spawn(path, args, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' });
  child.stdin.on('error', () => {});
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString('latin1')).slice(-20_000);
    });
  }
  const exited = new Promise<number | null>((resolve) => {
    child.on('exit', (code) => resolve(code));
    child.on('error', () => resolve(null));
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  };
  return { child, output: () => output, exited, stop };
}

/** Resolves when somebody listens, as the kernel says; looking must not take the port away from who wants it. */
export async function untilListening(port: number, transport: 'udp' | 'tcp', peer: RunningPeer): Promise<void> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  for (const deadlineMs = performance.now() + 10_000; performance.now() < deadlineMs; ) {
    const table = await readFile(`/proc/net/${transport}`, 'latin1');
    // The second column is the local address; 0A is LISTEN.
    const isBound = table.split('\n').some((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      return `:${local.split(':')[1]} ` === wanted && (transport === 'udp' || state === '0A');
    });
    if (isBound) return;
    if (peer.child.exitCode !== null) break;
    await delay(10);
  }
  throw new Error(`the peer does not listen on ${transport} port ${port}: ${peer.output()}`);
}

/** Null where the program is not installed. */
export function pathOf(program: string): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      const path = join(folder, program);
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return null;
}
