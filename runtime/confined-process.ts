import { spawn } from 'node:child_process';

/**
 * Runs a program that parses untrusted input, in its own session and within limits. The shell around it holds the other
 * end of a pipe. When that closes, because its owner is gone, the shell kills the program.
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
  /** File descriptor of its standard output, which never passes through this process. */
  stdoutFd: number;
  onStderr: (text: string) => void;
  /** Address space; null for a program that reserves more than it uses. */
  memoryBytes: number | null;
  cpuSeconds: number;
  /** Per file that it writes. */
  fileBytes: number;
  signal: AbortSignal;
}

/** Resolves with its exit code, 128 and more if it was killed. @throws the signal's reason; the error of the spawn */
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
    // Without the keys and passwords of the server.
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', stdoutFd, 'pipe'],
  });
  child.stdin?.on('error', () => undefined);
  child.stderr?.setEncoding('utf8').on('data', onStderr);
  // The shell kills and reaps the program. If the shell were killed too, a zombie process would remain.
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
