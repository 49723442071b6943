import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CATALOGUE } from '../../speech/models/catalogue.ts';
import { untilTruthy } from '../eventually.ts';
import { writeHummingVits } from '../speech/humming-models.ts';
import { type FileServer, serveFile } from '../speech/models/file-server.ts';
import { writeOfflineCtc } from '../speech/whistled-models.ts';
import { serverFolder, startTandemProcess, tandem, tandemProcess } from './command-line.ts';

let folder: Awaited<ReturnType<typeof serverFolder>>;
let home: string;
let modelsDir: string;
let archive: Buffer;
let server: FileServer;

beforeAll(async () => {
  folder = await serverFolder();
  home = await mkdtemp(join(tmpdir(), 'tandem-cli-models-'));
  modelsDir = join(home, 'models');
  await writeOfflineCtc(join(home, 'whistle-en'));
  archive = spawnSync('tar', ['-c', '-z', '-C', home, 'whistle-en']).stdout;
  server = await serveFile({ bytes: archive, etag: '"one"' });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
  await folder[Symbol.asyncDispose]();
});

const models = (...argv: string[]) => tandem(['models', ...argv], { cwd: folder.path, env: { MODELS_DIR: modelsDir } });

function bytesBelow(path: string): number {
  const names = existsSync(path) ? readdirSync(path).filter((name) => !name.endsWith('.json')) : [];
  return names.reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}

