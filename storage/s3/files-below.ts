import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/**
 * Returns the keys of all files in a folder. Skips names that start with a dot: unfinished copies and internal files.
 */
export async function filesBelow(folder: string): Promise<string[]> {
  const keys: string[] = [];
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue;
      const path = join(at, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) keys.push(relative(folder, path));
    }
  }
  return keys;
}
