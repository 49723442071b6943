import { readFileSync, rmSync, truncateSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { TandemError } from '../../machines/errors.ts';
import { eventually } from '../eventually.ts';
import { TRANSCRIPT } from '../http/fake-transcriber.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { startTandemProcess, tandem } from './command-line.ts';

let fixture: HttpFixture;
let folder: string;
let file: string;
let env: Record<string, string>;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  folder = await mkdtemp(join(tmpdir(), 'tandem-transcribe-'));
  file = join(folder, 'a "call".wav');
  await writeFile(file, Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251)));
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  fixture.transcriber.requests.length = 0;
  fixture.transcriber.onTranscribe = () => ({ transcript: TRANSCRIPT, charge: null });
});

const run = (...argv: string[]) => tandem(['transcribe', ...argv], { cwd: folder, env });

describe('tandem transcribe', () => {
  it('uploads the file unchanged and prints only the transcript', async () => {
    let uploaded = Buffer.alloc(0);
    fixture.transcriber.onTranscribe = (_request, { uploadPath }) => {
      uploaded = readFileSync(uploadPath);
      return { transcript: TRANSCRIPT, charge: null };
    };
    const { exitCode, stdout, stderr } = await run(file);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: 'go forward ten meters\n', stderr: '' });
    expect(uploaded.equals(readFileSync(file))).toBe(true);
    expect(fixture.transcriber.requests[0]).toMatchObject({ languages: null, diarize: false, includeWords: false });
  });

  it('finds a relative file in the working directory, even if that is not the folder of a server', async () => {
    expect(await run(basename(file))).toMatchObject({ exitCode: 0, stdout: 'go forward ten meters\n', stderr: '' });
  });

  it('forwards its options', async () => {
    const options = ['--language', 'en,hi', '--diarize', '--words', '--keywords', 'Tandem:3', '--context', 'A call.'];
    expect((await run(file, ...options, '--script-correction')).exitCode).toBe(0);
    expect(fixture.transcriber.requests[0]).toMatchObject({
      fileName: 'a %22call%22.wav',
      languages: ['en', 'hi'],
      diarize: true,
      includeWords: true,
      includeConfidence: true,
      keywords: [{ term: 'Tandem', weight: 3 }],
      context: 'A call.',
      scriptCorrection: true,
    });
  });

  it('--diarize prints speakers, --words prints each word with its times', async () => {
    const segments = [
      { id: 0, chunk_idx: 0, start: 0.5, end: 1, text: 'yes', speaker: 'speaker_1', language: 'en' },
      { id: 1, chunk_idx: 0, start: 119.997, end: 121, text: 'no', speaker: 'speaker_2', language: 'en' },
    ];
    fixture.transcriber.onTranscribe = () => ({ transcript: { ...TRANSCRIPT, segments }, charge: null });
    expect((await run(file, '--diarize')).stdout).toBe('0:00.50  speaker_1: yes\n2:00.00  speaker_2: no\n');
    const { stdout } = await run(file, '--words');
    expect(stdout).toMatch(/^go forward ten meters\n\nSTART +END +WORD +CONFIDENCE\n0:00\.10 +0:00\.30 +go +0\.90\n$/);
  });

  it('--json prints the whole response; otherwise warnings go to standard error', async () => {
    const transcript = { ...TRANSCRIPT, warning_codes: ['audio_incomplete' as const] };
    fixture.transcriber.onTranscribe = () => ({ transcript, charge: null });
    const { document } = await run(file, '--json');
    expect(document).toMatchObject({ success: true, data: { ...transcript, request_id: expect.any(String) } });
    expect((await run(file)).stderr).toBe('tandem: warning: audio_incomplete\n');
  });

  it('reports a missing file, an API error and an unreachable server', async () => {
    const missing = await run(join(folder, 'nothing.wav'), '--json');
    expect(missing).toMatchObject({ exitCode: 1, document: { code: 'NO_SUCH_FILE' } });
    fixture.transcriber.onTranscribe = () => {
      throw new TandemError('AUDIO_NOT_READABLE', 'The file is no audio.');
    };
    const refused = await run(file);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('The file is no audio. (AUDIO_NOT_READABLE, 422 to POST /stt)');
    const alone = await tandem(['transcribe', file], {
      cwd: folder,
      env: { ...env, TANDEM_URL: 'http://127.0.0.1:9' },
    });
    expect(alone.stderr).toContain('no server answers');
  });

  it.each([
    ['is removed', (path: string) => rmSync(path)],
    ['shrinks', (path: string) => truncateSync(path, 10)],
  ])('reports that the file cannot be read when it %s during the upload', async (_, change) => {
    const filePath = join(folder, 'fleeting.wav');
    await writeFile(filePath, Buffer.alloc(1000));
    const onProgress = ({ sentBytes }: { sentBytes: number }) => sentBytes === 0 && change(filePath);
    const api = apiClient({ url: env.TANDEM_URL!, apiKey: fixture.owner.key });
    await expect(api.upload('/stt', { filePath, fields: [], onProgress })).rejects.toMatchObject({
      code: 'FILE_NOT_READABLE',
      message: expect.stringContaining(filePath),
    });
  });

  it('cancels the transcription when interrupted', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    fixture.transcriber.onTranscribe = async (_request, { signal }) => {
      begun.resolve(signal);
      return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const command = startTandemProcess(['transcribe', file], { cwd: folder, env });
    const signal = await begun.promise;
    command.interrupt();
    await command.ended;
    await eventually(() => expect(signal.aborted).toBe(true));
  });
});
