import { readFileSync } from 'node:fs';

/** Whether a process runs. One that has ended but whose parent has not noticed does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
