import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkLanguage } from '../../diagnosis/language.ts';
import { checkRecognition } from '../../diagnosis/recognition.ts';
import { checkSynthesis } from '../../diagnosis/synthesis.ts';
import { startModelServer } from '../language/model-server.ts';
import { writeHummingVits } from '../speech/humming-models.ts';
import { type Examination, openExamination } from './examination.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];
let examination: Examination;

beforeEach(async () => {
  examination = await openExamination();
});

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
  await examination[Symbol.asyncDispose]();
});

describe('doctor on speech recognition', () => {
  it('lists engines with their languages, and how to add more', async () => {
    const found = await examination.findings(checkRecognition, { MODELS_DIR: join(examination.dataDir, 'models') });
    expect(found.transcription?.message).toBe('1 of 39 languages: English (en)');
    expect(found.pocketsphinx?.message).toBe('en-us: English (en), with interim results');
    expect(found['sherpa-onnx']?.message).toContain('tandem models fetch');
    expect(found.openai?.message).toContain('STT_BASE_URL');
  });

  it('checks an upstream server and its key', async () => {
    const statuses: Record<string, number> = { 'Bearer right': 200, 'Bearer wrong': 401 };
    const server = createServer(({ headers }, response) => {
      response.writeHead(statuses[headers.authorization ?? ''] ?? 503).end();
    }).listen(0, '127.0.0.1');
    clean.push(() => server.close());
    await once(server, 'listening');
    const STT_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const upstream = async (env: Record<string, string>) =>
      (await examination.findings(checkRecognition, { STT_BASE_URL, ...env })).STT_BASE_URL;
    expect(await upstream({ STT_API_KEY: 'right' })).toMatchObject({ status: 'ok' });
    const wrong = await upstream({ STT_API_KEY: 'wrong' });
    expect(wrong).toMatchObject({ status: 'warn', advice: expect.stringContaining('STT_API_KEY') });
    expect(await upstream({})).toMatchObject({ status: 'warn', message: expect.stringContaining('503') });
    server.close();
    const gone = await upstream({ STT_API_KEY: 'right' });
    expect(gone).toMatchObject({ status: 'warn', message: expect.stringContaining('ECONNREFUSED') });
  });

  it('names a damaged model, and a preferred engine without models', async () => {
    const MODELS_DIR = join(examination.dataDir, 'models');
    await mkdir(join(MODELS_DIR, 'stt', 'broken'), { recursive: true });
    const found = await examination.findings(checkRecognition, { MODELS_DIR, STT_ENGINE: 'sherpa-onnx' });
    expect(found.model).toMatchObject({ status: 'warn', message: expect.stringContaining('broken') });
    expect(found.STT_ENGINE).toMatchObject({ status: 'warn', message: expect.stringContaining('sherpa-onnx') });
  });
});

describe('doctor on speech synthesis', () => {
  it('counts the voices of each engine', async () => {
    const MODELS_DIR = join(examination.dataDir, 'models');
    await writeHummingVits(join(MODELS_DIR, 'tts', 'hum-en'));
    const { 'speech synthesis': found } = await examination.findings(checkSynthesis, { MODELS_DIR });
    expect(found?.message).toMatch(/^sherpa-onnx: \d+ languages, 228 voices \(227 of eSpeak NG, 1 of sherpa-onnx\)$/);
  });

  it('names a damaged model, and a preferred engine without voices', async () => {
    const MODELS_DIR = join(examination.dataDir, 'models');
    await mkdir(join(MODELS_DIR, 'tts', 'broken'), { recursive: true });
    const found = await examination.findings(checkSynthesis, { MODELS_DIR, TTS_ENGINE: 'sherpa-onnx' });
    expect(found.model).toMatchObject({ status: 'warn', message: expect.stringContaining('broken') });
    expect(found.TTS_ENGINE).toMatchObject({ status: 'warn', message: expect.stringContaining('sherpa-onnx') });
    expect(found['speech synthesis']).toMatchObject({ status: 'ok', message: expect.stringContaining('eSpeak NG') });
  });

  it('checks an upstream server and its key', async () => {
    const server = createServer(({ headers }, response) => {
      response.writeHead(headers.authorization === 'Bearer right' ? 200 : 401).end();
    }).listen(0, '127.0.0.1');
    clean.push(() => server.close());
    await once(server, 'listening');
    const TTS_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const upstream = async (key: string) =>
      (await examination.findings(checkSynthesis, { TTS_BASE_URL, TTS_API_KEY: key })).TTS_BASE_URL;
    expect(await upstream('right')).toMatchObject({ status: 'ok' });
    expect(await upstream('wrong')).toMatchObject({ advice: expect.stringContaining('TTS_API_KEY') });
    server.close();
    server.closeAllConnections();
    expect(await upstream('right')).toMatchObject({ message: expect.stringContaining('ECONNREFUSED') });
  });
});

describe('doctor on language models', () => {
  it('accepts missing settings, and warns of incomplete ones', async () => {
    const none = (await examination.findings(checkLanguage))['language model'];
    expect(none).toMatchObject({ status: 'ok', message: expect.stringContaining('LLM_NOT_CONFIGURED') });
    const half = (await examination.findings(checkLanguage, { LLM_MODEL: 'tiny-1.0' }))['language model'];
    expect(half).toMatchObject({ status: 'warn', message: expect.stringContaining('LLM_BASE_URL') });
  });

  it('names the answering model, and models unknown to the server', async () => {
    await using server = await startModelServer();
    server.models = ['tiny-1.0', 'big-2.0'];
    server.apiKey = 'right';
    const at = { LLM_BASE_URL: server.baseUrl, LLM_API_KEY: 'right' };
    const found = await examination.findings(checkLanguage, { ...at, LLM_ALIASES: 'fast=tiny-1.0,odd=gone-3.0' });
    expect(found['language model']).toMatchObject({
      status: 'ok',
      message: 'chats are answered by tiny-1.0; the server responds and lists 2',
    });
    expect(found['alias odd']).toMatchObject({ status: 'warn', advice: expect.stringContaining('tiny-1.0, big-2.0') });
    expect(found['alias fast']).toBeUndefined();

    const other = await examination.findings(checkLanguage, { ...at, LLM_MODEL: 'big-2.0' });
    expect(other['language model']?.message).toContain('answered by big-2.0');
    expect(other.LLM_MODEL).toBeUndefined();
  });

  it('warns of an unreachable server and of a wrong key', async () => {
    const server = await startModelServer();
    server.apiKey = 'right';
    const at = { LLM_BASE_URL: server.baseUrl, LLM_API_KEY: 'wrong-key' };
    const wrong = (await examination.findings(checkLanguage, at))['language model'];
    expect(wrong).toMatchObject({ status: 'warn', message: expect.stringContaining('401') });
    expect(JSON.stringify(wrong)).not.toContain('wrong-key');
    await server[Symbol.asyncDispose]();
    const gone = (await examination.findings(checkLanguage, at))['language model'];
    expect(gone).toMatchObject({ status: 'warn', message: expect.stringContaining('ECONNREFUSED') });
    expect(gone?.advice).toContain('LLM_BASE_URL');
  });
});
