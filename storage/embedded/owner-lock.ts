import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { TandemError } from '../../machines/errors.ts';

/**
 * Gives a data directory one live owner. A file names the owning process exactly (process id, start time, boot of the
 * machine), so a reused process id is not mistaken for it. No clean-up is needed after a kill.
 */
export interface OwnerLock {
  release(): Promise<void>;
}

interface Owner {
  pid: number;
  startedAt: string;
  token: string;
}

/** @throws TandemError `STORAGE_UNAVAILABLE` while another process, or another part of this one, owns it */
export async function takeOwnership({ file, what }: { file: string; what: string }): Promise<OwnerLock> {
  const text = JSON.stringify({
    pid: process.pid,
    startedAt: (await startOf(process.pid)) ?? '',
    token: randomUUID(),
  } satisfies Owner);
  for (;;) {
    if (await createExclusively(file, text)) return { release: () => removeIfStill(file, text) };
    const found = await readIfThere(file);
    if (found === null) continue;
    const owner = parse(found);
    if (owner !== null && (await startOf(owner.pid)) === owner.startedAt) {
      throw new TandemError('STORAGE_UNAVAILABLE', `${what} is in use by the running process ${owner.pid}.`);
    }
    await discard(file, found);
  }
}

/** Creates the file atomically, so that partial content is never read. */
async function createExclusively(file: string, text: string): Promise<boolean> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, text, { mode: 0o600 });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes a dead owner's file. If another process has replaced it meanwhile, restores that file. */
async function discard(file: string, dead: string): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if ((await readIfThere(aside)) !== dead) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}

async function removeIfStill(file: string, text: string): Promise<void> {
  if ((await readIfThere(file)) === text) await rm(file, { force: true });
}

async function readIfThere(file: string): Promise<string | null> {
  return await readFile(file, 'utf8').catch(() => null);
}

function parse(text: string): Owner | null {
  try {
    const owner = JSON.parse(text) as Owner;
    return Number.isInteger(owner.pid) && owner.pid > 0 ? owner : null;
  } catch {
    return null;
  }
}

/**
 * Start time of a process, as boot and clock ticks (proc(5), field 22 of stat); null if it does not exist. Without
 * /proc it only checks whether the process is alive.
 */
async function startOf(pid: number): Promise<string | null> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The second field, the command in brackets, may contain anything: count from its end.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? null : `${boot.trim()}/${fields[18]}`;
  } catch {
    if (process.platform === 'linux') return null;
    return isAlive(pid) ? 'alive' : null;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
