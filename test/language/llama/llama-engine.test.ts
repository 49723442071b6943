import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  createLlamaEngine,
  type LlamaEngine,
  type LlamaEngineOptions,
} from '../../../language/engines/llama/llama-engine.ts';
import { LlamaProcess } from '../../../language/engines/llama/llama-process.ts';
import { LIBRARY, LIBRARY_VERSION } from '../../../language/engines/llama/node-llama-cpp.ts';
import { eventually } from '../../eventually.ts';
import { isRunning } from '../../is-running.ts';
import { ask, stream, untilGone } from './asking.ts';

const ENTRY = new URL('./scripted-child.ts', import.meta.url);
const ANY_SIGNAL = new AbortController().signal;

let folder: string;
const engines: LlamaEngine[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-llama-'));
});

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
});

afterAll(() => rm(folder, { recursive: true }));

describe('llama engine', () => {
  it('answers and reports the token usage', async () => {
    const engine = await engineOf('tiny.gguf');
    const [model] = await engine.models(ANY_SIGNAL);
    expect(model).toMatchObject({ ownedBy: 'local', description: 'Scripted', contextTokens: 100 });
    expect(await ask(engine, 'say one two')).toMatchObject({
      text: 'onetwo',
      finished: {
        reason: 'stop',
        usage: { promptTokens: 3, completionTokens: 2, isEstimated: false },
        model: model?.id,
      },
    });
  });

  it('derives the model id from file name and content', async () => {
    const id = async (name: string, content: string) =>
      (await (await engineOf(name, {}, content)).models(ANY_SIGNAL))[0]?.id;
    const one = await id('Qwen 2.5 (7B).Q4_K_M.gguf', 'GGUF one');
    expect(one).toMatch(/^Qwen-2\.5-7B-\.Q4_K_M-[0-9a-f]{8}$/);
    expect(await id('Qwen 2.5 (7B).Q4_K_M.gguf', 'GGUF one')).toBe(one);
    expect(await id('Qwen 2.5 (7B).Q4_K_M.gguf', 'GGUF two')).not.toBe(one);
  });

  it('passes all requested options to the process, and no others', async () => {
    const engine = await engineOf('tiny.gguf');
    const { text } = await ask(engine, {
      messages: [{ role: 'user', content: 'repeat' }],
      tools: [{ name: 'look_up', description: null, parameters: { type: 'object' } }],
      toolChoice: { name: 'look_up' },
      responseSchema: { name: 'answer', schema: { type: 'string' } },
      temperature: 0,
      topP: 0.5,
      topK: 3,
      seed: 7,
      maxTokens: 9,
      stop: ['.'],
      enableThinking: true,
    });
    expect(JSON.parse(text)).toEqual({
      messages: [{ role: 'user', content: 'repeat' }],
      tools: [{ name: 'look_up', description: null, parameters: { type: 'object' } }],
      toolChoice: { name: 'look_up' },
      responseSchema: { type: 'string' },
      temperature: 0,
      topP: 0.5,
      topK: 3,
      seed: 7,
      maxTokens: 9,
      stop: ['.'],
      enableThinking: true,
    });
  });

  it('rejects another model id', async () => {
    await expect(ask(await engineOf('tiny.gguf'), { model: 'other' })).rejects.toMatchObject({
      code: 'model_not_found',
    });
  });

  it('rejects a prompt beyond the context length, by the process or in advance', async () => {
    const engine = await engineOf('tiny.gguf');
    await expect(ask(engine, 'overflow')).rejects.toMatchObject({ code: 'context_too_long', retryable: false });
    await expect(ask(engine, `crash ${'x'.repeat(10_000)}`)).rejects.toMatchObject({ code: 'context_too_long' });
    expect((await ask(engine, 'say fine')).text).toBe('fine');
  });

  it('stops an aborted answer and starts the next', async () => {
    const engine = await engineOf('tiny.gguf', { concurrency: 1 });
    const controller = new AbortController();
    const parts = stream(engine, { messages: [{ role: 'user', content: 'begin' }], signal: controller.signal });
    expect((await parts.next()).value).toEqual({ type: 'text', text: 'begun' });
    const next = ask(engine, 'say next');
    controller.abort(new Error('enough'));
    await expect(parts.next()).rejects.toThrow('enough');
    expect((await next).text).toBe('next');
  });

  it('stops an answer when the reader returns', async () => {
    const engine = await engineOf('tiny.gguf', { concurrency: 1 });
    for await (const part of stream(engine, 'begin')) {
      expect(part).toEqual({ type: 'text', text: 'begun' });
      break;
    }
    expect((await ask(engine, 'say next')).text).toBe('next');
  });

  it('removes an aborted request from the queue', async () => {
    const engine = await engineOf('tiny.gguf', { concurrency: 1 });
    const first = stream(engine, 'begin');
    await first.next();
    const controller = new AbortController();
    const second = ask(engine, { messages: [{ role: 'user', content: 'say second' }], signal: controller.signal });
    const third = ask(engine, 'say third');
    controller.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    await first.return();
    expect((await third).text).toBe('third');
  });

  it('runs as many answers in parallel as configured', async () => {
    const engine = await engineOf('tiny.gguf', { concurrency: 3 });
    const answers = [stream(engine, 'begin'), stream(engine, 'begin'), stream(engine, 'begin')];
    for (const parts of answers) expect((await parts.next()).value).toEqual({ type: 'text', text: 'begun' });
    await Promise.all(answers.map((parts) => parts.return()));
  });
});

