import { readFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Checks the Node version, which the server would use too. */
export function checkRuntime(): Finding {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const wanted = manifest.dependencies.node ?? '';
  const actual = process.versions.node;
  if (actual === wanted) return ok('runtime', `Node ${actual}`);
  const majorOf = (version: string) => Number(version.split('.')[0]);
  const advice = 'Run npm ci, and start with npm start or bin/tandem, which take the Node that comes with it.';
  if (majorOf(actual) < majorOf(wanted)) return fail('runtime', `Node ${actual} is older than ${wanted}.`, advice);
  return warn('runtime', `Node ${actual} instead of the ${wanted} that is tested.`, advice);
}

/** Lists optional programs. */
export async function checkTools(): Promise<Finding> {
  const tools = { sipp: 'tests', baresip: 'tests', ffmpeg: 'reads uploads faster than the bundled one' };
  const found = await Promise.all(
    Object.entries(tools).map(
      async ([name, use]) => `${name} ${(await isInstalled(name)) ? 'is installed' : 'is not installed'} (${use})`,
    ),
  );
  return ok('optional programs', found.join(', '));
}

async function isInstalled(program: string): Promise<boolean> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = await Promise.allSettled(folders.map((folder) => access(join(folder, program), constants.X_OK)));
  return found.some(({ status }) => status === 'fulfilled');
}
