import { readFile } from 'node:fs/promises';

export interface MemoryWatch extends Disposable {
  /** @param text what the process says first: its id @returns whether that is what it said */
  begin(text: string): boolean;
  /** Aborted once the process has more memory than it may. */
  readonly exceeded: AbortSignal;
}

const LOOKED_EVERY_MS = 50;
const PAGE_BYTES = 4096;

/** Looks from outside at how much memory a process has: it may be too busy to look itself. */
export function watchMemory(mostBytes: number): MemoryWatch {
  const exceeded = new AbortController();
  let timer: NodeJS.Timeout | null = null;

  async function look(pid: number): Promise<void> {
    // A process that has ended has no memory; nor has any where there is no /proc, and other limits hold.
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
