import { describe, expect, it } from 'vitest';
import { type Capability, findRoute, modelNameOf, type RouteOptions } from '../../../speech/recognition/router.ts';
import type { RecognizerDescription } from '../../../speech/recognizer.ts';
import { createFakeEngine } from '../fake-engine.ts';

const engine = createFakeEngine();

function capability(description: Partial<RecognizerDescription>): Capability {
  return {
    engine,
    description: {
      engine: 'sherpa-onnx',
      model: 'a model',
      languages: ['en'],
      detectsLanguage: false,
      streams: true,
      boostsKeywords: false,
      hasConfidence: true,
      ...description,
    },
  };
}

const WASM = capability({ engine: 'pocketsphinx', model: 'en-us' });
const NATIVE = capability({ engine: 'pocketsphinx-native', model: 'en-us' });
const STREAMING = capability({ model: 'zipformer' });
const WHOLE = capability({ model: 'parakeet', streams: false });
const HINDI = capability({ model: 'hindi', languages: ['hi'] });
const MANY = capability({ model: 'whisper', languages: ['de', 'en', 'hi'], detectsLanguage: true, streams: false });
const UPSTREAM = capability({ ...MANY.description, engine: 'openai', model: 'whisper-1' });

function route(capabilities: Capability[], options: Partial<RouteOptions> = {}): string[] | string {
  const found = findRoute({ languages: ['en'], preferred: 'auto', isLive: true, capabilities, ...options });
  if (found.type === 'unsupported') return found.message;
  return found.candidates.map((candidate) => `${modelNameOf(candidate)} ${candidate.language}`);
}

describe('recognizer router', () => {
  it('prefers installed models to bundled ones, and the native library to WebAssembly', () => {
    expect(route([WASM, NATIVE, UPSTREAM, STREAMING])).toEqual([
      'sherpa-onnx/zipformer en',
      'openai/whisper-1 en',
      'pocketsphinx-native/en-us en',
      'pocketsphinx/en-us en',
    ]);
  });

  it('prefers the configured engine', () => {
    expect(route([STREAMING, WASM, UPSTREAM], { preferred: 'pocketsphinx' })[0]).toBe('pocketsphinx/en-us en');
    expect(route([STREAMING, WASM, NATIVE], { preferred: 'pocketsphinx' })[0]).toBe('pocketsphinx-native/en-us en');
    expect(route([STREAMING, WASM, UPSTREAM], { preferred: 'openai' })[0]).toBe('openai/whisper-1 en');
  });

  it('uses another engine if the preferred one does not support the language', () => {
    expect(route([WASM, HINDI], { preferred: 'pocketsphinx', languages: ['hi'] })).toEqual(['sherpa-onnx/hindi hi']);
  });

  it('prefers streaming models for live audio and offline models for files', () => {
    expect(route([WHOLE, STREAMING])[0]).toBe('sherpa-onnx/zipformer en');
    expect(route([STREAMING, WHOLE], { isLive: false })[0]).toBe('sherpa-onnx/parakeet en');
  });

  it('prefers a monolingual model', () => {
    expect(route([MANY, HINDI], { languages: ['hi'], isLive: false, preferred: 'sherpa-onnx' })).toEqual([
      'sherpa-onnx/whisper hi',
      'sherpa-onnx/hindi hi',
    ]);
    const hindi = capability({ model: 'hindi', languages: ['hi'], streams: false });
    expect(route([MANY, hindi], { languages: ['hi'], isLive: false })[0]).toBe('sherpa-onnx/hindi hi');
  });

  it('lets a model detect the language among the requested ones', () => {
    expect(route([WASM, HINDI, MANY], { languages: ['hi', 'en'] })).toEqual(['sherpa-onnx/whisper null']);
    expect(route([WASM, MANY], { languages: null })).toEqual(['sherpa-onnx/whisper null']);
  });

  it('assumes the language of the model if none can detect it, English first', () => {
    expect(route([HINDI, WASM, STREAMING], { languages: null })).toEqual([
      'sherpa-onnx/zipformer en',
      'pocketsphinx/en-us en',
    ]);
    expect(route([HINDI], { languages: null })).toEqual(['sherpa-onnx/hindi hi']);
  });

  it('reports what is missing for a language, and the available ones', () => {
    expect(route([WASM], { languages: ['vi'] })).toBe(
      'No engine that understands Vietnamese (vi) is installed. sherpa-onnx would, with a model such as ' +
        'sherpa-onnx-zipformer-vi-2025-04-20 (tandem models fetch sherpa-onnx-zipformer-vi-2025-04-20); so would an ' +
        'OpenAI-compatible server that knows it (STT_BASE_URL). Understood now: English (en).',
    );
    expect(route([WASM], { languages: ['en', 'ta'] })).toContain(
      'understands Tamil (ta) is installed. sherpa-onnx would, with a model such as sherpa-onnx-whisper-',
    );
    expect(route([WASM], { languages: ['or'] })).toContain('with a model for it in MODELS_DIR;');
    expect(route([WASM, HINDI], { languages: ['en', 'hi'] })).toMatch(
      /^No installed model distinguishes English \(en\), Hindi \(hi\)\. Request one of them\./,
    );
    expect(route([])).toMatch(/^No engine that understands English \(en\) is installed\./);
    expect(route([], { languages: null })).toMatch(/^No engine for speech is installed\..*\(STT_BASE_URL\)\.$/);
  });
});
