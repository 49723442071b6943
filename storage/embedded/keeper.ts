import { type ChildProcess, spawn } from 'node:child_process';
import type { Launch } from './cluster-user.ts';

/**
 * A shell between us and Postgres. It runs in its own session, so that Ctrl-C in our terminal does not stop the
 * database before the drain. It stops Postgres when our pipe to it ends, because we closed it or were killed: fast
 * (SIGINT) first, then at once (SIGQUIT) if that takes too long. Once Postgres has ended, SIGUSR1 ends the watcher, so
 * that not even its sleep remains. A shell takes 1 MB, Node would take 40.
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
  readonly exited: Promise<{ code: number | null }>;
  stop(): Promise<void>;
}

export interface KeepOptions {
  launch: Launch;
  command: string[];
  env: NodeJS.ProcessEnv;
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
