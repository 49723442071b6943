import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { TandemError } from '../../machines/errors.ts';
import { topUp } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { revokeApiKey } from '../../storage/queries/api-keys.ts';
import { untilTruthy } from '../eventually.ts';
import { USD } from '../storage/seed.ts';
import { FakeTtsDesk } from './fake-tts-desk.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

let fixture: HttpFixture;
let member: Member;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  fixture = await createHttpFixture({ heartbeatMs: 20 });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, {
    ...{ workspaceId, amountNano: 5n * USD, paymentType: 'admin_bonus', operationKey: `fund:${workspaceId}` },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  Object.assign(fixture.speech, new FakeTtsDesk());
  // Limits count slots per user.
  member = await fixture.addMemberWith('member');
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.terminate();
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of any shape
type Message = any;

function connect(query: Record<string, string> = {}, { key = member.key, app = fixture.app, autoPong = true } = {}) {
  const { port } = app.server.address() as AddressInfo;
  const url = `ws://127.0.0.1:${port}/ws/tts?${new URLSearchParams(query)}`;
  const socket = new WebSocket(url, ['token', key], { autoPong });
  sockets.push(socket);
  const messages: Message[] = [];
  const audio: Buffer[] = [];
  socket.on('message', (data, isBinary) => {
    if (isBinary) audio.push(data as Buffer);
    else messages.push(JSON.parse(data.toString()));
  });
  const closed = new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)));
  return {
    ...{ socket, messages, closed },
    audio: () => Buffer.concat(audio),
    send: (...sent: (object | string)[]) => {
      for (const each of sent) socket.send(typeof each === 'string' ? each : JSON.stringify(each));
    },
    async until(type: string, count = 1): Promise<Message> {
      const matching = () => messages.filter((message) => message.type === type);
      await untilTruthy(() => matching().length >= count);
      return matching()[count - 1];
    },
  };
}

async function connected(...asked: Parameters<typeof connect>) {
  const client = connect(...asked);
  await client.until('Metadata');
  return client;
}

const speak = (text: string) => ({ type: 'Speak', text });
const FLUSH = { type: 'Flush' };
const said = () => fixture.speech.asked.map(({ text }) => text);
const PCM = [1, 0, 2, 0, 3, 0];

