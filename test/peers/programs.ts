import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Debian programs that act as the other end of a call, as a proxy or as a monitor. */
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

/** Tests of a missing program are reported as skipped by name. */
export function peerAvailable(program: PeerProgram): boolean {
  return pathOf(program) !== null;
}

export interface RunningPeer {
  child: ChildProcessWithoutNullStreams;
  /** Last 20 000 characters of both outputs. */
  output: () => string;
  exited: Promise<number | null>;
  /** Ends this process only; resolves after its exit. */
  stop: () => Promise<void>;
}

const SETPRIV = pathOf('setpriv');

interface PeerOptions {
  args: readonly string[];
  cwd: string;
  env?: Record<string, string>;
}

/**
 * Runs a peer in its own folder with open standard input. On Linux the peer ends with this process, however that ends:
 * linphonec (5.1) otherwise uses a whole core once its standard input is closed.
 */
export function runPeer(program: PeerProgram, options: PeerOptions): RunningPeer {
  const path = pathOf(program);
  if (path === null) throw new Error(`${program} is not installed`);
  const { args, cwd, env } = options;
  const tied = SETPRIV === null ? [path, ...args] : [SETPRIV, '--pdeathsig', 'KILL', path, ...args];
  const child = spawn(tied[0]!, tied.slice(1), { cwd, env: { ...process.env, ...env }, stdio: 'pipe' });
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

/** Resolves when the port is bound, according to /proc, without binding it. */
export async function untilListening(port: number, transport: 'udp' | 'tcp', peer: RunningPeer): Promise<void> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  for (const deadlineMs = performance.now() + 10_000; performance.now() < deadlineMs; ) {
    const table = await readFile(`/proc/net/${transport}`, 'latin1');
    // Column 2 is the local address; state 0A is LISTEN.
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
