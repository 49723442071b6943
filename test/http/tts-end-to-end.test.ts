import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTtsDesk } from '../../actors/tts/tts-desk.actor.ts';
import type { TtsDesk } from '../../actors/tts/tts-desk.ts';
import { signedMediaUrl } from '../../http/playback.ts';
import { TandemError } from '../../machines/errors.ts';
import { parseWav } from '../../media/wav.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createSpeechSynthesis } from '../../speech/speech-synthesis.thread.ts';
import type { SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import { readScript } from '../../speech/text/read-script.ts';
import { createVoiceCatalogue } from '../../speech/voices/built-in-voices.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { createTestLogger } from '../actors/fakes.ts';
import { eventually } from '../eventually.ts';
import { isDeep } from '../properties.ts';
import { ROOT } from '../root.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

/** The API with a real synthesis thread and engine. */

const USD = 1_000_000_000n;
const CHARACTER_NANO = 15_000n;
const SECRET = Buffer.alloc(32, 5);
/** Each hangs up five times at once, so that a few use up all slots if they keep one. */
const HANG_UP_ROUNDS = isDeep ? 40 : 12;

let fixture: HttpFixture;
let folder: string;
let tempDir: string;
let synthesis: SpeechSynthesis;
let desk: TtsDesk;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-tts-'));
  tempDir = await mkdtemp(join(folder, 'temp-'));
  synthesis = await createSpeechSynthesis({
    settings: {
      processes: 2,
      modelsDir: join(folder, 'models'),
      upstream: null,
      cache: { folder: join(folder, 'cache'), mostBytes: 0 },
    },
  });
  fixture = await createHttpFixture({
    speech: {
      languages: () => desk.languages(),
      speak: (...text) => desk.speak(...text),
      openLive: (request) => desk.openLive(request),
      close: () => desk.close(),
    },
  });
  const catalogue = createVoiceCatalogue(synthesis.voices(), { preferred: 'auto' });
  desk = createTtsDesk({
    sql: fixture.sql,
    synthesis,
    catalogue,
    voices: {
      async resolve({ voiceId, text, like }) {
        if (like !== undefined) return catalogue.like(like)!;
        const voice = voiceId === null ? catalogue.usual : catalogue.find(voiceId, text);
        if (voice === null) throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice. GET /voices lists them.');
        return voice;
      },
    },
    readScript,
    deliverer: { enqueue: async () => {} },
    objects: fixture.objects,
    tempDir,
    audioUrl: (object) => signedMediaUrl({ ...object, baseUrl: '', secret: SECRET }),
    node: 'node',
    boot: 'boot',
    clock: {
      ...systemClock,
      now: () => fixture.now.current.getTime(),
    },
    logger: createTestLogger(),
  });
  const wallet = { workspaceId: fixture.owner.workspaceId, amountNano: 5n * USD };
  await topUp(fixture.sql, { ...wallet, paymentType: 'admin_bonus', operationKey: 'top-up' });
}, 120_000);
afterAll(async () => {
  await desk.close();
  await fixture[Symbol.asyncDispose]();
  await synthesis.close();
  await rm(folder, { recursive: true });
});

async function speak(body: object) {
  const answer = await fixture.call('POST', '/tts-synthesize', { body });
  const lines = answer.raw
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const chunks = lines.filter(({ type }) => type === 'chunk');
  const audio = Buffer.concat(chunks.map(({ result }) => Buffer.from(result.audioContent, 'base64')));
  return { status: answer.status, complete: lines.at(-1), audio };
}

