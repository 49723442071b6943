import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLlamaEngine, type LlamaEngine } from '../../../language/engines/llama/llama-engine.ts';
import { LIBRARY } from '../../../language/engines/llama/node-llama-cpp.ts';
import { FromChild, LLAMA_LIMITS } from '../../../language/engines/llama/protocol.ts';
import type { ToolDefinition } from '../../../language/llm.ts';
import { SupervisedProcess } from '../../../runtime/supervised-process.ts';
import { eventually } from '../../eventually.ts';
import { THINKING_TEMPLATE, type TinyModel, tinyModel } from '../gguf-writer.ts';
import { ask, collected, stream, untilGone } from './asking.ts';

const ANY_SIGNAL = new AbortController().signal;
const FOX = ['The', ' quick', ' brown', ' fox', ' jumps', '.'];

const LOOK_UP: ToolDefinition = {
  name: 'look_up',
  description: 'Looks the weather up.',
  parameters: {
    type: 'object',
    properties: { city: { enum: ['Oslo', 'Bern'] }, day: { enum: [1, 2] } },
    required: ['city'],
  },
};

let folder: string;
// Starting a process with the library costs a second of CPU time, so tests that only ask share engines. Each engine
// starts on its first request.
let fox: LlamaEngine;
/** Talks until its context is full, which takes half a minute. */
let endless: LlamaEngine;
/** Says anything, and has a chat template that cannot be parsed. */
let babbling: LlamaEngine;
let written = 0;
const engines: LlamaEngine[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-llama-'));
  fox = await openEngine(tinyModel({ says: FOX, contextTokens: 2048 }), { concurrency: 3 });
  const laughing = { says: ['ha', ' ho'], thenAgainFrom: 'ha', contextTokens: 32_768 };
  endless = await openEngine(tinyModel(laughing), { concurrency: 1 });
  babbling = await openEngine(tinyModel({ babbles: true, chatTemplate: '{% for x in %}{{' }));
});

afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
});

afterAll(async () => {
  await Promise.all([fox, endless, babbling].map((engine) => engine.close()));
  await rm(folder, { recursive: true });
});

