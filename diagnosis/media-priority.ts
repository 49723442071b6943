import { readFile } from 'node:fs/promises';
import { mayRaisePriority } from '../runtime/priority.ts';
import { type Finding, ok } from './finding.ts';

const CHECK = 'media priority';

/** Checks whether media workers may run before other programs. Null outside of Linux. */
export async function checkMediaPriority(): Promise<Finding | null> {
  if (process.platform !== 'linux') return null;
  const status = await readFile('/proc/self/status', 'utf8');
  const limits = await readFile('/proc/self/limits', 'utf8');
  if (mayRaisePriority({ status, limits })) return ok(CHECK, 'Media workers run before other programs.');
  return ok(
    CHECK,
    'Media workers run like other programs. On a shared machine, allow nice values down to -10 (RLIMIT_NICE).',
  );
}
