import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeConfig } from '../../config.ts';
import { ROOT } from '../root.ts';

export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export interface PackageJson {
  version: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  allowScripts?: Record<string, boolean>;
}

export function packageJson(): PackageJson {
  return JSON.parse(textOf('package.json')) as PackageJson;
}

/** All setting names, as `npm start -- --help` lists them. */
export function settingNames(): string[] {
  return [...describeConfig().matchAll(/^ {2}([A-Z][A-Z0-9_]+) /gm)].map((match) => match[1] ?? '');
}

const NOT_OURS = new Set(['node_modules', 'coverage']);

/** Top-level folders with any committed file. */
export function topLevelFolders(): string[] {
  return readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !NOT_OURS.has(entry.name))
    .map(({ name }) => name)
    .filter((name) => readdirSync(join(ROOT, name)).length > 0);
}