describe.runIf(isInstalled())('model file in llama.cpp', () => {
  it('generates the only possible tokens and counts them', async () => {
    expect(await fox.models(ANY_SIGNAL)).toEqual([
      {
        id: expect.stringMatching(/^tiny-\d+-[0-9a-f]{8}$/),
        created: expect.any(Number),
        ownedBy: 'local',
        description: expect.stringContaining('on this machine'),
        contextTokens: 2048,
      },
    ]);
    expect(getPriority(fox.pid)).toBeGreaterThan(getPriority());
    const parts = await collected(stream(fox, { temperature: 0 }));
    expect(parts.slice(0, -1)).toEqual(FOX.map((text) => ({ type: 'text', text })));
    // `<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n`: one token per mark or character; the answer includes
    // its end mark.
    expect(parts.at(-1)).toMatchObject({
      type: 'finished',
      reason: 'stop',
      usage: { promptTokens: 1 + 5 + 2 + 2 + 1 + 10 + 1, completionTokens: FOX.length + 1, isEstimated: false },
    });
  });

  it('reads the whole conversation and remembers no other', async () => {
    const first = await ask(endless, { temperature: 0, maxTokens: 4 });
    const longer = await ask(endless, {
      temperature: 0,
      maxTokens: 4,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: first.text },
        { role: 'user', content: 'And now?' },
      ],
    });
    const again = await ask(endless, { temperature: 0, maxTokens: 4 });
    expect(longer.finished?.usage.promptTokens).toBeGreaterThan(first.finished!.usage.promptTokens + 20);
    expect(again).toMatchObject({ text: first.text, finished: { usage: first.finished!.usage } });
  });

  it('treats special tokens in a message as text', async () => {
    const tokensOf = async (content: string) =>
      (await ask(fox, { temperature: 0, messages: [{ role: 'user', content }] })).finished?.usage.promptTokens;
    expect(await tokensOf('<|im_end|>')).toBe(await tokensOf('0123456789'));
  });

  it('stops at the token limit and at stop sequences', async () => {
    expect(await ask(fox, { temperature: 0, maxTokens: 3 })).toMatchObject({
      text: 'The quick brown',
      finished: { reason: 'length', usage: { completionTokens: 3 } },
    });
    const stopped = await ask(fox, { temperature: 0, stop: ['own f', 'never'] });
    expect(stopped).toMatchObject({ text: 'The quick br', finished: { reason: 'stop' } });
  });

  it('repeats its answer for equal seeds and varies with others', async () => {
    const babble = (seed: number) => ask(babbling, { temperature: 1, seed, maxTokens: 16 });
    const [one, same, other] = [await babble(1), await babble(1), await babble(2)];
    expect(same.text).toBe(one.text);
    expect(other.text).not.toBe(one.text);
    const greedy = [
      await ask(babbling, { topK: 1, maxTokens: 8 }),
      await ask(babbling, { temperature: 0, maxTokens: 8 }),
    ];
    expect(greedy[0]?.text).toBe(greedy[1]?.text);
  });

  it('answers several requests in parallel', async () => {
    const answers = await Promise.all(Array.from({ length: 7 }, () => ask(fox, { temperature: 0 })));
    expect(answers.map(({ text }) => text)).toEqual(Array(7).fill('The quick brown fox jumps.'));
  });

  it('generates until the context is full, and rejects a prompt that exceeds it', async () => {
    const engine = await engineOf({ says: ['ha', ' ho'], thenAgainFrom: 'ha' });
    const { text, finished } = await ask(engine, { temperature: 0 });
    expect(text).toMatch(/^(ha ho){200,}/);
    expect(finished).toMatchObject({ reason: 'length' });
    expect(finished!.usage.promptTokens + finished!.usage.completionTokens).toBeLessThanOrEqual(512);
    const long = { messages: [{ role: 'user' as const, content: 'x'.repeat(600) }] };
    await expect(ask(engine, long)).rejects.toMatchObject({
      code: 'context_too_long',
      message: 'the prompt has 620 tokens of at most 509',
    });
  });

  it('stops at once when aborted, and accepts the next request', async () => {
    const controller = new AbortController();
    const parts = stream(endless, { temperature: 0, signal: controller.signal });
    for (let part = 0; part < 3; part++) expect((await parts.next()).value).toMatchObject({ type: 'text' });
    controller.abort(new Error('enough'));
    await expect(parts.next()).rejects.toThrow('enough');
    expect(await ask(endless, { temperature: 0, maxTokens: 4 })).toMatchObject({ text: 'ha hoha ho' });
  });

  it('generates JSON by schema', async () => {
    const schema = {
      type: 'object',
      properties: {
        verdict: { enum: ['pass', 'fail'] },
        score: { type: 'integer' },
        'odd "name"\\': { anyOf: [{ type: 'null' }, { $ref: '#/$defs/note' }] },
      },
      $defs: { note: { type: 'array', items: { type: 'string', maxLength: 5 }, minItems: 2, maxItems: 2 } },
    };
    const asked = { temperature: 0, responseSchema: { name: 'verdict', schema } };
    const { text, finished } = await ask(fox, asked);
    const answer = JSON.parse(text);
    expect(Object.keys(answer)).toEqual(['verdict', 'score', 'odd "name"\\']);
    expect(answer).toMatchObject({ verdict: expect.stringMatching(/^(pass|fail)$/), score: expect.any(Number) });
    expect(finished?.reason).toBe('stop');
    expect((await ask(fox, asked)).text).toBe(text);
  });

  it.each([
    ['refers to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }],
    [
      'contains only itself in anyOf',
      { $ref: '#/$defs/a', $defs: { a: { oneOf: [{ $ref: '#/$defs/a' }, { type: 'null' }] } } },
    ],
    ['has a dangling reference', { $ref: '#/$defs/a' }],
    ['allows no value', { enum: [] }],
    ['exceeds the length limits', { type: 'array', minItems: 1e9 }],
  ])('rejects a schema that %s, and stays usable', async (_, schema) => {
    await fox.models(ANY_SIGNAL);
    const { pid } = fox;
    const asked = ask(fox, { responseSchema: { name: 'odd', schema } });
    await expect(asked).rejects.toMatchObject({ code: 'refused' });
    expect((await ask(fox, { temperature: 0 })).text).toBe('The quick brown fox jumps.');
    expect(fox.pid).toBe(pid);
  });

  it('calls a tool and reads its result', async () => {
    const engine = await engineOf({ says: ['||call: ', 'look_up', '({"city": "', 'Oslo'], contextTokens: 2048 });
    const asked = await ask(engine, { temperature: 0, tools: [LOOK_UP] });
    expect(asked).toMatchObject({ text: '', finished: { reason: 'tool_calls' } });
    expect(asked.toolCalls).toMatchObject([{ id: expect.stringMatching(/^call_\w{24}$/), name: 'look_up' }]);
    expect(JSON.parse(asked.toolCalls[0]!.arguments)).toMatchObject({ city: expect.stringMatching(/^(Oslo|Bern)$/) });
    const after = await ask(engine, {
      temperature: 0,
      tools: [LOOK_UP],
      toolChoice: 'none',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: null, toolCalls: asked.toolCalls },
        { role: 'tool', toolCallId: asked.toolCalls[0]!.id, content: 'It rains.' },
      ],
    });
    expect(after.finished?.usage.promptTokens).toBeGreaterThan(22 + 'It rains.'.length);
    const stray = ask(engine, { messages: [{ role: 'tool', toolCallId: 'call_none', content: 'It rains.' }] });
    await expect(stray).rejects.toMatchObject({ code: 'refused' });
  });

  it.each(['required', { name: 'look_up' }] as const)('calls a tool if required (%j)', async (toolChoice) => {
    const asked = await ask(fox, { temperature: 0, tools: [LOOK_UP], toolChoice });
    expect(asked).toMatchObject({ text: '', toolCalls: [{ name: 'look_up' }], finished: { reason: 'tool_calls' } });
    expect(JSON.parse(asked.toolCalls[0]!.arguments)).toMatchObject({ city: expect.stringMatching(/^(Oslo|Bern)$/) });
  });

  it('calls a tool or answers by the schema if both are given', async () => {
    const responseSchema = { name: 'sure', schema: { type: 'object', properties: { sure: { type: 'boolean' } } } };
    const asked = await ask(fox, { temperature: 0, tools: [LOOK_UP], responseSchema });
    if (asked.toolCalls.length === 0) expect(JSON.parse(asked.text)).toEqual({ sure: expect.any(Boolean) });
    else expect(JSON.parse(asked.toolCalls[0]!.arguments)).toHaveProperty('city');
  });

  it('shows its reasoning on request only', async () => {
    const says = ['<think>', ' hmm', ' so', '</think>', 'Yes', '.'];
    const engine = await engineOf({ says, chatTemplate: THINKING_TEMPLATE });
    const thinking = await ask(engine, { temperature: 0, enableThinking: true });
    expect(thinking).toMatchObject({
      reasoning: ' hmm so',
      text: 'Yes.',
      finished: { usage: { completionTokens: 7 } },
    });
    const hasty = await ask(engine, { temperature: 0 });
    expect(hasty).toMatchObject({ reasoning: '', text: 'Yes.' });
    expect(hasty.finished!.usage.completionTokens).toBeLessThan(7);
  });

  it('restarts after its process was killed', async () => {
    const parts = stream(endless, { temperature: 0 });
    await parts.next();
    const pid = endless.pid!;
    process.kill(pid, 'SIGKILL');
    await expect(collected(parts)).rejects.toMatchObject({ code: 'unavailable', retryable: true });
    await untilGone(pid);
    await eventually(async () => expect((await ask(endless, { temperature: 0, maxTokens: 2 })).text).toBe('ha ho'));
  });

  const good = tinyModel({ says: FOX });
  const loader = new Loader();
  afterAll(() => loader.close());
  const reason = expect.stringMatching(/^LLM_MODEL_PATH: tiny-\d+\.gguf cannot be loaded: ./);

  it('fails with the reason if its file cannot be loaded', async () => {
    const engine = await openEngine(good.subarray(0, 20));
    engines.push(engine);
    await expect(engine.models(ANY_SIGNAL)).rejects.toMatchObject({ code: 'unavailable', message: reason });
  });

  it.each([
    ['ends in its metadata', good.subarray(0, 5000)],
    ['ends in its weights', good.subarray(0, -100_000)],
    ['contains zeros after its magic number', Buffer.concat([Buffer.from('GGUF'), Buffer.alloc(5000)])],
    ['claims impossible sizes', Buffer.concat([Buffer.from('GGUF'), Buffer.alloc(5000, 255)])],
    ['names an unknown architecture', changed(good, 'llama', 'xlama')],
    ['misnames a tensor', changed(good, 'output_norm.weight', 'output_form.weight')],
  ])('fails to load with a reason if its file %s', async (_, content) => {
    expect(await loader.load(await fileOf(content))).toEqual({ type: 'notLoaded', message: reason });
  });

  it('answers despite an invalid chat template', async () => {
    expect(await ask(babbling, { temperature: 0, maxTokens: 3 })).toMatchObject({
      finished: { reason: expect.any(String) },
    });
  });
});

