import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const CONSOLE = join(import.meta.dirname, '../../console');

describe('the style sheets of the console', () => {
  it('share no class, because all of them apply to every page', async () => {
    const filesByClass = new Map<string, string[]>();
    for await (const file of glob('*/**/*.css', { cwd: CONSOLE, exclude: ['app', 'dist'] })) {
      const selectors = (await readFile(join(CONSOLE, file), 'utf8')).replaceAll(/\{[^{}]*\}/g, '{}');
      const names = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/gi)].map(([, name]) => name!));
      for (const name of names) filesByClass.set(name, [...(filesByClass.get(name) ?? []), file]);
    }
    expect(filesByClass.size).toBeGreaterThan(50);
    const shared = [...filesByClass].filter(([name, files]) => files.length > 1 && !name.startsWith('mantine-'));
    expect(shared).toEqual([]);
  });
});
