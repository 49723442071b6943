import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../root.ts';

/**
 * Compares `openapi.json` with that of a git revision, without its words: `npm run openapi:shape -- main`. Prints each
 * route, schema, code or default that differs, and exits with 1 if one does.
 */
const WORDS = new Set(['summary', 'description', 'title', 'example', 'examples']);
const MAPS = new Set([
  'properties',
  'patternProperties',
  'responses',
  'headers',
  'content',
  'schemas',
  'paths',
  'webhooks',
]);
const [revision = 'HEAD'] = process.argv.slice(2);
const before = execFileSync('git', ['show', `${revision}:openapi.json`], { cwd: ROOT, maxBuffer: 2 ** 28 });
const differences = differencesOf(shapeOf(before), shapeOf(readFileSync(join(ROOT, 'openapi.json'))));
console.log(differences.length === 0 ? `openapi.json has the same shape as at ${revision}` : differences.join('\n'));
process.exitCode = differences.length === 0 ? 0 : 1;

/** Path of each value that is not words, with the value as JSON. */
function shapeOf(json: Buffer): Map<string, string> {
  const shape = new Map<string, string>();
  visit(JSON.parse(json.toString()), [], 'object');
  return shape;

  /** The names of `map` are those of the API, such as a property `title`. */
  function visit(value: unknown, path: readonly string[], kind: 'object' | 'map'): void {
    if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
      shape.set(path.join(' > '), JSON.stringify(value));
      return;
    }
    for (const [name, field] of Object.entries(value)) {
      if (kind === 'object' && WORDS.has(name)) continue;
      visit(field, [...path, name], kind === 'object' && MAPS.has(name) ? 'map' : 'object');
    }
  }
}

function differencesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])];
  return paths
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path}: ${before.get(path) ?? '(none)'} -> ${after.get(path) ?? '(none)'}`);
}