describe('guide to local models', () => {
  it('installs the tested version', async () => {
    const guide = await readFile(join(import.meta.dirname, '../../../docs/language-models.md'), 'utf8');
    expect(guide.match(/node-llama-cpp@[\d.]+/g)).toEqual([`${LIBRARY}@${LIBRARY_VERSION}`]);
  });
});

describe('llama process', () => {
  it('fails current answers when it crashes, and restarts', async () => {
    const troubles: string[] = [];
    const engine = await engineOf('tiny.gguf', { firstPauseMs: 1, onTrouble: (message) => troubles.push(message) });
    const under = stream(engine, 'begin');
    await under.next();
    const first = engine.pid;
    await expect(ask(engine, 'crash')).rejects.toMatchObject({ code: 'unavailable', retryable: true });
    await expect(under.next()).rejects.toMatchObject({ code: 'unavailable' });
    await untilAnswers(engine);
    expect(engine.pid).not.toBe(first);
    expect(troubles).toEqual(['the process of the model ended (SIGSEGV)']);
  });

  it.each(['rave', 'flood', 'stray'])('restarts after a protocol violation (%s)', async (how) => {
    const engine = await engineOf('tiny.gguf', { firstPauseMs: 1 });
    await engine.models(ANY_SIGNAL);
    const { pid } = engine;
    await expect(ask(engine, how)).rejects.toMatchObject({ code: 'unavailable' });
    await untilGone(pid!);
    await untilAnswers(engine);
  });

  it('restarts with increasing delays and reports them', async () => {
    const engine = await engineOf('crashing.gguf', { firstPauseMs: 2_500_000 });
    await expect(engine.models(ANY_SIGNAL)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^the process of the model ended \(SIG\w+\)/),
    });
    await eventually(() => expect(engine.pid).toBeUndefined());
    await expect(engine.models(ANY_SIGNAL)).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 2500 });
    expect(engine.pid).toBeUndefined();
  });

  it('reports why the model does not load', async () => {
    const engine = await engineOf('refused.gguf');
    await expect(engine.models(ANY_SIGNAL)).rejects.toMatchObject({
      code: 'unavailable',
      message: 'the file is damaged',
    });
    await expect(ask(engine, 'say hello')).rejects.toMatchObject({
      code: 'unavailable',
      message: 'the file is damaged',
    });
  });

  it('does not start for a missing or invalid model file', async () => {
    const missing = createLlamaEngine({ modelPath: join(folder, 'nowhere.gguf'), entry: ENTRY });
    await expect(missing.models(ANY_SIGNAL)).rejects.toThrow(
      /^LLM_MODEL_PATH: nowhere\.gguf cannot be read \(ENOENT\)/,
    );
    const wrong = await engineOf('letter.gguf', {}, 'Dear Sir or Madam');
    await expect(wrong.models(ANY_SIGNAL)).rejects.toThrow(/is not a GGUF model file/);
    expect([missing.pid, wrong.pid]).toEqual([undefined, undefined]);
  });

  it('does not delay a caller that aborts', async () => {
    const engine = await engineOf('slow.gguf');
    const controller = new AbortController();
    const models = engine.models(controller.signal);
    await eventually(() => expect(engine.pid).toBeDefined());
    controller.abort(new Error('enough'));
    await expect(models).rejects.toThrow('enough');
    const waiting = engine.models(ANY_SIGNAL);
    const refused = expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
    await engine.close();
    await refused;
  });

  it('ends when it loads too slowly or ignores a stop', async () => {
    const load = { type: 'load', sequences: 1, contextTokens: null } as const;
    const slow = new LlamaProcess({ entry: ENTRY, load: { ...load, modelPath: 'slow.gguf' }, loadWithinMs: 1 });
    await expect(slow.loaded).rejects.toThrow('did not load the model in time');
    await slow.ended;
    const deaf = new LlamaProcess({ entry: ENTRY, load: { ...load, modelPath: 'tiny.gguf' }, stopWithinMs: 1 });
    await deaf.loaded;
    const controller = new AbortController();
    const answer = deaf.answer(requestOf('hang'), controller.signal).next();
    controller.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
    await deaf.ended;
    expect(deaf.failure?.message).toBe('the process of the model is stuck');
  });

  it('receives no secrets of its owner', async () => {
    vi.stubEnv('TANDEM_SECRET_KEY', 'secret');
    const engine = await engineOf('tiny.gguf');
    const { text } = await ask(engine, 'environment');
    vi.unstubAllEnvs();
    expect(text).toContain('PATH');
    expect(text).not.toContain('TANDEM_SECRET_KEY');
    expect(readFileSync(`/proc/${engine.pid}/environ`, 'utf8')).not.toContain('TANDEM_SECRET_KEY');
  });

  it('ends when the engine closes', async () => {
    const engine = await engineOf('tiny.gguf');
    const parts = stream(engine, 'begin');
    await parts.next();
    const { pid } = engine;
    await engine.close();
    await expect(parts.next()).rejects.toMatchObject({ code: 'unavailable' });
    await untilGone(pid!);
    await expect(ask(engine, 'say hello')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('ends when its owner is killed', async () => {
    const modelPath = join(folder, 'owned.gguf');
    await writeFile(modelPath, 'GGUF');
    const owner = spawn(process.execPath, [fileURLToPath(new URL('./engine-owner.ts', import.meta.url)), modelPath], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = Number(String((await once(owner.stdout, 'data'))[0]));
    expect(isRunning(pid)).toBe(true);
    owner.kill('SIGKILL');
    await untilGone(pid);
  });
});

/** The process needs over a second to start on a busy machine. */

function untilAnswers(engine: LlamaEngine): Promise<void> {
  return eventually(async () => expect((await ask(engine, 'say back')).text).toBe('back'));
}

async function engineOf(
  name: string,
  options: Partial<LlamaEngineOptions> = {},
  content = 'GGUF',
): Promise<LlamaEngine> {
  const modelPath = join(folder, name);
  await writeFile(modelPath, content);
  const engine = createLlamaEngine({ modelPath, entry: ENTRY, ...options });
  engines.push(engine);
  return engine;
}

function requestOf(content: string): Parameters<LlamaProcess['answer']>[0] {
  return {
    messages: [{ role: 'user', content }],
    tools: [],
    toolChoice: 'auto',
    responseSchema: null,
    temperature: null,
    topP: null,
    topK: null,
    seed: null,
    maxTokens: null,
    stop: [],
    enableThinking: false,
  };
}
