import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { apiClient } from '../../bin/cli/api-client.ts';
import { readWav } from '../../media/wav.ts';
import { eventually } from '../eventually.ts';
import { ROOT } from '../root.ts';
import { inheritedEnvironment, SHORT_LIVED } from './server-process.ts';

const clean: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

/** Uses separate folders, to detect leftovers. */
async function startDemo(argv: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-demo-test-'));
  const cwd = join(folder, 'here');
  clean.push(() => rm(folder, { recursive: true, force: true }));
  await mkdir(cwd);
  const child = spawn(process.execPath, [...SHORT_LIVED, join(ROOT, 'bin/cli/tandem.ts'), 'demo', ...argv], {
    cwd,
    env: { ...inheritedEnvironment(), TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  clean.push(async () => child.kill('SIGKILL'));
  let output = '';
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      for (const look of waiting) look();
    });
  }
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const printed = async (text: string) => {
    const seen = Promise.withResolvers<void>();
    waiting.add(() => output.includes(text) && seen.resolve());
    void exited.then((code) => seen.reject(new Error(`it ended with ${code} before it printed ${text}:\n${output}`)));
    await seen.promise;
  };
  return { child, exited, output: () => output, stdout: () => stdout, printed, folder, cwd };
}

/** Recognition is slow on a busy machine; the demo's own limit is shorter. */
const DEMO_TIMEOUT_MS = 330_000;

describe('npm run demo', { timeout: DEMO_TIMEOUT_MS }, () => {
  it('places a call, proves every printed claim, exits with 0 and leaves only the recording', async () => {
    const demo = await startDemo([]);
    expect(await demo.exited, demo.output()).toBe(0);
    const output = demo.output();
    for (const expected of [
      'curl -X POST http://127.0.0.1:',
      'announcement.finished',
      'call.bridged',
      'whisper.finished',
      'transcript.final',
      'call.completed',
      '✓ the agent heard the customer',
      '✓ the customer heard the agent',
      '✓ the announcement',
      '✓ the whisper',
      '✓ the agent heard “Thank you, goodbye.”, synthesised for the customer',
      '✓ recording',
      '✓ transcript of the agent',
      '✓ transcript of the customer',
      '✓ tandem-rules-1 corrects what the agent said',
      '✓ memory: ',
      '✓ billed',
      'signature verified: t=',
    ]) {
      expect(output).toContain(expected);
    }
    expect(output).not.toContain('✗');
    const wav = await readWav(join(demo.cwd, '.data/demo/last.wav'));
    expect(wav.samples).toHaveLength(2);
    expect(wav.durationMs).toBeGreaterThan(1_500);
    expect(await readdir(demo.folder)).toEqual(['here']);
  });

  it('prints its usage with --help', async () => {
    const demo = await startDemo(['--help']);
    expect(await demo.exited).toBe(0);
    expect(demo.output()).toContain('--keep');
  });

  it('cleans up when interrupted during the call', async () => {
    const demo = await startDemo([]);
    await demo.printed('call.bridged');
    demo.child.kill('SIGINT');
    expect(await demo.exited, demo.output()).toBe(130);
    expect(await readdir(demo.folder)).toEqual(['here']);
  });

  it('cleans up when interrupted during the start', async () => {
    const demo = await startDemo([]);
    await demo.printed('Postgres, schema');
    demo.child.kill('SIGINT');
    expect(await demo.exited, demo.output()).toBe(130);
    expect(await readdir(demo.folder)).toEqual(['here']);
  });

  it('prints one JSON document with --json, and keeps a live call up with --keep until interrupted', async () => {
    const demo = await startDemo(['--sentences', '2', '--encrypt', '--keep', '--json']);
    await demo.printed('\n}\n');
    const { success, data } = JSON.parse(demo.stdout());
    expect({ success, state: data.call.state }).toEqual({ success: true, state: 'completed' });
    expect(data.checks.filter(({ ok }: { ok: boolean }) => !ok)).toEqual([]);
    expect(data.checks).toHaveLength(14);
    expect(data.call.quality).toMatchObject({ agent: { encryption: expect.stringContaining('AES') } });
    expect((await fetch(`${data.url}/healthz`)).status).toBe(200);
    const token = new URL(data.console_url).searchParams.get('token');
    const login = await fetch(`${data.url}/auth/login-link`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    expect(login.status).toBe(200);
    const api = apiClient({ url: data.url, apiKey: data.api_key });
    await eventually(async () => {
      const { calls } = await api.get<{ calls: PublicCall[] }>('/dialer/click2call');
      expect(calls.map(({ state }) => state)).toContain('bridged');
    });
    demo.child.kill('SIGINT');
    expect(await demo.exited, demo.output()).toBe(0);
    await expect(fetch(`${data.url}/healthz`)).rejects.toThrow();
  });
});