describe.runIf(!isInstalled())('model file without node-llama-cpp', () => {
  it('fails with the command that installs it', async () => {
    await expect(fox.models(ANY_SIGNAL)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('npm install --no-save --ignore-scripts node-llama-cpp@3.22.1'),
    });
  });
});

async function engineOf(model: TinyModel, options: { concurrency?: number } = {}): Promise<LlamaEngine> {
  const engine = await openEngine(tinyModel(model), options);
  engines.push(engine);
  return engine;
}

async function openEngine(content: Buffer, options: { concurrency?: number } = {}): Promise<LlamaEngine> {
  return createLlamaEngine({ modelPath: await fileOf(content), firstPauseMs: 10, ...options });
}

async function fileOf(content: Buffer): Promise<string> {
  const path = join(folder, `tiny-${written++}.gguf`);
  await writeFile(path, content);
  return path;
}

/** Loads files one after another in one process of the engine, or in a new one after a crash. */
class Loader {
  #process: SupervisedProcess | null = null;
  #reply = Promise.withResolvers<FromChild>();

  load(modelPath: string): Promise<FromChild> {
    this.#reply = Promise.withResolvers();
    if (this.#process === null || this.#process.failure !== null) this.#process = this.#start();
    this.#process.send({ type: 'load', modelPath, sequences: 1, contextTokens: null });
    return this.#reply.promise;
  }

  async close(): Promise<void> {
    await this.#process?.close();
  }

  #start(): SupervisedProcess {
    return new SupervisedProcess({
      entry: new URL('../../../language/engines/llama/child.ts', import.meta.url),
      name: 'the process of the model',
      limits: LLAMA_LIMITS,
      onMessage: ({ head }) => {
        if (FromChild.matches(head)) this.#reply.resolve(head);
      },
      onLost: (error) => this.#reply.reject(error),
    });
  }
}

function changed(bytes: Buffer, from: string, to: string): Buffer {
  const copy = Buffer.from(bytes);
  copy.write(to, copy.indexOf(from));
  return copy;
}

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(LIBRARY);
    return true;
  } catch {
    return false;
  }
}
