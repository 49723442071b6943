import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { FAKE_VOICE, FakeVoiceDesk } from '../http/fake-voice-desk.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { tandem, tandemProcess } from './command-line.ts';

let fixture: HttpFixture;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  folder = await mkdtemp(join(tmpdir(), 'tandem-voices-'));
  await writeFile(join(folder, 'asha.wav'), 'RIFF');
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  Object.assign(fixture.voices, new FakeVoiceDesk());
});

const run = (...argv: string[]) => tandem(['voices', ...argv], { cwd: folder, env });
const create = (...more: string[]) =>
  run('create', 'Asha', join(folder, 'asha.wav'), '--language', 'en', '--consent', ...more);

describe('tandem voices', () => {
  it('lists and shows voices', async () => {
    expect((await run('list')).stdout).toBe('No voice matches. --model fast lists others.\n');
    expect((await run('list', '--model', 'fast')).stdout).toContain(`${FAKE_VOICE.id}  English (United States)`);
    expect((await run('list', '--model', 'fast', '--language', 'hi')).stdout).toMatch(/^No voice matches/);
    const { exitCode, stdout } = await tandemProcess(['voices', 'show', 'en-us'], { cwd: folder, env });
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^id +3f1f5a0e.*\n(.*\n)*pace +150 words a minute/)]);
  });

  it('creates a voice and waits until it is ready', async () => {
    const get = fixture.voices.get.bind(fixture.voices);
    vi.spyOn(fixture.voices, 'get').mockImplementation(async (key) => ({
      ...(await get(key)),
      status: 'ready',
      approximate: true,
    }));
    const { exitCode, stdout } = await create('--gender', 'female', '--description', 'Calm.');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/status +ready\n(.*\n)*kind +fitted to the speaker/)]);
    vi.restoreAllMocks();
    expect(fixture.voices.created).toMatchObject([
      { name: 'Asha', language: 'en', description: 'Calm.', labels: { gender: 'female' } },
    ]);
    expect(fixture.voices.created[0]?.samples?.files).toMatchObject([{ name: 'asha.wav' }]);
  });

  it('fails with the reason when the voice fails', async () => {
    const get = fixture.voices.get.bind(fixture.voices);
    vi.spyOn(fixture.voices, 'get').mockImplementation(async (key) => ({
      ...(await get(key)),
      status: 'failed',
      error: 'Nobody speaks.',
    }));
    const { exitCode, stderr } = await create();
    vi.restoreAllMocks();
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Nobody speaks.')]);
  });

  it('rejects a voice without consent or language', async () => {
    const silent = await run('create', 'Asha', 'asha.wav', '--language', 'en');
    expect([silent.exitCode, silent.stderr]).toEqual([2, expect.stringContaining('--consent')]);
    const { exitCode } = await run('create', 'Asha', 'asha.wav', '--consent');
    expect(exitCode).toBe(2);
    expect(fixture.voices.created).toEqual([]);
  });

  it('skips waiting with --no-wait, and deletes a voice', async () => {
    expect((await create('--no-wait')).stdout).toMatch(/status +processing/);
    const [id] = fixture.voices.own.keys();
    expect((await run('delete', id!)).stdout).toBe(`Voice ${id} is removed.\n`);
    const again = await run('delete', id!);
    expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining('There is no such voice')]);
  });
});