describe('client of /ws/tts', () => {
  it('receives each sentence when complete, with word times and charge', async () => {
    const client = await connected({ voice_id: 'hi', encoding: 'mulaw', sample_rate: '8000', speed: '2' });
    expect(client.messages[0]).toEqual({
      ...{ type: 'Metadata', voice_id: 'hi', audio_encoding: 'MULAW', sample_rate_hertz: 8000, credit_balance: 5 },
    });
    client.send(speak('Hel'), speak('lo there. How'));
    await client.until('Words', 2);
    expect(said()).toEqual(['Hello there.']);
    expect(fixture.speech.asked[0]).toMatchObject({
      ...{ userId: member.userId, apiKeyId: member.keyId, voiceId: 'hi' },
      ...{ format: { encoding: 'MULAW', sampleRateHz: 8000 }, style: { speed: 2 } },
    });
    expect(client.messages[1]).toEqual({ type: 'Charged', characters: 11, cost_usd: 0.000165, voice_id: 'c0ffee' });
    client.send(speak(' are you?'), FLUSH);
    expect(await client.until('Flushed')).toEqual({ type: 'Flushed', sequence_id: 0 });
    expect(said()).toEqual(['Hello there.', 'How are you?']);
    // Sentences are 125 ms apart at double speed; 0xff is silence in mu-law.
    expect([...client.audio()]).toEqual([...PCM, ...new Array(1000).fill(0xff), ...PCM]);
    const words = client.messages.filter(({ type }) => type === 'Words').flatMap((message) => message.words);
    expect(words).toEqual([
      { word: 'Hello', start: 0, end: 0.25 },
      { word: 'there.', start: 0.255, end: 0.37 },
      { word: 'Hello', start: 0.5, end: 0.75 },
      { word: 'there.', start: 0.755, end: 0.87 },
    ]);
  });

  it('receives all audio before the connection closes with 1000', async () => {
    const client = await connected();
    client.send(speak('One. Two'), { type: 'Close' });
    expect(await client.closed).toBe(1000);
    expect(said()).toEqual(['One.', 'Two']);
    expect(client.audio().length).toBe(2 * PCM.length + 2 * 0.25 * 24_000);
  });

  it('clears queued text', async () => {
    const client = await connected();
    const { speech } = fixture;
    const started = Promise.withResolvers<void>();
    speech.speak = async (request, signal) => {
      speech.asked.push(request);
      speech.speak = FakeTtsDesk.prototype.speak;
      started.resolve();
      return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    client.send(speak('One. Two. Three'));
    await started.promise;
    client.send({ type: 'Clear' });
    expect(await client.until('Cleared')).toEqual({ type: 'Cleared', sequence_id: 0 });
    expect(client.audio().length).toBe(0);
    client.send(speak('Four.'), FLUSH);
    expect(await client.until('Flushed')).toEqual({ type: 'Flushed', sequence_id: 1 });
    expect(said().at(-1)).toBe('Four.');
    expect(said()).not.toContain('Three');
  });

  it('pays nothing for text without a letter or digit', async () => {
    const client = await connected();
    client.send(speak(' . '), FLUSH, FLUSH);
    await client.until('Flushed', 2);
    expect(said()).toEqual([]);
  });

  it('gets an error for each invalid message, and can continue', async () => {
    const client = await connected();
    client.send('no JSON', { type: 'speak' }, { type: 'Speak' }, 'null', speak('a'.repeat(5001)));
    await client.until('error', 5);
    expect(client.messages.slice(1).map(({ code }) => code)).toEqual([
      ...['MALFORMED_JSON', 'unknown_message_type', 'VALIDATION_FAILED', 'unknown_message_type', 'VALIDATION_FAILED'],
    ]);
    client.send(speak('Still here.'), FLUSH);
    await client.until('Flushed');
    expect(said()).toEqual(['Still here.']);
  });

  it('can queue 5000 characters', async () => {
    const client = await connected();
    client.send(speak('a'.repeat(4000)), speak('b'.repeat(1001)));
    expect(await client.until('error')).toMatchObject({
      code: 'VALIDATION_FAILED',
      message: expect.stringContaining('Flush'),
    });
    client.send(FLUSH);
    await client.until('Flushed');
    expect(said()).toEqual(['a'.repeat(4000)]);
  });

  it('loses its connection when it sends SSML, even in pieces', async () => {
    const client = await connected();
    client.send(speak('<spe'), speak('ak>Hello.</speak>'));
    expect(await client.until('error')).toMatchObject({ code: 'INVALID_SSML' });
    expect(await client.closed).toBe(1008);
    expect(said()).toEqual([]);
  });

  it('needs no money for free speech', async () => {
    const { key, workspaceId } = await fixture.addWorkspace();
    await setPrice(fixture.sql, { scope: { workspaceId }, item: 'tts', value: 0n, now: fixture.now.current });
    expect(await (await connected({}, { key })).until('Metadata')).toMatchObject({ credit_balance: 0 });
  });

  it('loses its connection with the reason when a text is refused', async () => {
    const client = await connected();
    fixture.speech.refusal = new TandemError('INSUFFICIENT_CREDITS', 'The wallet does not cover this.');
    client.send(speak('Hello.'), FLUSH);
    expect(await client.until('error')).toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(await client.closed).toBe(1008);
  });

  it('loses its connection with 1011 when the engine fails, without internal details', async () => {
    const client = await connected();
    fixture.speech.failure = new Error('secret of the house');
    client.send(speak('Hello.'), FLUSH);
    const error = await client.until('error');
    expect(error.code).toBe('INTERNAL');
    expect(JSON.stringify(error)).not.toContain('secret');
    expect(await client.closed).toBe(1011);
  });

  it('loses its connection when its key is revoked, and pays for the received audio', async () => {
    const client = await connected();
    const { speech } = fixture;
    speech.speak = async (request, signal) => {
      speech.signal = signal;
      const spoken = await FakeTtsDesk.prototype.speak.call(speech, request, signal);
      const stop = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      async function* parts() {
        yield* speech.parts;
        await stop;
      }
      return { ...spoken, parts: parts() };
    };
    client.send(speak('Hello.'), FLUSH);
    await client.until('Words', 2);
    await revokeApiKey(fixture.sql, { id: member.keyId, workspaceId: member.workspaceId, now: new Date() });
    expect(await client.until('error')).toMatchObject({ code: 'AUTH_FAILED' });
    expect(await client.closed).toBe(1008);
    expect(speech.signal?.reason).toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('ends synthesis and frees its slot by disconnecting', async () => {
    const { speech } = fixture;
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const signals: AbortSignal[] = [];
      speech.speak = async (_, signal) => {
        signals.push(signal);
        return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      };
      const client = await connected();
      client.send(speak('Hello.'), FLUSH);
      await untilTruthy(() => signals.length === 1);
      client.socket.terminate();
      await untilTruthy(() => signals[0]!.aborted);
    }
  });
});

describe('connection to /ws/tts', () => {
  it.each<[Record<string, string>, string, RegExp]>([
    [{ encoding: 'mp3' }, 'VALIDATION_FAILED', /encoding must be linear16, mulaw or alaw/],
    [{ encoding: 'constructor' }, 'VALIDATION_FAILED', /encoding must be linear16, mulaw or alaw/],
    [{ sample_rate: '12345' }, 'VALIDATION_FAILED', /sample_rate must be one of 8000/],
    [{ speed: 'fast' }, 'VALIDATION_FAILED', /speed must be a number from 0.5 to 2/],
    [{ voice_id: '' }, 'VALIDATION_FAILED', /voice_id must have 1 to 64 characters/],
    [{ voice_id: 'nobody' }, 'VOICE_NOT_FOUND', /./],
  ])('with %j fails with %s', async (query, code, message) => {
    const client = connect(query);
    expect(await client.until('error')).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await client.closed).toBe(1008);
  });

  it('fails with wrong credentials, as a viewer, or beyond five at a time', async () => {
    const refusalOf = async (key: string) => {
      const client = connect({}, { key });
      const { code } = await client.until('error');
      expect(await client.closed).toBe(1008);
      return code;
    };
    expect(await refusalOf('sk_wrong')).toBe('AUTH_FAILED');
    expect(await refusalOf((await fixture.addMemberWith('viewer')).key)).toBe('FORBIDDEN');
    for (let count = 0; count < 5; count += 1) await connected();
    expect(await refusalOf(member.key)).toBe('TTS_CONCURRENCY_LIMIT');
  });

  it('closes with 1000 after too long without a message', async () => {
    await using own = await createHttpFixture({ ttsTimes: { idleMs: 50 } });
    await own.app.listen({ host: '127.0.0.1', port: 0 });
    const { workspaceId, key } = own.owner;
    await topUp(own.sql, { workspaceId, amountNano: USD, paymentType: 'admin_bonus', operationKey: 'fund' });
    const client = await connected({}, { key, app: own.app });
    expect(await client.closed).toBe(1000);
  });

  it('stays open while the client plays audio before it reads on, and ends when the client is gone', async () => {
    await using own = await createHttpFixture({ ttsTimes: { pingEveryMs: 100, pongWithinMs: 2_000 } });
    await own.app.listen({ host: '127.0.0.1', port: 0 });
    const { workspaceId, key } = own.owner;
    await topUp(own.sql, { workspaceId, amountNano: USD, paymentType: 'admin_bonus', operationKey: 'fund' });
    const playing = await connected({}, { key, app: own.app });
    playing.send(speak('Hello.'), FLUSH);
    await playing.until('Flushed');
    playing.socket.pause();
    const gone = await connected({}, { key, app: own.app, autoPong: false });
    expect(await gone.closed).toBe(1006);
    playing.socket.resume();
    playing.send(FLUSH);
    await playing.until('Flushed', 2);
  });

  it('receives its last audio during a shutdown, and closes with 1012', async () => {
    const own = await createHttpFixture();
    await own.app.listen({ host: '127.0.0.1', port: 0 });
    const { workspaceId, key } = own.owner;
    await topUp(own.sql, { workspaceId, amountNano: USD, paymentType: 'admin_bonus', operationKey: 'fund' });
    const client = await connected({}, { key, app: own.app });
    client.send(speak('Last words'));
    client.send({ type: 'KeepAlive' }, { type: 'unknown' });
    await client.until('error');
    const closing = own[Symbol.asyncDispose]();
    expect(await client.closed).toBe(1012);
    await closing;
    expect([...client.audio()]).toEqual(PCM);
  });
});
