import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { LanguageEngineError } from '../../language/engine.ts';
import { createLlamaEngine } from '../../language/engines/llama/llama-engine.ts';
import { createLanguageModels, type LanguageModelsOptions } from '../../language/llm.engines.ts';
import type { CompletionRequest, LanguageModels } from '../../language/llm.ts';
import { openLanguageModels } from '../../language/open-language-models.ts';
import { TandemError } from '../../machines/errors.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createTestClock } from '../actors/fakes.ts';
import { startModelServer } from './model-server.ts';
import { failureOf, ScriptedEngine } from './scripted-engine.ts';

const SCRIPTED_CHILD = new URL('./llama/scripted-child.ts', import.meta.url);
const MINUTE = 60_000;

let clock: ReturnType<typeof createTestClock>;
let engine: ScriptedEngine;
beforeEach(() => {
  clock = createTestClock();
  engine = new ScriptedEngine('server', ['tiny-1.0', 'big-2.0']);
});

function models(more: Partial<LanguageModelsOptions> = {}): LanguageModels {
  return createLanguageModels({
    engines: [engine],
    usualModel: null,
    aliases: new Map(),
    concurrency: 4,
    clock,
    ...more,
  });
}

function request(model: string | null = null, more: Partial<CompletionRequest> = {}): CompletionRequest {
  return { model, messages: [], retries: 0, signal: new AbortController().signal, ...more };
}

async function refusal(promise: Promise<unknown>): Promise<TandemError> {
  const error = await promise.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TandemError);
  return error as TandemError;
}

describe('language models without configuration', () => {
  it('reject every request and name the settings', async () => {
    const none = models({ engines: [], aliases: new Map([['fast', 'tiny-1.0']]) });
    for (const asked of [none.resolve(null), none.resolve('fast'), none.resolve('x'), none.complete(request())]) {
      const { code, message, retryAfterS } = await refusal(asked);
      expect(code).toBe('LLM_NOT_CONFIGURED');
      expect(retryAfterS).toBeNull();
      for (const setting of ['LLM_BASE_URL', 'LLM_API_KEY', 'LLM_MODEL', 'LLM_MODEL_PATH']) {
        expect(message).toContain(setting);
      }
    }
    expect(await none.list()).toEqual({ models: [], cached: false });
    expect(await none.aliases()).toEqual(new Map());
    await none.close();
  });
});

describe('model names', () => {
  it('svc-tiny, jev-latest and a missing name select the first model of the server', async () => {
    const subject = models();
    for (const name of ['svc-tiny', 'jev-latest', null]) expect((await subject.resolve(name)).id).toBe('tiny-1.0');
    expect(await subject.aliases()).toEqual(
      new Map([
        ['svc-tiny', 'tiny-1.0'],
        ['jev-latest', 'tiny-1.0'],
      ]),
    );
  });

  it('select the configured model, whether or not the server lists models', async () => {
    for (const onList of [() => undefined, () => Promise.reject(failureOf('unavailable'))]) {
      engine.onList = onList;
      expect((await models({ usualModel: 'big-2.0' }).resolve('svc-tiny')).id).toBe('big-2.0');
      expect((await models({ usualModel: 'hidden-3.0' }).resolve(null)).id).toBe('hidden-3.0');
    }
  });

  it('configured as aliases win over built-in aliases and server ids', async () => {
    const aliases = new Map([
      ['svc-tiny', 'big-2.0'],
      ['__proto__', 'big-2.0'],
      ['tiny-1.0', 'hidden-3.0'],
    ]);
    const subject = models({ aliases });
    for (const name of ['svc-tiny', null]) expect((await subject.resolve(name)).id).toBe('big-2.0');
    expect((await subject.resolve('__proto__')).id).toBe('big-2.0');
    expect((await subject.resolve('tiny-1.0')).id).toBe('hidden-3.0');
    expect((await subject.resolve('jev-latest')).id).toBe('tiny-1.0');
    expect((await subject.list()).models.map(({ id }) => id)).toEqual(['hidden-3.0', 'tiny-1.0', 'big-2.0']);
  });

  it('configured as aliases may select the default model', async () => {
    const subject = models({ usualModel: 'fast', aliases: new Map([['fast', 'big-2.0']]) });
    for (const name of [null, 'svc-tiny', 'fast']) expect((await subject.resolve(name)).id).toBe('big-2.0');
    expect((await subject.list()).models.map(({ id }) => id)).toEqual(['tiny-1.0', 'big-2.0']);
  });

  it('equal to ids select these models, and unknown names fail', async () => {
    const subject = models();
    expect(await subject.resolve('big-2.0')).toMatchObject({ id: 'big-2.0', ownedBy: 'server' });
    for (const name of ['', 'constructor', '__proto__', 'toString', 'big']) {
      expect((await refusal(subject.resolve(name))).code).toBe('MODEL_NOT_FOUND');
    }
  });

  it('fail if the server lists no model', async () => {
    engine.listed = [];
    expect(await refusal(models().resolve(null))).toMatchObject({ code: 'LLM_UNAVAILABLE', retryAfterS: 30 });
  });
});

