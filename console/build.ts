import { readdir, readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'vite';

/** `npm run console:build`: writes `console/dist`, with a compressed copy of each text file. */

const COMPRESSED = new Set(['.js', '.css', '.svg']);

export async function buildConsole(): Promise<void> {
  // Any other value, such as Vitest's `test`, bundles React for development, which is several times slower.
  process.env.NODE_ENV = 'production';
  await build({ configFile: join(import.meta.dirname, 'vite.config.ts'), logLevel: 'warn' });
  const dist = join(import.meta.dirname, 'dist');
  const names = await readdir(dist, { recursive: true });
  await Promise.all(names.filter((name) => COMPRESSED.has(extname(name))).map((name) => compress(join(dist, name))));
}

async function compress(path: string): Promise<void> {
  const content = await readFile(path);
  const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content, brotli));
  await writeFile(`${path}.gz`, await promisify(gzip)(content));
}

if (import.meta.main) await buildConsole();
