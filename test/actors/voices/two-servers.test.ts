import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startEraser } from '../../../actors/privacy/eraser.actor.ts';
import { createVoiceFixture, SPEECH, secondsOf, type VoiceFixture } from './voice-desk-fixture.ts';

/** Servers share a database, and each has its own disk. */

let fixture: VoiceFixture;
beforeAll(async () => {
  fixture = await createVoiceFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

it('samples of a voice deleted on one server are removed by the server that stores them', async () => {
  const by = await fixture.caller();
  const here = fixture.open();
  const there = fixture.open({ objects: await fixture.otherObjects(), node: 'node-2' });
  const voice = await here.create(await fixture.request(by, [SPEECH]));
  await there.remove({ voiceId: voice.id, by });
  await there.close();
  const again = fixture.open({ objects: await fixture.otherObjects(), node: 'node-2' });
  await again.start();
  expect(await fixture.filesOf(voice.id)).toHaveLength(1);
  await fixture.open().start();
  expect(await fixture.filesOf(voice.id)).toEqual([]);
});

it('samples in a shared store are removed by any server, as the one of the voice may be gone', async () => {
  const by = await fixture.caller();
  const objects = { ...fixture.objects, isShared: true };
  const { sql } = fixture.database;
  const samples = async () => (await sql`select 1 from voice_samples`).length;
  const here = fixture.open({ objects: { ...objects, delete: () => Promise.reject(new Error('busy')) } });
  const there = fixture.open({ objects, node: 'node-2' });
  const [first, second] = [
    await here.create(await fixture.request(by, [SPEECH])),
    await here.create(await fixture.request(by, [SPEECH])),
  ];
  await here.remove({ voiceId: first.id, by });
  await here.close();
  await there.remove({ voiceId: second.id, by });
  expect([await fixture.filesOf(second.id), await samples()]).toEqual([[], 1]);
  await fixture.open({ objects, node: 'node-2' }).start();
  expect([await fixture.filesOf(first.id), await samples()]).toEqual([[], 0]);
});

it('samples that wait for their upload are removed by their server after another one deleted the voice', async () => {
  const by = await fixture.caller();
  const waiting = { ...fixture.objects, isShared: true };
  const here = fixture.open({ objects: waiting });
  const there = fixture.open({ objects: { ...(await fixture.otherObjects()), isShared: true }, node: 'node-2' });
  const voice = await here.create(await fixture.request(by, [SPEECH]));
  await there.remove({ voiceId: voice.id, by });
  expect(await fixture.filesOf(voice.id)).toHaveLength(1);
  const { sql } = fixture.database;
  const parts = { clock: fixture.clock, logger: fixture.logger, recordingsDir: tmpdir() };
  using eraser = startEraser({ sql, objects: waiting, node: 'node-1', ...parts });
  await eraser.work();
  expect(await fixture.filesOf(voice.id)).toEqual([]);
});

it('a voice is created on the server with its first samples, and other servers reject more', async () => {
  const by = await fixture.caller();
  const here = fixture.open();
  const there = fixture.open({ objects: await fixture.otherObjects(), node: 'node-2' });
  const voice = await there.create(await fixture.request(by, null));
  const { samples } = await fixture.request(by, [secondsOf(61, 1)]);
  await here.addSamples({ voiceId: voice.id, samples: samples!, isLast: false, by });
  const more = await fixture.request(by, [SPEECH]);
  const late = there.addSamples({ voiceId: voice.id, samples: more.samples!, isLast: false, by });
  await expect(late).rejects.toMatchObject({ code: 'VOICE_NOT_READY', retryAfterS: 1 });
  await here.addSamples({ voiceId: voice.id, samples: { ...samples!, files: [] }, isLast: true, by });
  await fixture.becomes(here, voice, by, 'ready');
});
