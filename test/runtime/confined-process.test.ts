import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type ConfinedOptions, runConfined } from '../../runtime/confined-process.ts';
import { eventually } from '../eventually.ts';
import { isRunning } from '../is-running.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-confined-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function run(script: string, more: Partial<ConfinedOptions> = {}) {
  await using output = await open(join(folder, 'output'), 'w');
  let stderr = '';
  const code = await runConfined({
    command: ['/bin/sh', '-c', script],
    stdoutFd: output.fd,
    onStderr: (text) => {
      stderr += text;
    },
    memoryBytes: null,
    cpuSeconds: 10,
    fileBytes: 10_240,
    signal: new AbortController().signal,
    ...more,
  });
  return { code, stderr, output: await readFile(join(folder, 'output'), 'utf8') };
}

it('a confined process returns output, errors and exit code', async () => {
  expect(await run('echo out; echo err >&2; exit 7')).toEqual({ code: 7, output: 'out\n', stderr: 'err\n' });
});

it('a confined process receives no environment and no input', async () => {
  vi.stubEnv('TANDEM_API_KEY', 'sk_secret');
  const { output } = await run('env; cat');
  vi.unstubAllEnvs();
  expect(output).toContain('PATH=');
  expect(output).not.toContain('sk_secret');
});

it('a confined process ends at its limits of time, disk space and memory', async () => {
  expect((await run('while :; do :; done', { cpuSeconds: 1 })).code).toBeGreaterThan(128);
  const flood = await run('yes');
  expect(flood.code).toBeGreaterThan(128);
  expect(flood.output).toHaveLength(10_240);
  const hog = await run('a=aaaaaaaaaaaaaaaa; while :; do a=$a$a; done', { memoryBytes: 2 ** 26 });
  expect(hog.code).not.toBe(0);
});

it('a confined process is killed when its signal aborts', async () => {
  const controller = new AbortController();
  const pid = Promise.withResolvers<number>();
  const running = run('echo $$ >&2; exec sleep 1000', {
    signal: controller.signal,
    onStderr: (text) => pid.resolve(Number(text)),
  });
  await pid.promise;
  controller.abort(new Error('called off'));
  await expect(running).rejects.toThrow('called off');
  await eventually(async () => expect(isRunning(await pid.promise)).toBe(false));
});

it('a confined process dies with its owner', async () => {
  const module = fileURLToPath(new URL('../../runtime/confined-process.ts', import.meta.url));
  const code = `
    import { runConfined } from ${JSON.stringify(module)};
    await runConfined({
      command: ['/bin/sh', '-c', 'echo $$ >&2; exec sleep 1000'], stdoutFd: 1, memoryBytes: null, cpuSeconds: 10,
      fileBytes: 1e6, signal: new AbortController().signal, onStderr: (text) => process.stdout.write(text),
    });`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = (await once(owner.stdout, 'data')) as [Buffer];
  const pid = Number(text.toString());
  expect(isRunning(pid)).toBe(true);
  owner.kill('SIGKILL');
  await eventually(() => expect(isRunning(pid)).toBe(false));
});
