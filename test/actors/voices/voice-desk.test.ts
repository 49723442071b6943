import { readFile, stat } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AvailableVoice } from '../../../speech/speech-synthesis.ts';
import { eventually } from '../../eventually.ts';
import { asMulaw8k, spokenUtterances } from '../../speech/spoken.ts';
import {
  CLONER,
  createVoiceFixture,
  FakeSynthesis,
  PLAIN,
  SILENCE,
  SPEECH,
  secondsOf,
  type VoiceFixture,
} from './voice-desk-fixture.ts';

let fixture: VoiceFixture;
beforeAll(async () => {
  fixture = await createVoiceFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(fixture.synthesis, new FakeSynthesis());
  fixture.logger.lines.length = 0;
});

const created = { event: 'voice.created', data: { voice_id: expect.any(String), name: 'Asha', language: 'en' } };

describe('catalogue voices', () => {
  it('resolve by id, by name in any case, and by default', async () => {
    const desk = fixture.open();
    const { workspaceId } = await fixture.caller();
    const usual = await desk.resolve({ workspaceId, voiceId: null });
    expect(usual.recipe).toMatchObject({ engine: 'espeak-ng', engineVoice: 'en-us' });
    expect(await desk.resolve({ workspaceId, voiceId: usual.id })).toEqual(usual);
    expect(await desk.resolve({ workspaceId, voiceId: 'EN-us' })).toEqual(usual);
    const refusal = { code: 'VOICE_NOT_FOUND' };
    await expect(desk.resolve({ workspaceId, voiceId: 'en-us+none' })).rejects.toMatchObject(refusal);
    expect(await desk.get({ workspaceId, voiceId: 'en-us' })).toMatchObject({ id: usual.id, isCustom: false });
  });

  it('get a gender even if their engine does not specify one', async () => {
    const unstated: AvailableVoice = { ...PLAIN, engine: 'sherpa-onnx', name: 'vits-te', language: 'te', gender: null };
    fixture.synthesis.available = [PLAIN, unstated];
    const { workspaceId } = await fixture.caller();
    const desk = fixture.open();
    const tiers = await Promise.all((['quality', 'fast'] as const).map((tier) => desk.list({ workspaceId, tier })));
    const genders = new Map(tiers.flat().map(({ name, gender }) => [name, gender]));
    expect(genders.size).toBeGreaterThan(1);
    expect([...new Set(genders.values())].toSorted()).toEqual(['female', 'male']);
  });

  it('cannot be changed, extended with samples or deleted', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const { samples } = await fixture.request(by, [SPEECH]);
    const attempts = [
      desk.update({ voiceId: 'en-us', patch: { name: 'Mine' }, by }),
      desk.remove({ voiceId: 'en-us', by }),
      desk.addSamples({ voiceId: 'en-us', samples: samples!, isLast: true, by }),
    ];
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ code: 'VOICE_NOT_EDITABLE' });
  });
});

