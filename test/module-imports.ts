import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** Parses imports from the text of modules. */

/** Static, dynamic and re-exporting imports, including types, and worker modules named by URL. */
export function importsOf(module: string): string[] {
  return matchesIn(codeOf(module), [...IMPORTS, URLS]);
}

/** Modules that running this one loads: imports without types, and packages it requires or reads. */
export function loadsOf(module: string): string[] {
  const code = codeOf(module)
    .replace(/\b(import|export) type\b[^;]*;/g, '')
    .replace(/\btypeof import\s*\([^)]*\)/g, '');
  return matchesIn(code, [...IMPORTS, /\b(?:require|resolve)\(\s*'([^'./][^']*)'/g]);
}

/** Modules named by URL: entries of threads and child processes. */
export function entriesOf(module: string): string[] {
  return matchesIn(codeOf(module), [URLS]);
}

export function packageOf(target: string): string {
  const parts = target.split('/');
  return target.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}

export function codeOf(module: string): string {
  const text = readFileSync(join(ROOT, module), 'utf8');
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}

const IMPORTS = [/\bfrom\s+'([^']+)'/g, /\bimport\s*\(\s*'([^']+)'/g, /\bimport\s+'([^']+)'/g];
const URLS = /new URL\(\s*'(\.[^']+\.ts)'/g;

function matchesIn(code: string, patterns: readonly RegExp[]): string[] {
  return patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''));
}
