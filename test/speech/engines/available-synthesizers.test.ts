import { expect, it } from 'vitest';
import { loadConfig } from '../../../config.ts';
import { createSynthesisEngines, synthesisSettingsOf } from '../../../speech/engines/available-synthesizers.ts';

function enginesFor(env: Record<string, string>) {
  return createSynthesisEngines(
    synthesisSettingsOf(loadConfig({ MODELS_DIR: '/nowhere', ...env }, [], '/nowhere/.env')),
  );
}

it('starts with eSpeak NG and reports how to enable better engines', async () => {
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
])('requests the configured model from a speech server, or tts-1', async (env, model) => {
  // No server listens there, so the engine falls back to the standard voices.
  const { engines, missing } = await enginesFor({ TTS_BASE_URL: 'http://127.0.0.1:9/v1', ...env });
  expect(missing).toEqual([]);
  const [voice] = await engines.find(({ name }) => name === 'openai')!.voices();
  expect(voice).toMatchObject({ name: 'alloy', model });
});
