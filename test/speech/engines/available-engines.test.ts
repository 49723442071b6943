import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../config.ts';
import { createEngines, engineSettingsOf, problemOf } from '../../../speech/engines/available-engines.ts';
import { logMissingServers } from '../../../speech/engines/missing-servers.ts';

const NO_DOT_ENV = '/nowhere/.env';

function enginesFor(env: Record<string, string>) {
  return createEngines(engineSettingsOf(loadConfig({ MODELS_DIR: '/nowhere', ...env }, [], NO_DOT_ENV)));
}

describe('speech recognition engines', () => {
  it('follow the configuration', () => {
    const settings = engineSettingsOf(
      loadConfig(
        { STT_ENGINE: 'openai', STT_PROCESSES: '3', STT_BASE_URL: 'http://gpu:8000/v1', TANDEM_DATA_DIR: '/data' },
        [],
        NO_DOT_ENV,
      ),
    );
    expect(settings).toEqual({
      preferred: 'openai',
      processes: 3,
      modelsDir: './.data/models',
      cacheDir: join('/data', 'cache'),
      upstream: { baseUrl: 'http://gpu:8000/v1', apiKey: null, model: null },
    });
  });

  it('recognise English without configuration', async () => {
    const { engines, missing, embedder } = await enginesFor({});
    const pocketsphinx = engines.find(({ name }) => name === 'pocketsphinx')!;
    expect(await pocketsphinx.describe()).toMatchObject([{ model: 'en-us', languages: ['en'], streams: true }]);
    expect(await problemOf(pocketsphinx)).toBeNull();
    expect(missing).toEqual([{ engine: 'openai', problem: expect.stringContaining('STT_BASE_URL') }]);
    expect(embedder).toBeNull();
  });

  it('warn of a preferred server that is not configured', () => {
    const warnings = (env: Record<string, string>) => {
      const found: object[] = [];
      logMissingServers(loadConfig(env, [], NO_DOT_ENV), { warn: (fields) => found.push(fields) });
      return found;
    };
    expect(warnings({ STT_ENGINE: 'openai', TTS_ENGINE: 'openai' })).toEqual([
      { missing: 'STT_BASE_URL' },
      { missing: 'TTS_BASE_URL' },
    ]);
    expect(warnings({ STT_ENGINE: 'openai', STT_BASE_URL: 'http://gpu:8000/v1', TTS_ENGINE: 'espeak-ng' })).toEqual([]);
  });

  it('without models report how to get one', async () => {
    const { engines } = await enginesFor({});
    const sherpa = engines.find(({ name }) => name === 'sherpa-onnx')!;
    expect(await sherpa.describe()).toEqual([]);
    expect(await problemOf(sherpa)).toContain('tandem models fetch');
  });

  it('request the configured model from an upstream server, or whisper-1', async () => {
    const modelFor = async (env: Record<string, string>) => {
      const { engines, missing } = await enginesFor({ STT_BASE_URL: 'http://gpu:8000/v1', ...env });
      expect(missing).toEqual([]);
      return (await engines.find(({ name }) => name === 'openai')!.describe())[0]?.model;
    };
    expect([await modelFor({}), await modelFor({ STT_MODEL: 'large' })]).toEqual(['whisper-1', 'large']);
  });
});
