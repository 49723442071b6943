import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { startWorker } from '../../../runtime/start-worker.ts';
import { ProcessError } from '../../../runtime/supervised-process.ts';
import { EngineProcess } from '../../../speech/engine-process/engine-process.ts';
import { type SpawnedRecognizer, spawnRecognizer } from '../../../speech/engine-process/spawned-recognizer.ts';
import type { RecognizerDescription } from '../../../speech/recognizer.ts';
import { eventually } from '../../eventually.ts';
import { isRunning } from '../../is-running.ts';

const ENTRY = new URL('./scripted-engine.ts', import.meta.url);
const DESCRIPTION: RecognizerDescription = {
  engine: 'sherpa-onnx',
  model: 'scripted',
  languages: ['en'],
  detectsLanguage: false,
  streams: true,
  boostsKeywords: true,
  hasConfidence: false,
};
const OPTIONS = { language: 'en', keywords: [{ term: 'Tandem', weight: 2 }], isLive: true };

const spawned: SpawnedRecognizer[] = [];

interface Script {
  onLoad?: string;
  onFinish?: string;
  loadWithinMs?: number;
  answerWithinMs?: number;
  signal?: AbortSignal;
}

afterEach(async () => {
  await Promise.all(spawned.splice(0).map((recognizer) => recognizer.close()));
});