describe('model list', () => {
  it('caches for five minutes and reports cache hits', async () => {
    const subject = models();
    expect((await subject.list()).cached).toBe(false);
    clock.advance(5 * MINUTE - 1);
    expect((await subject.list()).cached).toBe(true);
    await subject.resolve('big-2.0');
    expect(engine.listings).toBe(1);
    clock.advance(1);
    expect((await subject.list()).cached).toBe(false);
    expect(engine.listings).toBe(2);
  });

  it('shares one request among concurrent callers', async () => {
    const gate = Promise.withResolvers<void>();
    engine.onList = () => gate.promise;
    const subject = models();
    const asked = [subject.list(), subject.list(), subject.resolve('big-2.0')] as const;
    gate.resolve();
    const [first, second] = await Promise.all(asked);
    expect([first.cached, second.cached]).toEqual([false, false]);
    expect(engine.listings).toBe(1);
  });

  it('retries after a failure', async () => {
    engine.onList = () => Promise.reject(failureOf('unavailable'));
    const subject = models();
    expect(await refusal(subject.list())).toMatchObject({ code: 'LLM_UNAVAILABLE', retryAfterS: 5 });
    engine.onList = () => undefined;
    expect((await subject.list()).models).toHaveLength(2);
  });

  it('falls back to the previous models when a refresh fails', async () => {
    const subject = models();
    await subject.list();
    clock.advance(5 * MINUTE);
    engine.onList = () => Promise.reject(failureOf('timeout'));
    for (const name of ['big-2.0', 'tiny-1.0', 'svc-tiny', null]) {
      expect((await subject.complete(request(name))).text).toBe('Hello.');
    }
    expect((await refusal(subject.resolve('gone-3.0'))).code).toBe('MODEL_NOT_FOUND');
    expect((await refusal(subject.list())).retryable).toBe(true);
  });

  it('times out after the loading time of a model file', async () => {
    engine.onList = () => new Promise(() => {});
    const listed = refusal(models().list());
    clock.advance(120_000);
    expect((await listed).code).toBe('LLM_TIMEOUT');
  });

  it('delays requests for the configured model once in half a minute at most', async () => {
    engine.onList = () => Promise.reject(failureOf('unavailable'));
    const subject = models({ usualModel: 'tiny-1.0' });
    for (let time = 0; time < 5; time++) await subject.complete(request());
    expect(engine.listings).toBe(1);
  });

  it('merges all engines and omits a failing one until it recovers', async () => {
    const local = new ScriptedEngine('llama', ['local-q4', 'tiny-1.0']);
    const subject = models({ engines: [engine, local] });
    local.onList = () => Promise.reject(failureOf('unavailable'));
    expect((await subject.list()).models.map(({ id }) => id)).toEqual(['tiny-1.0', 'big-2.0']);
    local.onList = () => undefined;
    const { models: listed, cached } = await subject.list();
    expect(cached).toBe(false);
    expect(listed.map(({ id, ownedBy }) => `${ownedBy}/${id}`)).toEqual([
      'server/tiny-1.0',
      'server/big-2.0',
      'llama/local-q4',
    ]);
  });
});

