import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseWav } from '../../media/wav.ts';
import { type Platform, startPlatform } from '../calls/platform.ts';
import { startBreakingServer } from './breaking-server.ts';
import { type CommandLineOptions, serverFolder, tandem, tandemProcess } from './command-line.ts';

let platform: Platform;
let folder: Awaited<ReturnType<typeof serverFolder>>;
let options: CommandLineOptions;

beforeAll(async () => {
  platform = await startPlatform();
  folder = await serverFolder();
  const env = { TANDEM_URL: platform.tandem.url, TANDEM_API_KEY: platform.tandem.mintedApiKey ?? '' };
  options = { cwd: folder.path, env };
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(['speak', ...argv], options);
const durationOf = ({ data }: { data?: unknown }) => (data as { duration_seconds: number }).duration_seconds;
const wav = async (file: string) => parseWav(await readFile(join(folder.path, file)));

describe('tandem speak', () => {
  it('writes speech of the printed duration, and prints words and cost', async () => {
    const { exitCode, stdout, stderr } = await run('Your call is being connected. Please hold the line.', '--words');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const { sampleRateHz, channels, samples, durationMs } = await wav('speech.wav');
    expect({ sampleRateHz, channels }).toEqual({ sampleRateHz: 24_000, channels: 1 });
    const seconds = Number(/^speech\.wav: (\d+\.\d\d) s of speech at 24000 Hz, 0\.000765 USD\.$/m.exec(stdout)?.[1]);
    expect(durationMs / 1000).toBeCloseTo(seconds, 1);
    expect(Math.max(...samples[0]!)).toBeGreaterThan(3000);
    expect(stdout.match(/^\d+\.\d{3} {2}\d+\.\d{3} {2}\S+$/gm)).toHaveLength(9);
  });

  it('supports another language at telephone rate, with --json as data', async () => {
    const { exitCode, document } = await run('नमस्ते', '--voice', 'hi', '--rate', '8000', '--out', 'hi.wav', '--json');
    expect(exitCode).toBe(0);
    expect(document.data).toMatchObject({
      file: 'hi.wav',
      sample_rate_hertz: 8000,
      words: [{ word: 'नमस्ते', start: 0 }],
    });
    expect((await wav('hi.wav')).sampleRateHz).toBe(8000);
  });

  it.each([
    ['a.mp3', 'MP3', 24_000, /^(ID3|\xff[\xf2\xf3\xfb])/],
    ['a.OGG', 'OGG_OPUS', 24_000, /^OggS[\s\S]{24}OpusHead/],
    ['a.ulaw', 'MULAW', 8_000, null],
    ['a.alaw', 'ALAW', 8_000, null],
    ['a.raw', 'LINEAR16', 24_000, null],
  ] as const)('writes %s as %s, by its name', async (file, encoding, rateHz, beginning) => {
    const { exitCode, document } = await run('Hello there.', '--out', file, '--json');
    expect(exitCode).toBe(0);
    expect(document.data).toMatchObject({ file, audio_encoding: encoding, sample_rate_hertz: rateHz });
    const bytes = await readFile(join(folder.path, file));
    if (beginning !== null) expect(bytes.toString('latin1', 0, 64)).toMatch(beginning);
    else {
      const sampleBytes = encoding === 'LINEAR16' ? 2 : 1;
      expect(bytes.byteLength / sampleBytes / rateHz).toBeCloseTo(durationOf(document), 1);
    }
  });

  it('applies speed and style options', async () => {
    const seconds = async (...how: string[]) =>
      durationOf((await run('One two three four five six.', '--json', ...how)).document);
    const slow = await seconds('--wpm', '100', '--stability', '100', '--similarity', '0', '--plain');
    const fast = await seconds('--wpm', '100', '--speed', '2');
    expect(slow / fast).toBeGreaterThan(1.5);
  });

  it('reports a lost connection in one line', async () => {
    await using server = await startBreakingServer('{"type":"chunk","result":{"audioContent":"AAAA"}}\n');
    const { exitCode, stderr } = await run('Good morning.', '--url', server.url);
    expect([exitCode, stderr]).toEqual([1, `tandem: the answer of ${server.url} was broken off: try again.\n`]);
  });

  it('rejects a file that cannot be written before it asks for speech, which costs money', async () => {
    const nowhere = ['--url', 'http://127.0.0.1:9'];
    await mkdir(join(folder.path, 'folder.wav'));
    await writeFile(join(folder.path, 'file'), '');
    for (const file of ['no/such/folder/a.wav', 'folder.wav', 'file/a.wav']) {
      const { exitCode, document } = await run('Hi', '--out', file, '--json', ...nowhere);
      expect([file, exitCode, document.code]).toEqual([file, 1, 'NOT_WRITTEN']);
    }
  });

  it('reads the text from standard input', async () => {
    const { exitCode, document } = await tandemProcess(['speak', '-', '--out', 'in.wav', '--json'], {
      ...options,
      stdin: 'Hi.\n',
    });
    expect(exitCode).toBe(0);
    expect(document.data).toMatchObject({ words: [{ word: 'Hi.' }] });
  });

  it.each([
    { argv: ['Hi', '--voice', 'nobody'], code: 'VOICE_NOT_FOUND', exitCode: 1 },
    { argv: [' '], code: 'VALIDATION_FAILED', exitCode: 1 },
    { argv: ['...'], code: 'VALIDATION_FAILED', exitCode: 1 },
    { argv: ['<speak>Hi<marquee>you</marquee></speak>'], code: 'INVALID_SSML', exitCode: 1 },
    { argv: ['Hi', '--stability', '101'], code: 'VALIDATION_FAILED', exitCode: 1 },
    { argv: ['Hi', '--wpm', 'fast'], code: 'USAGE', exitCode: 2 },
    { argv: ['Hi', '--out', 'speech.flac'], code: 'USAGE', exitCode: 2 },
  ])('rejects $argv with $code', async ({ argv, code, exitCode }) => {
    const answer = await run(...argv, '--json');
    expect(answer.exitCode).toBe(exitCode);
    expect(answer.document).toMatchObject({ success: false, code });
  });
});
