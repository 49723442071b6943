import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Nice value of a process, or of the thread at a path such as `self/task/7` (proc(5)). */
export function nicenessOf(path: number | string): number {
  const [, fields = ''] = readFileSync(`/proc/${path}/stat`, 'utf8').split(') ');
  return Number(fields.split(' ')[16]);
}

/** Nice values of this process' threads with a name. */
export function nicenessOfThreads(name: string): number[] {
  return readdirSync('/proc/self/task')
    .map((id) => `self/task/${id}`)
    .filter((path) => readFileSync(`/proc/${path}/comm`, 'utf8').trim() === name)
    .map(nicenessOf);
}

/** The nice value that coreutils' `nice` can set. It warns and continues if the system forbids it. */
export function raisedNiceness(): number {
  return Number(execFileSync('nice', ['-n', '-10', 'nice'], { stdio: ['ignore', 'pipe', 'ignore'] }));
}
