import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findInstalledModels } from '../../../speech/engines/sherpa-onnx/installed-models.ts';
import { findSynthesisModels } from '../../../speech/engines/sherpa-onnx/installed-voices.ts';
import { logBrokenModels } from '../../../speech/models/broken-models.ts';
import { encodeOnnx } from '../tiny-onnx.ts';
import { writeOfflineCtc, writeOfflineTransducer } from '../whistled-models.ts';

let modelsDir: string;
beforeEach(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'tandem-installed-'));
  await mkdir(join(modelsDir, 'tts'));
  await writeOfflineCtc(join(modelsDir, 'stt', 'whistle-en'));
});
afterEach(() => rm(modelsDir, { recursive: true }));

async function findings() {
  const { recognition, problems } = await findInstalledModels(modelsDir);
  return {
    models: recognition.map(({ model }) => model.name),
    problems: problems.map(({ folder, problem }) => `${folder.slice(modelsDir.length + 1)}: ${problem}`),
  };
}

describe('model folder', () => {
  it.each([
    { to: 'nowhere', problem: 'cannot be read: it is a link to something that does not exist' },
    { to: 'a-file', problem: 'cannot be read: it is a link to a file; link the folder of the model' },
    { to: 'loop', problem: 'cannot be read: its links lead in a circle' },
  ])('lists the other models beside a link to $to', async ({ to, problem }) => {
    await writeFile(join(modelsDir, 'a-file'), 'x');
    for (const kind of ['stt', 'tts']) {
      const link = join(modelsDir, kind, 'loop');
      await symlink(to === 'loop' ? link : join(modelsDir, to), link);
    }
    expect(await findings()).toEqual({ models: ['whistle-en'], problems: [`stt/loop: ${problem}`] });
    const { problems } = await findSynthesisModels(modelsDir);
    expect(problems).toEqual([{ folder: join(modelsDir, 'tts', 'loop'), problem }]);
  });

  it('follows a link to a model', async () => {
    await symlink(join(modelsDir, 'stt', 'whistle-en'), join(modelsDir, 'stt', 'linked-en'));
    expect(await findings()).toEqual({ models: ['linked-en', 'whistle-en'], problems: [] });
  });

  it.each([
    { bytes: 0, says: 'tokens.txt has 0 of' },
    { bytes: 12, says: 'tokens.txt has 2 of' },
  ])('reports a model whose tokens.txt was cut to $bytes bytes', async ({ bytes, says }) => {
    const folder = join(modelsDir, 'stt', 'whistle-en');
    await rm(folder, { recursive: true });
    await writeOfflineTransducer(folder);
    expect((await findings()).models).toEqual(['whistle-en']);
    await truncate(join(folder, 'tokens.txt'), bytes);
    const { models, problems } = await findings();
    expect(models).toEqual([]);
    expect(problems).toEqual([expect.stringContaining(says)]);
  });

  it('reports files of models that have no folder of their own', async () => {
    for (const kind of ['stt', 'tts']) {
      for (const name of ['model.onnx', 'voice.tar.bz2', 'README.md', '.half.onnx']) {
        await writeFile(join(modelsDir, kind, name), 'x');
      }
    }
    const strays = (kind: string) => [
      `${kind}/model.onnx: it is a file of a model: put all files of the model into a folder of their own here`,
      `${kind}/voice.tar.bz2: it is an archive: unpack it here, or run tandem models fetch with its URL`,
    ];
    expect(await findings()).toEqual({ models: ['whistle-en'], problems: strays('stt') });
    const { problems } = await findSynthesisModels(modelsDir);
    expect(problems.map(({ folder, problem }) => `${folder.slice(modelsDir.length + 1)}: ${problem}`)).toEqual(
      strays('tts'),
    );
  });

  it('reports a file that is a Git LFS pointer, and how to download it', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n';
    await writeFile(join(modelsDir, 'stt', 'whistle-en', 'model.onnx'), pointer);
    expect((await findings()).problems).toEqual([
      'stt/whistle-en: model.onnx is damaged: a Git LFS pointer in place of the file. Run git lfs pull, or download the file',
    ]);
  });

  it('reports a voice as Piper publishes it, and a model for recognition among the voices', async () => {
    const bare = encodeOnnx({ inputs: [], outputs: [], nodes: [], weights: [], metadata: {} });
    await mkdir(join(modelsDir, 'tts', 'raw'));
    await writeFile(join(modelsDir, 'tts', 'raw', 'en_US-amy-low.onnx'), bare);
    await writeFile(join(modelsDir, 'tts', 'raw', 'en_US-amy-low.onnx.json'), '{}');
    await writeOfflineCtc(join(modelsDir, 'tts', 'whistle-en'));
    const { problems } = await findSynthesisModels(modelsDir);
    expect(problems.map(({ problem }) => problem)).toEqual([
      expect.stringMatching(/^en_US-amy-low.onnx is a voice as Piper publishes it/),
      'it is a model for recognition: move its folder to stt/',
    ]);
  });

  it('logs each model that cannot be used when the server starts', async () => {
    for (const kind of ['stt', 'tts']) await symlink(join(modelsDir, 'nowhere'), join(modelsDir, kind, 'lost'));
    const logged: unknown[] = [];
    await logBrokenModels(modelsDir, { warn: (fields, message) => logged.push([fields, message]) });
    const problem = 'cannot be read: it is a link to something that does not exist';
    expect(logged).toEqual(
      ['stt', 'tts'].map((kind) => [{ folder: join(modelsDir, kind, 'lost'), problem }, 'model cannot be used']),
    );
  });

  it.each(['stt', 'tts'])('reports that %s is a file', async (kind) => {
    await rm(join(modelsDir, kind), { recursive: true });
    await writeFile(join(modelsDir, kind), 'x');
    const found = [await findInstalledModels(modelsDir), await findSynthesisModels(modelsDir)];
    expect(found.flatMap(({ problems }) => problems)).toEqual([
      {
        folder: join(modelsDir, kind),
        problem: 'cannot be read: it is a link to a file; link the folder of the model',
      },
    ]);
  });

  it('reports a model with a file that is a link to nothing', async () => {
    const model = join(modelsDir, 'stt', 'whistle-en', 'model.onnx');
    await rm(model);
    await symlink(join(modelsDir, 'nowhere'), model);
    expect((await findings()).problems).toEqual([
      'stt/whistle-en: model.onnx cannot be read: it is a link to something that does not exist',
    ]);
  });
});
