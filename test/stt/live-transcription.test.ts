import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pace } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { walletOf } from '../../storage/ledger.ts';
import { eventually, untilTruthy } from '../eventually.ts';
import { connectStt, type SttClient, startStt } from '../http/stt-client.ts';
import { asMulaw8k, spokenUtterances } from '../speech/spoken.ts';
import { USD } from '../storage/seed.ts';
import { type LiveServer, type Speech, startLiveServer, startSpeech } from './live-server.ts';

/** Debian's interpreter; others may lack the package. */
const PYTHON = '/usr/bin/python3';
const isPythonThere = runs(PYTHON, ['-c', 'import websockets']);

const SLOTS = 64;
const CHUNK_BYTES = 480;
const CHUNK_MS = 60;

/** The reliable part of "go forward ten meters"; `bench/stt-accuracy.ts` measures accuracy. */
const UNDERSTOOD = /^go forward \w+/;

let speech: Speech & AsyncDisposable;
let server: LiveServer;
beforeAll(async () => {
  const limits = { concurrency: { stt: SLOTS }, plans: { enterprise: { perMinute: 1e6, perDay: 1e6 } } };
  speech = await startSpeech();
  server = await startLiveServer(speech, { rateLimits: limits });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await speech[Symbol.asyncDispose]();
});

describe('telephone caller', () => {
  it('receives transcripts during speech, billed by duration', async () => {
    const { apiKey, balanceNano } = await caller();
    const client = connectStt(server.origin, { apiKey });
    await startStt(client, { languages: ['en'], config: { interim_results_frequency: 300 } });
    await play(client, goForward());
    const final = await untilTruthy(() => finalOf(client));
    expect(final).toMatchObject({
      text: expect.stringMatching(UNDERSTOOD),
      is_final: true,
      speech_final: true,
      processing_mode: 'speech_end',
      language: 'en',
      snr_db: expect.any(Number),
    });
    expect(final.words.map(({ word }: { word: string }) => word).join(' ')).toBe(final.text);
    client.send({ type: 'stop' });
    expect(await client.closed).toBe(1000);
    const types = client.types();
    expect(types.indexOf('speech_started')).toBeLessThan(types.indexOf('transcription'));
    expect(types.slice(-3)).toEqual(['billing_summary', 'session_stopped', 'connection_closed']);
    const summary = client.messages.at(-3);
    expect(summary.total_duration_seconds).toBeCloseTo(final.end - final.start, 2);
    expect(await balanceNano()).toBe(5n * USD - BigInt(Math.round(summary.amount * 1e9)));
  });

  it('receives the final of an open utterance on finalize, and continues the session', async () => {
    const { key } = server.fixture.owner;
    const client = connectStt(server.origin, {}, { protocols: ['token', key] });
    await startStt(client, { languages: ['en'], config: { utterance_end_ms: 30_000 } });
    const finals = () => client.messages.filter(({ speech_final }) => speech_final);
    const speech = goForward();
    for (let spoken = 1; spoken <= 2; spoken += 1) {
      await play(client, speech);
      client.send({ type: 'KeepAlive' });
      expect(finals()).toHaveLength(spoken - 1);
      client.send({ type: 'Finalize' });
      await untilTruthy(() => finals().length === spoken);
      expect(finals().at(-1)).toMatchObject({ text: expect.stringMatching(UNDERSTOOD), processing_mode: 'speech_end' });
    }
    client.send({ type: 'stop' });
    expect(await client.closed).toBe(1000);
    expect(finals()).toHaveLength(2);
    expect(client.types()).not.toContain('error');
  });

  it.skipIf(!isPythonThere)('works with a Python client (python3-websockets)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-python-'));
    try {
      const path = join(folder, 'speech.ulaw');
      await writeFile(path, goForward());
      const url = `${server.origin.replace('http', 'ws')}/ws/stt?apiKey=${server.fixture.owner.key}`;
      const script = join(import.meta.dirname, 'live_client.py');
      const { stdout } = await promisify(execFile)(PYTHON, [script, url, path], { timeout: 60_000 });
      const messages = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const finals = messages.filter(({ speech_final }) => speech_final);
      expect(finals.map(({ text }) => text)).toEqual([expect.stringMatching(UNDERSTOOD)]);
      expect(messages.slice(-4).map(({ type }) => type)).toEqual([
        'billing_summary',
        'session_stopped',
        'connection_closed',
        'closed',
      ]);
      expect(messages.at(-1)).toEqual({ type: 'closed', code: 1000 });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

it('a thousand vanishing clients leave no session, listener or slot behind', async () => {
  const { apiKey } = await caller();
  // From the middle of a word.
  const audio = goForward().subarray(8_000, 12_000);
  const vanish = async (number: number): Promise<void> => {
    const client = connectStt(server.origin, { apiKey });
    // Vanishes during the handshake, authentication, before or after the start, or during speech.
    if (number % 5 > 0) await client.until('connecting');
    if (number % 5 > 1) await client.until('connected', 2);
    if (number % 5 > 2) client.send({ type: 'start', languages: ['en'] });
    if (number % 5 > 3) {
      // Without free recognizers, the session is rejected.
      await Promise.race([client.until('session_started'), client.closed]);
      client.socket.send(audio);
    }
    client.socket.terminate();
    await client.closed;
  };
  for (let number = 0; number < 1_000; number += 25) {
    await Promise.all(Array.from({ length: 25 }, (_, index) => vanish(number + index)));
  }
  await untilTruthy(() => server.stt.count() === 0);
  await untilTruthy(() => speech.listening.capacity().sessions === 0);
  await untilTruthy(async () => (await speech.recognition.engines()).every(({ busy }) => busy === 0));
  await eventually(() => takeAllSlots(apiKey));
  await untilTruthy(() => server.stt.count() === 0);
}, 120_000);

/** Fails unless all slots are free at once. */
async function takeAllSlots(apiKey: string): Promise<void> {
  const clients = Array.from({ length: SLOTS }, () => connectStt(server.origin, { apiKey }));
  await Promise.all(clients.map(({ until, closed }) => Promise.race([until('connection_established'), closed])));
  const errors = clients.flatMap(({ messages }) => messages.filter(({ type }) => type === 'error'));
  for (const { socket } of clients) socket.terminate();
  expect(errors).toEqual([]);
}

/** "go forward ten meters" as telephone audio, followed by silence. */
function goForward(): Uint8Array<ArrayBuffer> {
  const spoken = spokenUtterances().find(({ text }) => text === 'go forward ten meters')!;
  const padded = new Int16Array(spoken.samples.length + 2 * 16_000);
  padded.set(spoken.samples, 8_000);
  return asMulaw8k(padded);
}

async function play({ socket }: SttClient, audio: Uint8Array): Promise<void> {
  const startedMs = performance.now();
  for (let offset = 0, sent = 1; offset < audio.length; offset += CHUNK_BYTES, sent += 1) {
    socket.send(audio.subarray(offset, offset + CHUNK_BYTES));
    await pace(Math.max(0, startedMs + sent * CHUNK_MS - performance.now()));
  }
}

function finalOf({ messages }: SttClient) {
  return messages.find(({ speech_final }) => speech_final === true);
}

async function caller() {
  const { key: apiKey, workspaceId } = server.fixture.owner;
  const balanceNano = async () => (await walletOf(server.fixture.sql, workspaceId)).balanceNano;
  return { apiKey, balanceNano };
}

function runs(program: string, args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
