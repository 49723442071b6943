import { spawn } from 'node:child_process';

/**
 * Runs a program that reads what strangers send, in a session and within limits of its own. The shell around it holds
 * the other end of a pipe: when that ends, because whoever started it is gone, the program is killed.
 */
const CONFINE = `
ulimit -c 0
ulimit -v "$1" && ulimit -t "$2" && ulimit -f "$3" || exit 125
shift 3
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
( read -r _; kill -KILL "$program" ) <&3 >/dev/null 2>&1 3<&- &
watcher=$!
exec 3<&-
wait "$program"
status=$?
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$status"
`;
const BYTES_PER_BLOCK = 512;

export interface ConfinedOptions {
  command: readonly string[];
  /** Open file that its standard output goes to: it never passes through this process. */
  stdoutFd: number;
  /** Each chunk of its standard error. */
  onStderr: (text: string) => void;
  /** Address space; null for a program that reserves more than it uses. */
  memoryBytes: number | null;
  cpuSeconds: number;
  /** Of any file it writes. */
  fileBytes: number;
  /** Aborting kills it. */
  signal: AbortSignal;
}

/** Resolves with its exit code, 128 and more when it was killed. @throws the signal's reason; the error of the spawn */
export async function runConfined(options: ConfinedOptions): Promise<number> {
  const { command, stdoutFd, onStderr, memoryBytes, cpuSeconds, fileBytes, signal } = options;
  signal.throwIfAborted();
  const limits = [
    memoryBytes === null ? 'unlimited' : String(Math.ceil(memoryBytes / 1024)),
    String(cpuSeconds),
    String(Math.ceil(fileBytes / BYTES_PER_BLOCK)),
  ];
  const child = spawn('/bin/sh', ['-c', CONFINE, 'tandem-confined', ...limits, ...command], {
    cwd: '/',
    detached: true,
    // Keys and passwords of the server are none of its business.
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', stdoutFd, 'pipe'],
  });
  child.stdin?.on('error', () => undefined);
  child.stderr?.setEncoding('utf8').on('data', onStderr);
  // The shell kills the program and sees it off; killed with it, it would stay in the table of processes.
  const kill = () => child.stdin?.destroy();
  signal.addEventListener('abort', kill, { once: true });
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode) => resolve(exitCode ?? 137));
    });
    signal.throwIfAborted();
    return code;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}
