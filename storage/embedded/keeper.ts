import { type ChildProcess, spawn } from 'node:child_process';
import type { Launch } from './cluster-user.ts';

/**
 * The keeper stands between us and Postgres: a shell in a session of its own, so that Ctrl-C in our terminal does not
 * reach the database before the drain is over. It holds the other end of a pipe. When the pipe ends, because we closed
 * it or because we were killed, it stops Postgres: fast (SIGINT) first, at once (SIGQUIT) when that takes too long.
 * Once Postgres is gone the watcher is told so (SIGUSR1) and waited for, so that not even its sleep is left behind.
 * It is a shell and not Node because it is there all the time and 1 MB is less than 40.
 */
const KEEPER = `
trap '' INT TERM HUP QUIT
exec 3<&0
"$@" </dev/null 3<&- &
postgres=$!
(
  nap=
  trap '[ -z "$nap" ] || kill -KILL "$nap"; exit 0' USR1
  while read -r _; do :; done
  kill -INT "$postgres"
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    sleep 1 &
    nap=$!
    wait "$nap"
    kill -0 "$postgres" || exit 0
  done
  kill -QUIT "$postgres"
) <&3 >/dev/null 2>&1 3<&- &
watcher=$!
exec 3<&-
wait "$postgres"
status=$?
kill -USR1 "$watcher" 2>/dev/null
wait "$watcher"
exit "$status"
`;

export interface KeptProcess {
  /** Resolves once the process is gone, however it went. */
  readonly exited: Promise<{ code: number | null }>;
  /** Asks for the stop and waits for it. Idempotent. */
  stop(): Promise<void>;
}

export interface KeepOptions {
  launch: Launch;
  command: string[];
  env: NodeJS.ProcessEnv;
  /** Every line the process writes. */
  onLine: (line: string) => void;
}

export function keep({ launch, command, env, onLine }: KeepOptions): KeptProcess {
  const [file, ...args] = [...launch.prefix, '/bin/sh', '-c', KEEPER, 'tandem-postgres', ...command];
  const child = spawn(file!, args, {
    cwd: '/',
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
    uid: launch.uid,
    gid: launch.gid,
  });
  const exited = new Promise<{ code: number | null }>((resolve) => {
    child.once('error', (error) => {
      onLine(error.message);
      resolve({ code: null });
    });
    child.once('exit', (code) => resolve({ code }));
  });
  child.stdin.on('error', () => undefined);
  readLines(child, onLine);
  return {
    exited,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

function readLines(child: ChildProcess, onLine: (line: string) => void): void {
  let rest = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
