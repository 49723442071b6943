import { readdir, readFile } from 'node:fs/promises';
import { TICK_MS } from './stt-usage.ts';

/**
 * Returns the CPU time of a process and all its descendants in milliseconds, such as a server with its Postgres and
 * recognizers.
 */
export async function cpuMsOfFamily(pid: number): Promise<number> {
  const stats = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map(async (name) => {
        const text = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '');
        // The program's name, in brackets, may contain anything.
        const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
        return { pid: Number(name), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
      }),
  );
  const family = new Set([pid]);
  for (let before = 0; before < family.size; ) {
    before = family.size;
    for (const each of stats) if (family.has(each.parent)) family.add(each.pid);
  }
  return stats.filter((each) => family.has(each.pid)).reduce((sum, { ticks }) => sum + ticks * TICK_MS, 0);
}