/** Each test continues with the folder of the previous one. */
describe('tandem models', () => {
  it('lists available models', async () => {
    const { exitCode, document } = await models('list', '--json');
    expect(exitCode).toBe(0);
    const { models: listed } = document.data as { models: object[] };
    expect(listed).toHaveLength(CATALOGUE.length);
    expect(listed[0]).toMatchObject({ name: CATALOGUE[0]!.name, kind: 'stt', live: true, status: 'available' });
    expect((await models('list')).stdout).toContain(modelsDir);
  });

  it('finds nothing to check', async () => {
    const { exitCode, stdout } = await models('check');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `No model is in ${modelsDir}.\n` });
  });

  it('finds a relative MODELS_DIR in the folder of the server', async () => {
    const options = { cwd: folder.path, env: { MODELS_DIR: 'mine' } };
    const { document } = await tandem(['models', 'list', '--json'], options);
    expect(document.data).toMatchObject({ models_dir: join(folder.path, 'mine') });
    // Printed as it is set, if it can be used as such.
    const { stdout } = await tandemProcess(['models', 'list'], options);
    expect(stdout).toMatch(/\nThey lie in mine\.\n$/);
  });

  it('rejects an archive with another checksum', async () => {
    const { exitCode, stderr } = await models('fetch', server.url, '--name', 'whistle-en', '--sha256', 'a'.repeat(64));
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: .*SHA-256.*\n$/);
  });

  it('resumes an interrupted download', async () => {
    const half = Math.floor(archive.length / 2);
    await using slow = await serveFile({ bytes: archive, etag: '"one"', cutAfter: [half] });
    const argv = ['models', 'fetch', slow.url, '--name', 'interrupted-en', '--json'];
    const options = { cwd: folder.path, env: { MODELS_DIR: modelsDir } };
    const { interrupt, ended } = startTandemProcess(argv, options);
    await untilTruthy(() => bytesBelow(join(modelsDir, '.downloads')) >= half);
    interrupt();
    const interrupted = await ended;
    expect(interrupted.exitCode).toBe(1);
    expect(interrupted.document).toMatchObject({ success: false, code: 'INTERRUPTED' });
    expect((await tandem(argv, options)).exitCode).toBe(0);
    expect(slow.requests.map(({ range }) => range)).toEqual([undefined, `bytes=${half}-`]);
    await rm(join(modelsDir, 'stt/interrupted-en'), { recursive: true });
    await rm(join(modelsDir, 'models.lock.json'));
  });

  it('downloads a model from a URL and prints its checksum', async () => {
    const { exitCode, document } = await models('fetch', server.url, '--name', 'whistle-en', '--json');
    expect(exitCode).toBe(0);
    const sha256 = createHash('sha256').update(archive).digest('hex');
    expect(document.data).toMatchObject({ name: 'whistle-en', kind: 'stt', sha256, verified: false, files: 2 });
    const listed = (await models('list')).stdout;
    expect(listed).toMatch(/^whistle-en +stt +en +no +- +installed$/m);
  });

  it('rejects a second download', async () => {
    const { exitCode, document } = await models('fetch', server.url, '--name', 'whistle-en', '--json');
    expect({ exitCode, code: document.code }).toEqual({ exitCode: 1, code: 'ALREADY_INSTALLED' });
  });

  it('checks a model by loading it', async () => {
    const { exitCode, stdout } = await models('check');
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '✓ whistle-en\nAll is well.\n' });
  });

  it('reports that an unmanaged model can only be loaded', async () => {
    await writeOfflineCtc(join(modelsDir, 'stt/brought-en'));
    const { exitCode, stdout } = await models('check', 'brought-en');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('✓ brought-en (not fetched by us');
    expect(stdout).not.toContain('whistle-en');
  });

  it('finds changed files, and models that sherpa-onnx cannot load', async () => {
    await truncate(join(modelsDir, 'stt/whistle-en/model.onnx'), 1000);
    await writeFile(join(modelsDir, 'stt/brought-en/tokens.txt'), 'no tokens\n');
    const { exitCode, document } = await models('check', '--json');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ success: false, code: 'BROKEN_MODELS' });
    const { models: checked } = document.data as { models: { name: string; problems: string[] }[] };
    const problems = Object.fromEntries(checked.map((model) => [model.name, model.problems.join()]));
    expect(problems['whistle-en']).toContain('model.onnx has 1000 bytes');
    expect(problems['brought-en']).toContain('sherpa-onnx cannot load it');
    expect((await models('list')).stdout).toMatch(/^whistle-en .* broken: model\.onnx is damaged/m);
  });

  it('lists synthesis models, and checks them by synthesis', async () => {
    const env = { MODELS_DIR: join(home, 'voices') };
    await writeHummingVits(join(env.MODELS_DIR, 'tts/hum-en'));
    await writeHummingVits(join(env.MODELS_DIR, 'tts/hoarse-en'));
    await writeFile(join(env.MODELS_DIR, 'tts/hoarse-en/tokens.txt'), 'no tokens at all\n');
    const listed = await tandem(['models', 'list'], { cwd: folder.path, env });
    expect(listed.stdout).toMatch(/^hum-en +tts +en +- +- +installed$/m);
    const { document } = await tandem(['models', 'check', '--json'], { cwd: folder.path, env });
    const { models: checked } = document.data as { models: { name: string; problems: string[] }[] };
    const problems = Object.fromEntries(checked.map((model) => [model.name, model.problems.join()]));
    expect(problems['hum-en']).toBe('');
    expect(problems['hoarse-en']).toContain('sherpa-onnx cannot load it');
  });

  it('finds that a model is missing', async () => {
    await rm(join(modelsDir, 'stt/whistle-en'), { recursive: true });
    const { exitCode, stdout } = await models('check', 'whistle-en');
    expect(exitCode).toBe(1);
    expect(stdout).toContain('✗ whistle-en\n  it was fetched, and is gone');
  });

  it.each([
    { typed: ['fetch'], says: 'NAME|URL missing' },
    { typed: ['fetch', 'whisper-enormous'], says: 'no model "whisper-enormous"' },
    { typed: ['fetch', 'http://127.0.0.1:9/x.tar', '--sha256', 'abc'], says: '--sha256 takes 64' },
    { typed: ['fetch', 'http://127.0.0.1:9/x.tar', '--for', 'fun'], says: '--for takes stt' },
    { typed: ['fetch', 'http://127.0.0.1:9/x.tar', '--name', '../x'], says: '--name takes' },
  ])('rejects $typed', async ({ typed, says }) => {
    const { exitCode, stderr } = await models(...typed);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(says);
  });

  it('names an unknown model, and an unreachable server', async () => {
    expect(await models('check', 'nothing')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('nothing') });
    const { exitCode, stderr } = await models('fetch', 'http://127.0.0.1:9/x.tar');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: http:\/\/127\.0\.0\.1:9\/x\.tar cannot be fetched \(.*\)\n$/);
  });
});
