import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { entriesOf, loadsOf, packageOf } from '../module-imports.ts';
import { ROOT } from '../root.ts';

/** Finds the packages in the server's process whose licence does not permit that. */

const PERMISSIVE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'Unlicense'];

/** Packages with an incomplete licence in package.json. */
const CORRECTIONS: readonly { name: RegExp; licence: string; because: string }[] = [
  {
    name: /^sherpa-onnx-/,
    licence: 'GPL-3.0-or-later',
    because: 'package.json names the licence of its own code; its native library contains eSpeak NG',
  },
  {
    name: /^wasm-media-encoders$/,
    licence: 'LGPL-2.0-or-later',
    because: 'package.json names the licence of its own code; its WebAssembly is LAME',
  },
  { name: /^only$/, licence: 'MIT', because: 'package.json names none; its Readme says MIT' },
];

/** Packages without a permissive licence, and why they may be loaded. */
const ACCEPTED: Readonly<Record<string, string>> = {
  'wasm-media-encoders': 'LAME is a separate file that anyone can replace, which is what the LGPL asks for',
};

/** Entries that run as separate processes; all others are threads. */
const CHILD_PROCESSES = /(child|ffmpeg-wasm)\.ts$/;

/** One line per forbidden package: its name, and its licence or `unknown`. */
export function refusedLicences(packages: Iterable<string>): string[] {
  return [...packages]
    .map((folder) => licenceOf(folder))
    .filter(({ name, licence }) => !(name in ACCEPTED || isPermissive(licence)))
    .map(({ name, licence }) => `${name}: ${licence}`);
}

/** Every module of ours that the server or its threads may load. */
export function modulesInProcess(entry: string): Set<string> {
  const found = new Set([entry]);
  for (const module of found) {
    const threads = entriesOf(module).filter((target) => !CHILD_PROCESSES.test(target));
    for (const target of [...loadsOf(module), ...threads]) {
      if (target.startsWith('.')) found.add(join(dirname(module), target));
    }
  }
  return found;
}

/** Folders of the packages that these modules load or read, with their dependencies. */
export function packagesLoadedBy(modules: Iterable<string>): Set<string> {
  const found = new Set<string>();
  const add = (name: string, from: string) => {
    const folder = installedFolder(name, from);
    if (folder !== null) found.add(folder);
  };
  for (const module of modules) {
    const bare = loadsOf(module).filter((target) => !(target.startsWith('.') || isBuiltin(target)));
    for (const target of bare) add(packageOf(target), ROOT);
  }
  for (const folder of found) {
    const { dependencies, optionalDependencies, peerDependencies } = packageJson(folder);
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      add(name, folder);
    }
  }
  return found;
}

interface PackageJson {
  name: string;
  license?: unknown;
  dependencies?: object;
  optionalDependencies?: object;
  peerDependencies?: object;
}

function packageJson(folder: string): PackageJson {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson;
}

function licenceOf(folder: string): { name: string; licence: string } {
  const { name, license } = packageJson(folder);
  const correction = CORRECTIONS.find((entry) => entry.name.test(name));
  return { name, licence: correction?.licence ?? (typeof license === 'string' ? license : 'unknown') };
}

/** Evaluates an SPDX expression: all parts of AND, any part of OR. */
function isPermissive(licence: string): boolean {
  const alternatives = licence.replace(/[()]/g, '').split(' OR ');
  return alternatives.some((alternative) => alternative.split(' AND ').every((one) => PERMISSIVE.includes(one)));
}

/** Resolves like Node; null for packages that are not installed, such as builds for other platforms. */
function installedFolder(name: string, from: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (folder === dirname(folder)) return null;
  }
}