async function baseUrl(): Promise<string> {
  const { server } = fixture.app;
  if (!server.listening) await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const balance = async () => (await walletOf(fixture.sql, fixture.owner.workspaceId)).balanceNano;

describe('synthesis over HTTP', () => {
  it('returns speech of the reported duration, with times for every word', async () => {
    const text = 'Your order 4711 is on its way. Please hold the line.';
    const { status, complete, audio } = await speak({ text, audio_config: { audio_encoding: 'WAV' } });
    expect(status).toBe(200);
    const { samples, sampleRateHz, durationMs } = parseWav(audio);
    expect(sampleRateHz).toBe(24_000);
    expect(durationMs / 1000).toBeCloseTo(complete.duration_seconds, 1);
    expect(Math.max(...samples[0]!)).toBeGreaterThan(3000);
    const {
      words,
      wordStartTimeSeconds: starts,
      wordEndTimeSeconds: ends,
    } = complete.result.timestampInfo.wordAlignment;
    expect(words.join(' ')).toBe(text);
    for (const [index, start] of starts.entries()) {
      expect(start).toBeGreaterThanOrEqual(index === 0 ? 0 : ends[index - 1]);
      expect(ends[index]).toBeGreaterThan(start);
    }
    expect(ends.at(-1)).toBeLessThanOrEqual(complete.duration_seconds);
    expect(complete.result.usage.processedCharactersCount).toBe([...text].length);
  });

  it.each([
    ['MULAW', 8000, null],
    ['ALAW', 8000, null],
    ['LINEAR16', 48_000, null],
    ['MP3', 24_000, /^(ID3|\xff[\xe2-\xff])/],
    ['OGG_OPUS', 24_000, /^OggS/],
  ] as const)('supports %s', async (encoding, rateHz, beginning) => {
    const audio_config = { audio_encoding: encoding, sample_rate_hertz: rateHz };
    const { complete, audio } = await speak({ text: 'Hello there.', audio_config });
    expect(complete).toMatchObject({ type: 'complete', audio_encoding: encoding, sample_rate_hertz: rateHz });
    if (beginning !== null) expect(audio.toString('latin1', 0, 8)).toMatch(beginning);
    else {
      const seconds = audio.byteLength / (encoding === 'LINEAR16' ? 2 : 1) / rateHz;
      expect(seconds).toBeCloseTo(complete.duration_seconds, 1);
    }
  });

  it('through the WebSocket client of the guide has the same words and price', async () => {
    const guide = await readFile(join(ROOT, 'docs/tts-websocket.md'), 'utf8');
    const path = join(folder, 'guide.ulaw');
    const code = /```js\n([\s\S]*?)```/.exec(guide)![1]!;
    const here = code
      .replace('ws://localhost:8080', (await baseUrl()).replace('http', 'ws'))
      .replace("'speech.ulaw'", JSON.stringify(path));
    const before = await balance();
    const run = { cwd: ROOT, env: { ...process.env, KEY: fixture.owner.key }, timeout: 60_000 };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', here], run);
    expect([...stdout.matchAll(/word: '([^']+)'/g)].map(([, word]) => word).join(' ')).toBe(
      'Your order 4711 is on its way. It arrives on Monday.',
    );
    // The space between the sentences is free.
    expect(before - (await balance())).toBe(51n * CHARACTER_NANO);
    const ends = [...stdout.matchAll(/end: ([\d.]+)/g)].map(([, end]) => Number(end));
    const audio = await readFile(path);
    expect(ends.at(-1)).toBeLessThanOrEqual(audio.length / 8000);
    expect(ends.at(-1)).toBeGreaterThan(audio.length / 8000 - 0.5);
  });

  it('reports mark times and switches voices, for the price of its text', async () => {
    const before = await balance();
    const text =
      '<speak>Hello. <mark name="hindi"/><lang xml:lang="hi-IN">नमस्ते।</lang> <voice gender="female" language="en-US">Bye<mark name="end"/>.</voice></speak>';
    const { status, complete } = await speak({ text });
    expect(status).toBe(200);
    const { wordAlignment, marks } = complete.result.timestampInfo;
    expect(wordAlignment.words).toEqual(['Hello.', 'नमस्ते।', 'Bye.']);
    expect(marks).toEqual([
      { name: 'hindi', time_seconds: wordAlignment.wordStartTimeSeconds[1] },
      { name: 'end', time_seconds: wordAlignment.wordEndTimeSeconds[2] },
    ]);
    // White space between elements is not counted.
    const characters = [...'Hello. नमस्ते।Bye.'].length;
    expect(complete.result.usage.processedCharactersCount).toBe(characters);
    expect(before - (await balance())).toBe(BigInt(characters) * 15_000n);
    const without = await speak({ text, timestamp_type: 'NONE' });
    // Breath noise is random, so end times vary.
    const again = marks.map(({ name, time_seconds }: { name: string; time_seconds: number }) => {
      return { name, time_seconds: expect.closeTo(time_seconds, 1) };
    });
    expect(without.complete.result.timestampInfo).toEqual({ marks: again });
  });

  it("streams and charges the same in OpenAI's format", async () => {
    const [before, input] = [await balance(), 'Your order is on its way.'];
    const ask = (more: object) =>
      fixture.call('POST', '/v1/audio/speech', { body: { model: 'tts-1', input, ...more } });
    const female = await ask({ voice: 'alloy', response_format: 'wav' });
    const charged = BigInt(input.length) * 15_000n;
    expect(female).toMatchObject({ status: 200, headers: { 'x-credit-charged': String(Number(charged) / 1e9) } });
    const male = await ask({ voice: 'onyx', response_format: 'wav' });
    const [slow, fast] = [0.25, 4].map((speed) => ask({ voice: 'alloy', response_format: 'wav', speed }));
    const lengthOf = ({ raw }: { raw: Buffer }) => parseWav(raw).durationMs;
    expect(lengthOf(female)).toBeGreaterThan(1000);
    expect(male.raw.equals(female.raw)).toBe(false);
    expect(lengthOf(await slow!)).toBeGreaterThan(3 * lengthOf(female));
    expect(lengthOf(await fast!)).toBeLessThan(0.6 * lengthOf(female));
    expect((await ask({ response_format: 'mp3' })).raw.toString('latin1', 0, 8)).toMatch(/^(ID3|\xff[\xe2-\xff])/);
    expect((await ask({ response_format: 'opus' })).raw.toString('latin1', 0, 4)).toBe('OggS');
    expect(before - (await balance())).toBe(6n * charged);
    expect((await ask({ voice: 'no-such-voice' })).body.error.code).toBe('VOICE_NOT_FOUND');
    expect((await ask({ input: '... !' })).body.error.code).toBe('VALIDATION_FAILED');
    expect(before - (await balance())).toBe(6n * charged);
  });

  it('rejects invalid SSML, empty text and unknown voices free of charge', async () => {
    const before = await balance();
    expect((await speak({ text: '<speak>a<audio>b</audio></speak>' })).complete).toMatchObject({
      code: 'INVALID_SSML',
    });
    expect((await speak({ text: '... !' })).complete).toMatchObject({ code: 'VALIDATION_FAILED' });
    const unknownVoice = await speak({ text: 'a', voice_id: 'nobody' });
    expect(unknownVoice).toMatchObject({ status: 404, complete: { message: expect.stringContaining('GET /voices') } });
    const inside = await speak({ text: '<speak>a\n<voice name="nobody">b</voice></speak>' });
    expect(inside).toMatchObject({ status: 404, complete: { code: 'VOICE_NOT_FOUND' } });
    expect(inside.complete.message).toContain('SSML at line 2, column 1');
    expect(await balance()).toBe(before);
  });

  it('rejects text that the voice cannot pronounce free of charge, in every encoding', async () => {
    const before = await balance();
    for (const audio_encoding of ['LINEAR16', 'WAV', 'MULAW', 'MP3', 'OGG_OPUS']) {
      const { status, complete } = await speak({ text: 'Ꭰ Ꭱ. Ꭲ Ꭳ.', audio_config: { audio_encoding } });
      expect([status, complete.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(complete.message).toContain('You were not charged');
    }
    expect(await balance()).toBe(before);
    const asked = { text: '<speak><prosody volume="silent">Hello.</prosody></speak>' };
    expect((await speak(asked)).complete.type).toBe('complete');
  });

  it('lists supported languages', async () => {
    const { body } = await fixture.call('GET', '/tts/languages');
    expect(body.data).toContainEqual({ language_id: 'hi', name: 'Hindi' });
    expect(body.data.length).toBeGreaterThanOrEqual(25);
  });

  it('sends a webhook with an audio URL valid for a day', async () => {
    const { sql, owner, now } = fixture;
    const [id, url, secretEncrypted] = [randomUUID(), 'https://example.com/hook', Buffer.from('sealed')];
    const webhook = { id, workspaceId: owner.workspaceId, url, secretEncrypted, now: now.current };
    await createWebhook(sql, { ...webhook, events: ['tts.completed'] });
    for (const [encoding, type] of [
      ['LINEAR16', 'audio/wav'],
      ['MULAW', 'audio/wav'],
      ['MP3', 'audio/mpeg'],
      ['OGG_OPUS', 'audio/ogg'],
    ]) {
      const { audio } = await speak({ text: 'Hello there.', audio_config: { audio_encoding: encoding } });
      const [row] = await sql<{ body: string }[]>`select body from deliveries order by created_at desc, id limit 1`;
      await sql`delete from deliveries`;
      const { data } = JSON.parse(row!.body);
      const played = await fixture.call('GET', data.audio_url, { as: null });
      expect(played).toMatchObject({ status: 200, headers: { 'content-type': type } });
      expect(played.raw.includes(audio)).toBe(true);
      if (encoding === 'LINEAR16') expect(parseWav(played.raw).sampleRateHz).toBe(24_000);
      now.current = new Date(now.current.getTime() + 24 * 3_600_000);
      expect(await fixture.call('GET', data.audio_url, { as: null })).toMatchObject({ status: 403 });
    }
    await sql`delete from webhook_secrets`;
    await sql`delete from webhook_subscriptions`;
  });

  it('ends with an error when its key is revoked midway, and stays charged', async () => {
    const url = await baseUrl();
    const leaver = await fixture.addMemberWith('member', fixture.owner.workspaceId);
    const text = 'One two three four five. Six seven eight nine ten. '.repeat(90);
    const before = await balance();
    const answer = await fetch(`${url}/tts-stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${leaver.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text, audio_config: { sample_rate_hertz: 48_000 } }),
    });
    const lines = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await lines.read()).value).toContain('"type":"chunk"');
    expect((await fixture.call('DELETE', `/developer/api/${leaver.keyId}`)).status).toBe(200);
    let rest = '';
    for (let read = await lines.read(); !read.done; read = await lines.read()) rest = (rest + read.value).slice(-200);
    expect(rest.trimEnd().split('\n').at(-1)).toBe(
      '{"type":"error","message":"The credentials were revoked or have expired."}',
    );
    await eventually(async () => {
      const [row] = await fixture.sql`select state from tts_streams where user_id = ${leaver.userId}`;
      expect(row).toEqual({ state: 'abandoned' });
    });
    expect(await balance()).toBe(before - BigInt(text.length) * 15_000n);
  });

  it('leaves no slot, stream or file after many hang-ups', async () => {
    const port = Number(new URL(await baseUrl()).port);
    const body = JSON.stringify({ text: 'One two three four five. Six seven eight nine ten. '.repeat(20) });
    const head = `POST /tts-stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${fixture.owner.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const hangUp = async (index: number) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(head + body);
      // Hang up before reading, while charging, and after the first audio.
      if (index % 3 === 1) await new Promise((resolve) => setImmediate(resolve));
      if (index % 3 === 2) await new Promise((resolve) => socket.once('data', resolve));
      socket.destroy();
    };
    for (let round = 0; round < HANG_UP_ROUNDS; round += 1) {
      await Promise.all(Array.from({ length: 5 }, (_, index) => hangUp(round * 5 + index)));
    }
    await eventually(async () => {
      const [live] = await fixture.sql`select count(*)::int as count from tts_streams where state = 'speaking'`;
      expect(live).toEqual({ count: 0 });
      expect(await readdir(tempDir)).toEqual([]);
    });
    const after = await Promise.all(Array.from({ length: 5 }, () => speak({ text: 'Hello.' })));
    expect(after.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  }, 120_000);
});