describe('a recognizer in a child process', () => {
  it('receives all samples and options and returns its results', async () => {
    const recognizer = await startRecognizer({});
    await recognizer.begin(OPTIONS);
    expect(await recognizer.hypothesis()).toBeNull();
    // Larger than one message, at an odd buffer offset.
    const samples = new Int16Array(1_500_000).map((_, index) => (index % 7) - 3);
    await recognizer.write(samples.subarray(1));
    expect(await recognizer.hypothesis()).toEqual({ text: '1499999', words: [] });
    const sum = samples.subarray(1).reduce((total, sample) => total + sample, 0);
    expect(await recognizer.finish()).toMatchObject({
      text: `${JSON.stringify(OPTIONS)} 1499999 samples of sum ${sum}`,
      language: 'en',
    });
  });

  it('answers pipelined requests in order', async () => {
    const recognizer = await startRecognizer({});
    const asked = [
      recognizer.begin(OPTIONS),
      recognizer.write(new Int16Array(160)),
      recognizer.hypothesis(),
      recognizer.write(new Int16Array(160)),
      recognizer.hypothesis(),
    ] as const;
    const [, , first, , second] = await Promise.all(asked);
    expect([first?.text, second?.text]).toEqual(['160', '320']);
  });

  it('runs with a lower priority than its owner', async () => {
    const recognizer = await startRecognizer({});
    expect(getPriority(recognizer.pid)).toBeGreaterThan(getPriority());
  });

  it('receives no secrets from the environment', async () => {
    vi.stubEnv('TANDEM_SECRET_KEY', 'secret');
    const recognizer = await startRecognizer({});
    vi.unstubAllEnvs();
    expect(readFileSync(`/proc/${recognizer.pid}/environ`, 'utf8')).not.toContain('TANDEM_SECRET_KEY');
  });

  it('survives termination signals to the process group, so that calls can drain', async () => {
    const recognizer = await startRecognizer({});
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(recognizer.pid!, signal);
    await recognizer.begin(OPTIONS);
    expect(await recognizer.finish()).toMatchObject({ model: 'scripted' });
  });

  it('reports why the model cannot be loaded', async () => {
    await expect(startRecognizer({ onLoad: 'throw' })).rejects.toMatchObject({
      name: 'RecognizerError',
      code: 'model',
      message: 'the model is damaged',
      retryable: false,
    });
  });

  it('counts as crashed when loading exceeds the timeout', async () => {
    await expect(startRecognizer({ onLoad: 'hang', loadWithinMs: 400 })).rejects.toMatchObject({
      code: 'crashed',
      retryable: true,
    });
  });

  it('counts as crashed when its module does not exist', async () => {
    const entry = new URL('./no-such-engine.ts', import.meta.url);
    await expect(spawnRecognizer({ entry, argument: null, description: DESCRIPTION })).rejects.toMatchObject({
      code: 'crashed',
    });
  });

  it.each(['exit', 'abort', 'garbage', 'oversize', 'stranger', 'no-words', 'bug'])(
    'counts as crashed for all later requests after %s during finish',
    async (onFinish) => {
      const recognizer = await startRecognizer({ onFinish });
      const { pid } = recognizer;
      await recognizer.begin(OPTIONS);
      const crashed = { name: 'RecognizerError', code: 'crashed', retryable: true };
      await expect(recognizer.finish()).rejects.toMatchObject(crashed);
      await expect(recognizer.begin(OPTIONS)).rejects.toMatchObject(crashed);
      await expect(recognizer.cancel()).rejects.toMatchObject(crashed);
      await isGone(pid!);
    },
  );

  it('ends when it hangs', async () => {
    const recognizer = await startRecognizer({ onFinish: 'hang', answerWithinMs: 500 });
    const { pid } = recognizer;
    await recognizer.begin(OPTIONS);
    await expect(recognizer.finish()).rejects.toMatchObject({ code: 'crashed' });
    await isGone(pid!);
  });

  it('fails all pending requests when it is killed', async () => {
    const recognizer = await startRecognizer({ onFinish: 'hang' });
    const asked = [recognizer.begin(OPTIONS), recognizer.finish(), recognizer.hypothesis()];
    const outcomes = Promise.allSettled(asked);
    await asked[0];
    process.kill(recognizer.pid!, 'SIGKILL');
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  it('keeps the output of a crashing library out of logged fields', async () => {
    const started = EngineProcess.start({ entry: ENTRY, argument: { onLoad: 'exit', onFinish: 'none' } });
    const error = (await started.catch((reason: unknown) => reason)) as ProcessError;
    expect(error).toBeInstanceOf(ProcessError);
    expect(error.output).toContain('a library prints to standard error');
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain('a library prints');
  });

  it('rejects invalid calls and continues', async () => {
    const engine = await EngineProcess.start({ entry: ENTRY, argument: { onLoad: 'none', onFinish: 'none' } });
    await expect(engine.call('begin', { language: 7 })).rejects.toMatchObject({ name: 'EngineCallError', code: null });
    for (const place of [null, -1, 1]) {
      await expect(engine.call('cancel', place)).rejects.toMatchObject({ name: 'EngineCallError', code: null });
    }
    expect(await engine.call('cancel', 0)).toBeNull();
    await engine.close();
  });

  it('ends when closed, busy or idle, also repeatedly', async () => {
    const recognizer = await startRecognizer({ onFinish: 'hang' });
    const { pid } = recognizer;
    await recognizer.begin(OPTIONS);
    const finished = expect(recognizer.finish()).rejects.toMatchObject({ code: 'crashed' });
    await Promise.all([recognizer.close(), recognizer.close()]);
    await recognizer.close();
    await finished;
    await isGone(pid!);
  });

  it('ends when its owner aborts, during and after loading', async () => {
    const controller = new AbortController();
    const recognizer = await startRecognizer({ signal: controller.signal });
    const loading = startRecognizer({ onLoad: 'hang', signal: controller.signal });
    const loaded = expect(loading).rejects.toThrow('enough');
    controller.abort(new Error('enough'));
    await loaded;
    await expect(recognizer.begin(OPTIONS)).rejects.toMatchObject({ code: 'crashed' });
    await isGone(recognizer.pid!);
    await expect(startRecognizer({ signal: controller.signal })).rejects.toThrow('enough');
  });

  it('ends when its owner process is killed', async () => {
    const owner = spawn(process.execPath, [fileURLToPath(new URL('./engine-owner.ts', import.meta.url))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = await firstNumber(owner);
    expect(isRunning(pid)).toBe(true);
    owner.kill('SIGKILL');
    await isGone(pid);
  });

  it('ends when its owner thread terminates', async () => {
    const thread = startWorker(new URL('./engine-owner.ts', import.meta.url), { stdout: true });
    const pid = Number(String((await once(thread.stdout, 'data'))[0]));
    expect(isRunning(pid)).toBe(true);
    await thread.terminate();
    await isGone(pid);
  });
});

async function startRecognizer({ onLoad = 'none', onFinish = 'none', ...limits }: Script): Promise<SpawnedRecognizer> {
  const argument = { onLoad, onFinish };
  const recognizer = await spawnRecognizer({ entry: ENTRY, argument, description: DESCRIPTION, ...limits });
  spawned.push(recognizer);
  return recognizer;
}

async function firstNumber(child: ChildProcess): Promise<number> {
  return Number(String((await once(child.stdout!, 'data'))[0]));
}

function isGone(pid: number): Promise<void> {
  return eventually(() => expect(isRunning(pid)).toBe(false));
}
