import { access, constants, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TandemError } from '../../machines/errors.ts';

/** Gives a data directory one live owner. */
export interface OwnerLock {
  release(): Promise<void>;
}

/** SQLite's code for a database that another connection has locked. */
const SQLITE_BUSY = 5;

/** Locks of this process by file. Keeps them from the garbage collector, which would release them. */
const held = new Map<string, DatabaseSync>();

/**
 * Locks `<file>-lock` and writes our process id to `file`. The lock is the one that SQLite takes on its databases,
 * because Node has none of its own: the kernel releases it when its process ends, and keeps it from processes in other
 * containers, which see other process ids.
 * @throws TandemError `STORAGE_UNAVAILABLE` while another process, or another part of this one, owns the directory, and
 * on a file system without locks
 */
export async function takeOwnership({ file, what }: { file: string; what: string }): Promise<OwnerLock> {
  const lockFile = `${file}-lock`;
  // Names the folder if it is not writable, which SQLite does not.
  await access(path.dirname(file), constants.W_OK);
  // SQLite locks a file that it cannot write, such as one of root, for reading only: two processes would own it.
  await access(lockFile, constants.W_OK).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  });
  const lock = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    // Nothing is written, so no journal file that a killed process would leave.
    lock.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    lock.close();
    throw new TandemError('STORAGE_UNAVAILABLE', await refusal(error as { errcode?: number }, { file, what }), {
      cause: error,
    });
  }
  held.set(file, lock);
  // Only for the message of others, so a full disk does not matter.
  await writeFile(file, `${process.pid}\n`, { mode: 0o600 }).catch(() => {});
  return {
    async release() {
      if (held.get(file) !== lock) return;
      held.delete(file);
      await rm(file, { force: true });
      lock.close();
    },
  };
}

async function refusal(error: { errcode?: number }, { file, what }: { file: string; what: string }): Promise<string> {
  if (error.errcode !== SQLITE_BUSY) {
    return `${what} cannot be locked: ${(error as Error).message}. Move it to a file system with locks.`;
  }
  const pid = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10);
  // Two servers in containers often have one process id.
  const isHere = pid === process.pid ? held.has(file) : pid > 0 && isAlive(pid);
  return isHere
    ? `${what} is in use by the running process ${pid}.`
    : `${what} is in use by a process of another container or machine. Stop it, or use another folder.`;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
