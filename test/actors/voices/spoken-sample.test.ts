import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually } from '../../eventually.ts';
import { createVoiceFixture, FakeSynthesis, PLAIN, SPEECH, type VoiceFixture } from './voice-desk-fixture.ts';

let fixture: VoiceFixture;
beforeAll(async () => {
  fixture = await createVoiceFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(fixture.synthesis, new FakeSynthesis());
  fixture.logger.lines.length = 0;
});

describe('synthesised sample of a voice', () => {
  it('gets created at the first request, once for concurrent requests, and stored', async () => {
    const desk = fixture.open();
    const { workspaceId } = await fixture.caller();
    const asked = Array.from({ length: 5 }, () => desk.sample({ workspaceId, voiceId: 'en-us' }));
    const keys = new Set(await Promise.all(asked));
    expect(keys.size).toBe(1);
    const [key] = keys;
    expect(await text(await fixture.objects.read({ key: key! }))).toBe('ID3...');
    expect(await fixture.open().sample({ workspaceId, voiceId: 'en-us' })).toBe(key);
    expect(fixture.synthesis.asked).toHaveLength(1);
    const { script, format, recipe } = fixture.synthesis.asked[0]!;
    expect(format).toEqual({ encoding: 'MP3', sampleRateHz: 24_000 });
    expect(recipe.engineVoice).toBe('en-us');
    expect(script.clauses[0]?.words.length).toBeGreaterThan(5);
  });

  it('disappears with its voice', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    const key = { workspaceId: by.workspaceId, voiceId: voice.id };
    await fixture.becomes(desk, voice, by, 'ready');
    const sample = await desk.sample(key);
    expect(await fixture.filesOf(voice.id)).toContain(sample);
    await desk.remove({ voiceId: voice.id, by });
    expect(await fixture.filesOf(voice.id)).toEqual([]);
  });

  it('disappears with its voice even if its creation was not recorded', async () => {
    const by = await fixture.caller();
    const lose: typeof fixture.objects.putFile = async (file) => {
      await fixture.objects.putFile(file);
      if (file.key.endsWith('.mp3')) throw new Error('the server was killed');
      return (await fixture.objects.stat(file.key))!;
    };
    const desk = fixture.open({ objects: { ...fixture.objects, putFile: lose } });
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    const key = { workspaceId: by.workspaceId, voiceId: voice.id };
    await fixture.becomes(desk, voice, by, 'ready');
    expect(await desk.sample(key)).toBeNull();
    expect(await fixture.filesOf(voice.id)).toHaveLength(2);
    await desk.remove({ voiceId: voice.id, by });
    expect(await fixture.filesOf(voice.id)).toEqual([]);
  });

  it('does not outlive a voice that is deleted during its synthesis', async () => {
    const by = await fixture.caller();
    const [storing, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const putFile: typeof fixture.objects.putFile = async (file) => {
      if (file.key.endsWith('.mp3')) {
        storing.resolve();
        await going.promise;
      }
      return await fixture.objects.putFile(file);
    };
    const desk = fixture.open({ objects: { ...fixture.objects, putFile } });
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    const key = { workspaceId: by.workspaceId, voiceId: voice.id };
    await fixture.becomes(desk, voice, by, 'ready');
    const asked = desk.sample(key);
    await storing.promise;
    await desk.remove({ voiceId: voice.id, by });
    going.resolve();
    expect(await asked).toBeNull();
    expect(await fixture.filesOf(voice.id)).toEqual([]);
  });

  it('stays empty when the engine returns no audio', async () => {
    fixture.synthesis.available = [{ ...PLAIN, name: 'fr', language: 'fr' }];
    const timers = fixture.clock.waiting().length;
    const desk = fixture.open();
    vi.spyOn(fixture.synthesis, 'speak').mockImplementationOnce(async function* () {});
    const { workspaceId } = await fixture.caller();
    expect(await desk.sample({ workspaceId, voiceId: 'fr' })).toBeNull();
    await desk.close();
    expect(fixture.clock.waiting()).toHaveLength(timers);
  });

  it('stays empty when the engine fails, and gets retried after a pause', async () => {
    fixture.synthesis.failure = new Error('the engine is gone');
    fixture.synthesis.available = [{ ...PLAIN, name: 'hi', language: 'hi' }];
    const desk = fixture.open();
    const { workspaceId } = await fixture.caller();
    const ask = () => desk.sample({ workspaceId, voiceId: 'hi' });
    expect([await ask(), await ask()]).toEqual([null, null]);
    expect(fixture.synthesis.asked).toHaveLength(1);
    fixture.synthesis.failure = null;
    fixture.clock.advance(60_000);
    expect(await ask()).toMatch(/^voice-samples\/[0-9a-f]{40}\.mp3$/);
  });

  it('gets created for at most two voices at a time', async () => {
    const names = ['it', 'nl', 'sv', 'fi', 'da'];
    fixture.synthesis.available = names.map((name) => ({ ...PLAIN, name, language: name }));
    fixture.synthesis.isStuck = true;
    const desk = fixture.open();
    const { workspaceId } = await fixture.caller();
    const asked = names.map((voiceId) => desk.sample({ workspaceId, voiceId }));
    await eventually(() => expect(fixture.clock.waiting().filter((ms) => ms === 8_000)).toHaveLength(5));
    await eventually(() => expect(fixture.synthesis.asked).toHaveLength(2));
    // Each running synthesis has a timer from its start.
    expect(fixture.clock.waiting().filter((ms) => ms === 60_000)).toHaveLength(2);
    await desk.close();
    expect(await Promise.all(asked)).toEqual(names.map(() => null));
  });

  it('gives up after a timeout', async () => {
    const desk = fixture.open();
    fixture.synthesis.isStuck = true;
    fixture.synthesis.available = [{ ...PLAIN, name: 'de', language: 'de' }];
    const { workspaceId } = await fixture.caller();
    const asked = fixture.open().sample({ workspaceId, voiceId: 'de' });
    await eventually(() => expect(fixture.clock.waiting()).toContain(8_000));
    fixture.clock.advance(8_000);
    expect(await asked).toBeNull();
    await desk.close();
  });
});
