import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** Keys of all files in a folder. Names that begin with a dot are unfinished copies, or notes of the store. */
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
