import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { switchedVoices } from '../../actors/tts/switched-voices.ts';
import { createVoiceDesk } from '../../actors/voices/voice-desk.actor.ts';
import type { VoiceDesk } from '../../actors/voices/voice-desk.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createSpeechSynthesis } from '../../speech/speech-synthesis.thread.ts';
import type { SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import { readScript } from '../../speech/text/read-script.ts';
import { createVoiceCatalogue } from '../../speech/voices/built-in-voices.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import { createFakeDeliverer, createTestLogger } from '../actors/fakes.ts';
import { FakeRecognition } from '../actors/stt-fakes.ts';
import { eventually } from '../eventually.ts';
import { wavFile } from '../media/audio-file/wav-files.ts';
import { spokenUtterances } from '../speech/spoken.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { type FormPart, field, formOf } from './multipart-body.ts';

/** The real desk and synthesis thread: clones a voice from human speech. */

let fixture: HttpFixture;
let folder: string;
let synthesis: SpeechSynthesis;
let desk: VoiceDesk;
const logger = createTestLogger();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-voices-'));
  const cache = { folder: join(folder, 'cache'), mostBytes: 0 };
  const settings = { processes: 1, modelsDir: join(folder, 'models'), upstream: null, cache };
  synthesis = await createSpeechSynthesis({ settings, logger });
  // Breaks a cycle between the desk and the fixture.
  const voices = new Proxy({} as VoiceDesk, { get: (_, name) => Reflect.get(desk, name) });
  fixture = await createHttpFixture({ voices });
  const listening = { listenToFile: () => Promise.reject(new Error('nothing clones here')) };
  desk = createVoiceDesk({
    sql: fixture.sql,
    objects: fixture.objects,
    synthesis,
    catalogue: createVoiceCatalogue(synthesis.voices(), { preferred: 'auto' }),
    recognition: new FakeRecognition(),
    listening,
    deliverer: createFakeDeliverer(),
    node: 'node-1',
    tempDir: join(folder, 'tmp'),
    clock: systemClock,
    logger,
  });
}, 60_000);
afterAll(async () => {
  await desk.close();
  await fixture[Symbol.asyncDispose]();
  await synthesis.close();
  await rm(folder, { recursive: true, force: true });
});

it('a voice from human speech can be played, used for synthesis and deleted', async () => {
  const sentences = spokenUtterances().slice(0, 3);
  const files = sentences.map<FormPart>(({ name, samples }) => {
    return { name: 'files[]', value: wavFile(samples), filename: `${name}.wav`, type: 'audio/wav' };
  });
  const form = formOf([field('name', 'Reader'), field('language', 'en'), field('consent', 'true'), ...files]);
  const made = await fixture.call('POST', '/voices', form);
  expect([made.status, made.body]).toMatchObject([201, { success: true, data: { status: 'processing' } }]);
  const { voice_id: id } = made.body.data;

  const get = async () => (await fixture.call('GET', `/voices/${id}`)).body.data;
  await eventually(async () => expect(await get()).toMatchObject({ status: 'ready', error: null }));
  const voice = await get();
  expect(voice).toMatchObject({ id, name: 'Reader', is_custom: true, approximate: true, language: 'en' });

  const { workspaceId } = fixture.owner;
  const { recipe } = await desk.resolve({ workspaceId, voiceId: id });
  const script = readScript('Your call is being connected.', { language: recipe.language });
  const format = { encoding: 'LINEAR16', sampleRateHz: 16_000 } as const;
  const spoken: Buffer[] = [];
  let durationMs = 0;
  const request = { script, recipe, style: USUAL_STYLE, format };
  for await (const part of synthesis.speak(request, new AbortController().signal)) {
    spoken.push(Buffer.from(part.audio));
    durationMs = part.durationMs;
  }
  expect(durationMs).toBeGreaterThan(500);
  expect(Math.round(Buffer.concat(spoken).length / 32)).toBeCloseTo(durationMs, -1);

  // Only the owning workspace may name it in SSML.
  const text = `<speak>One <voice name="${id}">two</voice></speak>`;
  const { workspaceId: stranger } = await fixture.addWorkspace();
  const usual = await desk.resolve({ workspaceId, voiceId: null });
  const switched = (from: string) => switchedVoices(text, { workspaceId: from, voice: usual, voices: desk });
  expect((await switched(workspaceId)).recipes).toEqual([recipe]);
  await expect(switched(stranger)).rejects.toMatchObject({ code: 'VOICE_NOT_FOUND', status: 404 });
  await expect(switched(stranger)).rejects.toThrow('SSML at line 1, column 12');

  const sampleUrl = await eventually(async () => {
    const { sample_url: url } = await get();
    expect(url, JSON.stringify(logger.lines.map(({ message }) => message))).not.toBeNull();
    return url as string;
  });
  const sample = await fixture.call('GET', sampleUrl.replace('http://voice.test', ''), { as: null });
  expect([sample.status, sample.headers['content-type']]).toEqual([200, 'audio/mpeg']);
  expect(sample.raw.length).toBeGreaterThan(4_000);

  expect((await fixture.call('DELETE', `/voices/${id}`)).body).toEqual({ success: true, data: { id, deleted: true } });
  expect((await fixture.call('GET', `/voices/${id}`)).status).toBe(404);
  expect((await fixture.call('GET', sampleUrl.replace('http://voice.test', ''), { as: null })).status).toBe(404);
  expect(await readdir(join(folder, 'tmp', 'voices'))).toEqual([]);
}, 180_000);
