import { globSync, lstatSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { UNUSED_FILES, type UnusedFiles } from './unused-files.ts';

/** A development package. npm omits it in production. */
const TYPE_CHECKER = 'typescript';

/**
 * Removes the files that Tandem never loads, except where the development packages are installed: TypeScript needs
 * declarations. Keeps licences and links. Idempotent.
 * @returns the size of the removed files
 */
export function removeUnusedFiles(nodeModules: string, table: readonly UnusedFiles[] = UNUSED_FILES): number {
  if (lstatSync(join(nodeModules, TYPE_CHECKER), { throwIfNoEntry: false })) return 0;
  let bytes = 0;
  const folders = new Set<string>();
  for (const path of unusedFiles(nodeModules, table)) {
    bytes += lstatSync(join(nodeModules, path)).size;
    rmSync(join(nodeModules, path));
    folders.add(dirname(path));
  }
  for (const folder of folders) removeEmptyFolders(nodeModules, folder);
  return bytes;
}

/** Paths below `nodeModules`, without links. */
export function unusedFiles(nodeModules: string, table: readonly UnusedFiles[] = UNUSED_FILES): Set<string> {
  const found = table.flatMap(({ paths, except = [] }) => globSync(paths, { cwd: nodeModules, exclude: except }));
  return new Set(found.filter((path) => !isLicence(path) && lstatSync(join(nodeModules, path)).isFile()));
}

/** Licences ask to stay with every copy. */
function isLicence(path: string): boolean {
  return /licen[cs]e|copying|copyright|notice/i.test(basename(path));
}

/** Removes the folder and its parents, up to the first that is not empty. */
function removeEmptyFolders(nodeModules: string, folder: string): void {
  try {
    for (let at = folder; at !== '.'; at = dirname(at)) rmdirSync(join(nodeModules, at));
  } catch {}
}