describe('a completion request', () => {
  it('goes to the engine that has the model, under the resolved id', async () => {
    const local = new ScriptedEngine('llama', ['local-q4']);
    const subject = models({ engines: [engine, local], aliases: new Map([['mine', 'local-q4']]) });
    expect(await subject.complete(request('mine'))).toMatchObject({ text: 'Hello.', model: 'local-q4' });
    expect(await subject.complete(request('svc-tiny'))).toMatchObject({ model: 'tiny-1.0' });
    expect(local.attempts.map(({ model }) => model)).toEqual(['local-q4']);
    expect(engine.attempts.map(({ model }) => model)).toEqual(['tiny-1.0']);
    await subject.close();
    expect([engine.isClosed, local.isClosed]).toEqual([true, true]);
  });

  it.each([
    ['unavailable', 'LLM_UNAVAILABLE', 5],
    ['rate_limited', 'LLM_RATE_LIMITED', 5],
    ['timeout', 'LLM_TIMEOUT', 5],
    ['model_not_found', 'MODEL_NOT_FOUND', null],
    ['context_too_long', 'CONTEXT_LENGTH_EXCEEDED', null],
    ['refused', 'LLM_REQUEST_REFUSED', null],
  ] as const)('fails with %s as %s', async (code, refused, retryAfterS) => {
    engine.turns = [failureOf(code), failureOf(code, 90)];
    const subject = models();
    expect(await refusal(subject.complete(request()))).toMatchObject({ code: refused, retryAfterS });
    expect(await refusal(subject.complete(request()))).toMatchObject({ code: refused, retryAfterS: 90 });
  });

  it('hides the message of an unexpected engine error', async () => {
    engine.turns = [new TypeError('secret')];
    const { code, message } = await refusal(models().complete(request()));
    expect(code).toBe('LLM_UNAVAILABLE');
    expect(message).not.toContain('secret');
  });

  it('rejects with the abort reason', async () => {
    engine.turns = ['silent'];
    const abort = new AbortController();
    const answer = models().complete(request(null, { signal: abort.signal }));
    await engine.attempted(1);
    const reason = new TandemError('CHAT_CLIENT_CANCELLED', 'gone');
    abort.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await expect(models().complete(request(null, { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
  });
});

describe('configured language models', () => {
  const SETTINGS = {
    llmBaseUrl: null,
    llmApiKey: null,
    llmModel: null,
    llmModelPath: null,
    llmAliases: new Map(),
    llmConcurrency: 4,
  };

  it('use the configured server', async () => {
    await using server = await startModelServer();
    server.apiKey = 'sk-right';
    server.models = ['first-1.0', 'second-2.0'];
    const settings = { ...SETTINGS, llmBaseUrl: server.baseUrl, llmApiKey: 'sk-right' };
    const usual = await openLanguageModels(settings, { clock: systemClock });
    expect(
      await usual.complete(request('jev-latest', { messages: [{ role: 'user', content: 'Hello?' }] })),
    ).toMatchObject({
      text: 'You said: Hello?',
      model: 'first-1.0',
    });
    const named = await openLanguageModels({ ...settings, llmModel: 'second-2.0' }, { clock: systemClock });
    expect((await named.resolve('svc-tiny')).id).toBe('second-2.0');
    const wrong = await openLanguageModels({ ...settings, llmApiKey: 'sk-wrong' }, { clock: systemClock });
    const { code, message } = await refusal(wrong.complete(request()));
    expect(code).toBe('LLM_UNAVAILABLE');
    expect(message).toContain('401');
    expect(message).not.toContain('sk-wrong');
  });

  it('with a model file alone map every name to its model', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-models-'));
    const modelPath = join(folder, 'Tiny.Q4_K_M.gguf');
    await writeFile(modelPath, 'GGUF one');
    const local = models({ engines: [createLlamaEngine({ modelPath, entry: SCRIPTED_CHILD })] });
    try {
      const { id } = await local.resolve('svc-tiny');
      expect(id).toMatch(/^Tiny\.Q4_K_M-[0-9a-f]{8}$/);
      const messages = [{ role: 'user' as const, content: 'say one two' }];
      expect(await local.complete(request('jev-latest', { messages }))).toMatchObject({ text: 'onetwo', model: id });
    } finally {
      await local.close();
      await rm(folder, { recursive: true });
    }
  });

  it('without settings list nothing, and a missing file counts as unavailable', async () => {
    expect((await (await openLanguageModels(SETTINGS, { clock: systemClock })).list()).models).toEqual([]);
    const local = await openLanguageModels(
      { ...SETTINGS, llmModelPath: '/nonexistent/x.gguf' },
      { clock: systemClock },
    );
    expect((await refusal(local.list())).code).toBe('LLM_UNAVAILABLE');
    await local.close();
  });
});

it('marks engine errors as retryable if the same request may succeed later', () => {
  const codes = ['unavailable', 'rate_limited', 'timeout', 'model_not_found', 'context_too_long', 'refused'] as const;
  const retryable = codes.filter((code) => new LanguageEngineError(code, 'x').retryable);
  expect(retryable).toEqual(['unavailable', 'rate_limited', 'timeout']);
});
