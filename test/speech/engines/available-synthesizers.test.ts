import { expect, it } from 'vitest';
import { loadConfig } from '../../../config.ts';
import { createSynthesisEngines, synthesisSettingsOf } from '../../../speech/engines/available-synthesizers.ts';

function enginesFor(env: Record<string, string>) {
  return createSynthesisEngines(
    synthesisSettingsOf(loadConfig({ MODELS_DIR: '/nowhere', ...env }, [], '/nowhere/.env')),
  );
}

it('speaks out of the box, and says what is missing to speak better', async () => {
  const { engines, missing } = await enginesFor({ TTS_PROCESSES: '3' });
  expect(engines.map(({ name, maxInstances }) => [name, maxInstances])).toEqual([
    ['espeak-ng', 3],
    ['sherpa-onnx', 3],
  ]);
  expect(await engines[0]!.problem()).toBeNull();
  expect(await engines[1]!.problem()).toContain('tandem models fetch');
  expect(missing).toEqual([{ engine: 'openai', problem: expect.stringContaining('TTS_BASE_URL') }]);
});

it.each<[Record<string, string>, string]>([
  [{}, 'tts-1'],
  [{ TTS_MODEL: 'kokoro' }, 'kokoro'],
])('asks a speech server for the model that is set, or the one that most know', async (env, model) => {
  // Nobody answers there: the voices are those that all such servers have.
  const { engines, missing } = await enginesFor({ TTS_BASE_URL: 'http://127.0.0.1:9/v1', ...env });
  expect(missing).toEqual([]);
  const [voice] = await engines.find(({ name }) => name === 'openai')!.voices();
  expect(voice).toMatchObject({ name: 'alloy', model });
});