describe('cloned voice', () => {
  it('becomes ready after processing, works in synthesis, and disappears with all files when deleted', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    const gender = expect.stringMatching(/^(female|male)$/);
    expect(voice).toMatchObject({ status: 'processing', tier: 'fast', isCustom: true, approximate: null, gender });
    const ready = await fixture.becomes(desk, voice, by, 'ready');
    expect(ready).toMatchObject({ approximate: true, error: null, gender });
    const { workspaceId } = by;
    const spoken = await desk.resolve({ workspaceId, voiceId: voice.id });
    expect(spoken).toMatchObject({ id: voice.id, recipe: { engine: 'espeak-ng' } });
    expect((await desk.list({ workspaceId, tier: 'fast' }))[0]).toEqual(ready);
    expect(await fixture.webhookEvents(by)).toEqual([created, { ...created, event: 'voice.ready' }]);

    const [key] = await fixture.filesOf(voice.id);
    expect(key).toMatch(new RegExp(`^voices/${workspaceId}/${voice.id}/[0-9a-f-]+\\.wav$`));
    await desk.remove({ voiceId: voice.id, by });
    expect(await fixture.filesOf(voice.id)).toEqual([]);
    const gone = { code: 'VOICE_NOT_FOUND' };
    await expect(desk.remove({ voiceId: voice.id, by })).rejects.toMatchObject(gone);
    await expect(desk.resolve({ workspaceId, voiceId: voice.id })).rejects.toMatchObject(gone);
    await expect(desk.get({ workspaceId, voiceId: voice.id })).rejects.toMatchObject(gone);
  });

  it('records consent with user, time and address, and audits each change', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const { id } = await desk.create(await fixture.request(by, [SPEECH]));
    await desk.update({ voiceId: id, patch: { name: 'Meera' }, by });
    await desk.remove({ voiceId: id, by });
    const { sql } = fixture.database;
    expect([...(await sql`select * from voice_consents where voice_id = ${id}`)]).toMatchObject([
      { userId: by.userId, apiKeyId: null, address: '192.0.2.7', requestId: 'request-1', samples: 1 },
    ]);
    const noted = await sql`select action, actor_user_id, details from audit_log where target_id = ${id} order by id`;
    expect([...noted]).toEqual([
      { action: 'voice.created', actorUserId: by.userId, details: { samples: 1, consent: true } },
      { action: 'voice.updated', actorUserId: by.userId, details: { fields: ['name'] } },
      { action: 'voice.deleted', actorUserId: by.userId, details: {} },
    ]);
  });

  it('belongs to its workspace alone', async () => {
    const desk = fixture.open();
    const voice = await desk.create(await fixture.request(await fixture.caller(), [SPEECH]));
    const by = await fixture.caller();
    const key = { workspaceId: by.workspaceId, voiceId: voice.id };
    const { samples } = await fixture.request(by, [SPEECH]);
    const attempts = [
      () => desk.resolve(key),
      () => desk.get(key),
      () => desk.sample(key),
      () => desk.update({ voiceId: voice.id, patch: { name: 'Mine' }, by }),
      () => desk.remove({ voiceId: voice.id, by }),
      () => desk.addSamples({ voiceId: voice.id, samples: samples!, isLast: false, by }),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 'VOICE_NOT_FOUND' });
    const listed = await desk.list({ workspaceId: by.workspaceId, tier: 'fast', unready: true });
    expect(listed.some(({ isCustom }) => isCustom)).toBe(false);
  });

  it('fails with a reason when its samples contain no speech', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SILENCE]));
    const failed = await fixture.becomes(desk, voice, by, 'failed');
    expect(failed.error).toMatch(/\w+/);
    const failure = { voice_id: voice.id, error: 'VOICE_SAMPLE_UNUSABLE' };
    expect(await fixture.webhookEvents(by)).toEqual([created, { event: 'voice.failed', data: failure }]);
    const asked = desk.resolve({ workspaceId: by.workspaceId, voiceId: voice.id });
    await expect(asked).rejects.toMatchObject({ code: 'VOICE_NOT_READY', details: { status: 'failed' } });
  });

  it('rejects unreadable, too short and too long samples without leaving files', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const before = await fixture.stored();
    const attempts: [Buffer[], string][] = [
      [[SPEECH, Buffer.from('this is a letter, not a sound')], 'AUDIO_NOT_READABLE'],
      [[SPEECH, Buffer.alloc(0)], 'AUDIO_EMPTY'],
      [[SPEECH.subarray(0, 44 + 32_000 * 4)], 'VOICE_SAMPLE_UNUSABLE'],
      [Array.from({ length: 61 }, (_, index) => secondsOf(10, index)), 'AUDIO_TOO_LONG'],
    ];
    for (const [files, code] of attempts) {
      await expect(desk.create(await fixture.request(by, files)), code).rejects.toMatchObject({ code });
    }
    expect(await fixture.stored()).toEqual(before);
    expect(await fixture.webhookEvents(by)).toEqual([]);
    expect(await desk.list({ workspaceId: by.workspaceId, tier: 'fast', unready: true })).toSatisfy(
      (voices: { isCustom: boolean }[]) => voices.length > 0 && voices.every(({ isCustom }) => !isCustom),
    );
  });

  it('leaves no files after a partial failure or a disconnecting client', async () => {
    const by = await fixture.caller();
    const before = await fixture.stored();
    const files = [SPEECH, secondsOf(5, 1)];
    const left = new AbortController();
    let afterwards = () => {};
    const putFile: typeof fixture.objects.putFile = async (file) => {
      const stored = await fixture.objects.putFile(file);
      afterwards();
      return stored;
    };
    const desk = fixture.open({ objects: { ...fixture.objects, putFile } });
    afterwards = () => {
      throw new Error('no space is left');
    };
    await expect(desk.create(await fixture.request(by, files))).rejects.toThrow('no space is left');
    expect(await fixture.stored()).toEqual(before);
    afterwards = () => left.abort(new Error('left'));
    const request = await fixture.request(by, files);
    const samples = { ...request.samples!, signal: left.signal };
    await expect(desk.create({ ...request, samples })).rejects.toThrow('left');
    expect(await fixture.stored()).toEqual(before);
  });

  it('names the limit of the total duration, for one long sample as for many', async () => {
    const desk = fixture.open();
    const request = await fixture.request(await fixture.caller(), [Buffer.alloc(601 * 8_000, 0x55)]);
    const files = request.samples!.files.map((file) => ({ ...file, name: 'call.ulaw' }));
    const refusal = { code: 'AUDIO_TOO_LONG', message: expect.stringContaining('10 minutes in all') };
    await expect(desk.create({ ...request, samples: { ...request.samples!, files } })).rejects.toMatchObject(refusal);
  });

  it('names the file that cannot be read', async () => {
    const desk = fixture.open();
    const request = await fixture.request(await fixture.caller(), [SPEECH, Buffer.from('no sound')]);
    await expect(desk.create(request)).rejects.toMatchObject({ message: expect.stringMatching(/^File 2: /) });
  });

  it('accepts telephone audio, and stores identical samples once', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const narrow = Buffer.from(asMulaw8k(spokenUtterances()[0]!.samples));
    const request = await fixture.request(by, [narrow, SPEECH, SPEECH]);
    const files = request.samples!.files.map((file, index) => (index === 0 ? { ...file, name: 'call.ulaw' } : file));
    const voice = await desk.create({ ...request, samples: { ...request.samples!, files } });
    expect(await fixture.filesOf(voice.id)).toHaveLength(2);
    await fixture.becomes(desk, voice, by, 'ready');
  });

  it('requires a language with voices', async () => {
    const desk = fixture.open();
    const request = await fixture.request(await fixture.caller(), [SPEECH]);
    const refused = desk.create({ ...request, language: 'xx' });
    await expect(refused).rejects.toMatchObject({ code: 'unsupported_language' });
  });

  it('uses zero-shot cloning when an engine supports it and the transcript is known', async () => {
    fixture.synthesis.available = [PLAIN, CLONER];
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    await eventually(() => expect(fixture.recognition.live).toHaveLength(1));
    fixture.recognition.stream.recognise(1, 'and mister john dashwood');
    fixture.recognition.stream.emit({ type: 'recognition.ended' });
    expect(await fixture.becomes(desk, voice, by, 'ready')).toMatchObject({ approximate: false });
    const { recipe } = await desk.resolve({ workspaceId: by.workspaceId, voiceId: voice.id });
    expect(recipe).toMatchObject({ engine: 'sherpa-onnx', reference: { text: 'and mister john dashwood' } });
    expect((await readFile(recipe.reference!.path)).length).toBe(SPEECH.length);

    // A running synthesis continues for a while and needs its reference.
    await desk.remove({ voiceId: voice.id, by });
    await stat(recipe.reference!.path);
    fixture.clock.advance(3_600_000);
    await eventually(() => expect(stat(recipe.reference!.path)).rejects.toMatchObject({ code: 'ENOENT' }));
  });

  it('clones from the start of long samples, up to the end of the known transcript', async () => {
    fixture.synthesis.available = [PLAIN, CLONER];
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [secondsOf(21, 9)]));
    await eventually(() => expect(fixture.recognition.live).toHaveLength(1));
    fixture.recognition.stream.recognise(1, 'and mister john dashwood');
    fixture.recognition.stream.emit({ type: 'recognition.ended' });
    await fixture.becomes(desk, voice, by, 'ready');
    const { recipe } = await desk.resolve({ workspaceId: by.workspaceId, voiceId: voice.id });
    expect((await stat(recipe.reference!.path)).size).toBe(44 + 20 * 32_000);
  });

  it('falls back to a fitted voice without a transcript', async () => {
    fixture.synthesis.available = [PLAIN, CLONER];
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    await eventually(() => expect(fixture.recognition.live).toHaveLength(1));
    fixture.recognition.stream.emit({ type: 'recognition.failed', code: 'x', message: 'x', retryAfterS: null });
    expect(await fixture.becomes(desk, voice, by, 'ready')).toMatchObject({ approximate: true });
  });
});

