import { readFile } from 'node:fs/promises';

export interface MemoryWatch extends Disposable {
  /** @param text first output of the process, its id @returns whether it is a process id */
  begin(text: string): boolean;
  readonly exceeded: AbortSignal;
}

const LOOKED_EVERY_MS = 50;
const PAGE_BYTES = 4096;

/** Watches a process's memory from outside, because the process may be too busy to check itself. */
export function watchMemory(mostBytes: number): MemoryWatch {
  const exceeded = new AbortController();
  let timer: NodeJS.Timeout | null = null;

  async function look(pid: number): Promise<void> {
    // The read fails if the process has ended, or if the system has no /proc; then the other limits apply.
    const pages = await readFile(`/proc/${pid}/statm`, 'latin1').catch(() => '');
    if (Number(pages.split(' ')[1] ?? 0) * PAGE_BYTES > mostBytes) {
      exceeded.abort(new Error('The process takes too much memory.'));
    }
  }

  return {
    exceeded: exceeded.signal,
    begin(text) {
      const pid = /^([1-9]\d{0,9})\n/.exec(text)?.[1];
      if (pid === undefined) return false;
      timer ??= setInterval(() => void look(Number(pid)), LOOKED_EVERY_MS);
      return true;
    },
    [Symbol.dispose]() {
      if (timer !== null) clearInterval(timer);
    },
  };
}
