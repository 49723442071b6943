import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCallSoundDesk, LONGEST_SOUND_MS } from '../../actors/call-sound.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { readScript } from '../../speech/text/read-script.ts';
import { reverseTopUp } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { wavFile } from '../media/audio-file/wav-files.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { seedCaller } from './seeds.ts';
import { FakeSpeech } from './speech-fakes.ts';

let database: TestDatabase;
let tempDir: string;
let server: http.Server;
let base: string;
let answer: http.RequestListener;
beforeAll(async () => {
  database = await createTestDatabase();
  server = http.createServer((request, response) => answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await database.drop();
});
beforeEach(async () => {
  tempDir = await mkdtemp(join(tmpdir(), 'sound-'));
});
afterEach(async () => {
  await rm(tempDir, { recursive: true });
});

async function desk({ balanceNano = 1_000_000_000n } = {}) {
  const { workspaceId } = await seedCaller(database.sql, { balanceNano });
  const speech = new FakeSpeech();
  const sounds = createCallSoundDesk({
    ...{ sql: database.sql, synthesis: speech, voices: speech, readScript, tempDir },
    allowCidrs: parseCidrs(['127.0.0.0/8']),
  });
  const call = new AbortController();
  const request = { workspaceId, signal: call.signal };
  return {
    speech,
    call,
    workspaceId,
    say: (text: string) => sounds.make({ kind: 'text', text, voiceId: null }, request),
    fetch: (path: string) => sounds.make({ kind: 'url', url: `${base}${path}` }, request),
  };
}

/** A 440 Hz tone of one second at 16 kHz. */
const FILE = wavFile(Int16Array.from({ length: 16_000 }, (_, i) => 8_000 * Math.sin((2 * Math.PI * 440 * i) / 16_000)));

describe('text for a call', () => {
  it('becomes 16 kHz audio, with the number of billable characters', async () => {
    const { say } = await desk();
    const { samples, characters } = await say('Please hold the line.');
    expect(samples.length).toBe(4 * 1_600);
    expect(characters).toBe('Please hold the line.'.length);
  });

  it('fails before synthesis when the wallet does not cover it', async () => {
    const { say, speech } = await desk({ balanceNano: 1n });
    await expect(say('Please hold the line.')).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(speech.spoken).toEqual([]);
  });

  it('succeeds where speech is free although the wallet is overdrawn', async () => {
    const { say, workspaceId } = await desk({ balanceNano: 1n });
    const { sql } = database;
    const [payment] = await sql<{ id: string }[]>`select id from payments where workspace_id = ${workspaceId}`;
    await reverseTopUp(sql, {
      ...{ workspaceId, amountNano: 2n, paymentType: 'one_time', reversesPaymentId: payment!.id },
      operationKey: `overdraw:${workspaceId}`,
    });
    await setPrice(sql, { scope: { workspaceId }, item: 'tts', value: 0n, now: new Date() });
    expect((await say('Please hold the line.')).characters).toBe('Please hold the line.'.length);
  });

  it('fails when nothing in it can be pronounced', async () => {
    const { say } = await desk();
    await expect(say('...')).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    await expect(say('<speak>')).rejects.toMatchObject({ code: 'INVALID_SSML' });
  });

  it('fails with TTS_UNAVAILABLE when the engine fails, and aborts with the call', async () => {
    const { say, speech, call } = await desk();
    speech.onSpeak = () => {
      throw new Error('the engine broke');
    };
    await expect(say('Hello.')).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE' });
    speech.onSpeak = (_, signal) => {
      call.abort(new Error('the call is over'));
      signal.throwIfAborted();
    };
    await expect(say('Hello.')).rejects.toThrow('the call is over');
  });
});

describe('audio file for a call', () => {
  it('gets fetched and decoded to 16 kHz, free of charge and without leaving a file', async () => {
    const { fetch } = await desk({ balanceNano: 0n });
    answer = (_, response) => response.end(FILE);
    const { samples, characters } = await fetch('/hold.wav');
    expect(characters).toBeNull();
    expect(samples.length).toBeGreaterThan(15_800);
    expect(samples.length).toBeLessThan(16_200);
    expect(toneLevelDbov(samples.subarray(1_600, 14_400), 440, 16_000)).toBeGreaterThan(-16);
    expect(await readdir(tempDir)).toEqual([]);
  });

  it.each([
    ['404', 404],
    ['500', 500],
    ['redirect', 302],
  ])('fails as unreachable when the server answers %s', async (_, status) => {
    const { fetch } = await desk();
    answer = (_request, response) => response.writeHead(status, { location: `${base}/other` }).end();
    await expect(fetch('/a.wav')).rejects.toMatchObject({
      code: 'PLAYBACK_URL_UNREACHABLE',
      message: expect.stringContaining(`HTTP ${status}`),
    });
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('fails when truncated or too large, without leaving a file', async () => {
    const { fetch } = await desk();
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': 1_000 });
      response.write('RIFF', () => response.destroy());
    };
    await expect(fetch('/a.wav')).rejects.toMatchObject({ code: 'PLAYBACK_URL_UNREACHABLE' });
    const chunk = Buffer.alloc(1_000_000);
    answer = (_, response) => {
      const more = () => response.write(chunk) && setImmediate(more);
      response.on('drain', more);
      more();
    };
    await expect(fetch('/a.wav')).rejects.toMatchObject({
      code: 'PLAYBACK_URL_UNREACHABLE',
      message: 'The file could not be fetched: it has more than 25000000 bytes.',
    });
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('fails with a matching code when not audio, empty or too long', async () => {
    const { fetch } = await desk();
    answer = (_, response) => response.end('<html>not audio</html>');
    await expect(fetch('/a.wav')).rejects.toMatchObject({ code: 'AUDIO_NOT_READABLE' });
    const samples = new Int16Array(((LONGEST_SOUND_MS + 1_000) / 1_000) * 16_000);
    answer = (_, response) => response.end(wavFile(samples));
    await expect(fetch('/a.wav')).rejects.toMatchObject({ code: 'AUDIO_TOO_LONG' });
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('from a slow server delays neither texts nor files of other workspaces', async () => {
    const speech = new FakeSpeech();
    const { sql } = database;
    const sounds = createCallSoundDesk({
      ...{ sql, synthesis: speech, voices: speech, readScript, tempDir, allowCidrs: parseCidrs(['127.0.0.0/8']) },
    });
    const controller = new AbortController();
    const slow = Promise.withResolvers<void>();
    let count = 0;
    answer = (request, response) => {
      if (request.url === '/a.wav') response.end(FILE);
      else if (++count === 4) slow.resolve();
    };
    const make = (workspaceId: string, path: string) =>
      sounds.make({ kind: 'url', url: `${base}${path}` }, { workspaceId, signal: controller.signal });
    const workspaces: string[] = [];
    while (workspaces.length < 3) workspaces.push((await seedCaller(sql, { balanceNano: 1_000_000_000n })).workspaceId);
    const [one, two, other] = workspaces as [string, string, string];
    const waiting = [one, one, two, two].map((workspaceId) => make(workspaceId, '/slow.wav').catch(() => null));
    await slow.promise;
    const text = { kind: 'text', text: 'Hello.', voiceId: null } as const;
    for (const workspaceId of workspaces) await sounds.make(text, { workspaceId, signal: controller.signal });
    await make(other, '/a.wav');
    controller.abort();
    await Promise.all(waiting);
    expect(speech.spoken).toHaveLength(3);
  });

  it('fails as busy when earlier sounds of the workspace take too long', async () => {
    const speech = new FakeSpeech();
    const { workspaceId } = await seedCaller(database.sql);
    const sounds = createCallSoundDesk({
      ...{ sql: database.sql, synthesis: speech, voices: speech, readScript, tempDir, patienceMs: 1 },
      allowCidrs: parseCidrs(['127.0.0.0/8']),
    });
    const controller = new AbortController();
    const slow = Promise.withResolvers<void>();
    let count = 0;
    answer = () => void (++count === 2 && slow.resolve());
    const make = () =>
      sounds.make({ kind: 'url', url: `${base}/slow.wav` }, { workspaceId, signal: controller.signal });
    const waiting = [make(), make()].map((sound) => sound.catch(() => null));
    await slow.promise;
    await expect(make()).rejects.toMatchObject({ code: 'CONTROL_BUSY', retryAfterS: 5 });
    expect(count).toBe(2);
    controller.abort();
    await Promise.all(waiting);
  });

  it('fails on a private network and with an invalid URL', async () => {
    const speech = new FakeSpeech();
    const { workspaceId } = await seedCaller(database.sql);
    const sounds = createCallSoundDesk({
      ...{ sql: database.sql, synthesis: speech, voices: speech, readScript, tempDir, allowCidrs: [] },
    });
    const { signal } = new AbortController();
    for (const url of [`${base}/a.wav`, 'https://10.0.0.1/a.wav', 'file:///etc/passwd', 'nonsense']) {
      await expect(sounds.make({ kind: 'url', url }, { workspaceId, signal })).rejects.toMatchObject({
        code: 'INVALID_PLAYBACK_URL',
      });
    }
  });
});