describe('voice after a failure', () => {
  it('continues once at the next start when its server was killed', async () => {
    const by = await fixture.caller();
    const dead = fixture.open({ objects: { ...fixture.objects, read: () => new Promise(() => {}) } });
    const voice = await dead.create(await fixture.request(by, [SPEECH]));
    const next = fixture.open();
    await next.start();
    await next.start();
    await fixture.becomes(next, voice, by, 'ready');
    expect(await fixture.webhookEvents(by)).toEqual([created, { ...created, event: 'voice.ready' }]);
  });

  it('waits while the store cannot be read', async () => {
    const by = await fixture.caller();
    let failures = 3;
    const read: typeof fixture.objects.read = async (options) => {
      if (failures-- > 0) throw new Error('the disk is away');
      return await fixture.objects.read(options);
    };
    const desk = fixture.open({ objects: { ...fixture.objects, read } });
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    await eventually(async () => {
      fixture.clock.advance(60_000);
      expect((await desk.get({ workspaceId: by.workspaceId, voiceId: voice.id })).status).toBe('ready');
    });
    expect(fixture.logger.messages('warn')).toEqual(
      Array.from({ length: 3 }, () => 'voice creation failed and will be retried'),
    );
  });

  it('fails as an internal error when its samples are lost', async () => {
    const by = await fixture.caller();
    const dead = fixture.open({ objects: { ...fixture.objects, read: () => new Promise(() => {}) } });
    const voice = await dead.create(await fixture.request(by, [SPEECH]));
    for (const key of await fixture.filesOf(voice.id)) await fixture.objects.delete(key);
    const next = fixture.open();
    await next.start();
    expect((await fixture.becomes(next, voice, by, 'failed')).error).toMatch(/internal error/);
  });

  it('loses its remaining files at the next start after it was deleted', async () => {
    const by = await fixture.caller();
    const desk = fixture.open({ objects: { ...fixture.objects, delete: () => Promise.reject(new Error('busy')) } });
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    await fixture.becomes(desk, voice, by, 'ready');
    await desk.remove({ voiceId: voice.id, by });
    expect(await fixture.filesOf(voice.id)).toHaveLength(1);
    const stuck = fixture.open({ objects: { ...fixture.objects, delete: () => Promise.reject(new Error('busy')) } });
    await stuck.start();
    expect(await fixture.filesOf(voice.id)).toHaveLength(1);
    await fixture.open().start();
    expect(await fixture.filesOf(voice.id)).toEqual([]);
  });

  it('stays deleted when deleted during processing, without a ready event', async () => {
    const by = await fixture.caller();
    const reading = Promise.withResolvers<void>();
    const going = Promise.withResolvers<void>();
    const read: typeof fixture.objects.read = async (options) => {
      reading.resolve();
      await going.promise;
      return await fixture.objects.read(options);
    };
    const desk = fixture.open({ objects: { ...fixture.objects, read } });
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    await reading.promise;
    await desk.remove({ voiceId: voice.id, by });
    going.resolve();
    await desk.close();
    expect(await fixture.webhookEvents(by)).toEqual([created]);
    expect(await fixture.filesOf(voice.id)).toEqual([]);
  });
});

describe('uploads of voice samples', () => {
  it('run at most two per user at a time, and leave no folders', async () => {
    const desk = fixture.open();
    const [first, second] = [await desk.beginUpload({ userId: 1 }), await desk.beginUpload({ userId: 1 })];
    await expect(desk.beginUpload({ userId: 1 })).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    const other = await desk.beginUpload({ userId: 2 });
    expect((await stat(first.folder)).isDirectory()).toBe(true);
    await first.end();
    await first.end();
    await expect(stat(first.folder)).rejects.toMatchObject({ code: 'ENOENT' });
    const third = await desk.beginUpload({ userId: 1 });
    await expect(desk.beginUpload({ userId: 1 })).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    for (const upload of [second, other, third]) await upload.end();
  });

  it('cannot start once the desk closes', async () => {
    const desk = fixture.open();
    await desk.close();
    await expect(desk.beginUpload({ userId: 1 })).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    const request = await fixture.request(await fixture.caller(), [SPEECH]);
    await expect(desk.create(request)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  });
});
