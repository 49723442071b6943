import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createVoiceFixture, FakeSynthesis, SPEECH, secondsOf, type VoiceFixture } from './voice-desk-fixture.ts';

let fixture: VoiceFixture;
beforeAll(async () => {
  fixture = await createVoiceFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(fixture.synthesis, new FakeSynthesis());
  fixture.logger.lines.length = 0;
});

describe('professional voice', () => {
  it('collects samples over several requests, and starts processing after the last one', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, null));
    expect(voice).toMatchObject({ status: 'pending', tier: 'quality', categories: ['Professional Cloning'] });
    const add = async (files: Buffer[], isLast = false) => {
      const { samples } = await fixture.request(by, files);
      return await desk.addSamples({ voiceId: voice.id, samples: samples!, isLast, by });
    };
    expect(await add([SPEECH])).toMatchObject({ voice: { status: 'pending' } });
    // A repeated sample adds no speech.
    const first = await add([SPEECH]);
    expect(first.sampleMs).toBe(Math.round((SPEECH.length - 44) / 32));
    expect(await fixture.filesOf(voice.id)).toHaveLength(1);
    await expect(add([secondsOf(20, 1)], true)).rejects.toMatchObject({ code: 'VOICE_SAMPLE_UNUSABLE' });
    expect(await fixture.filesOf(voice.id)).toHaveLength(1);
    await add([secondsOf(60, 2)]);
    expect(await add([], true)).toMatchObject({ voice: { status: 'processing' } });
    await fixture.becomes(desk, voice, by, 'ready');
    await expect(add([secondsOf(5, 3)])).rejects.toMatchObject({ code: 'VOICE_NOT_EDITABLE' });
    const quality = await desk.list({ workspaceId: by.workspaceId, tier: 'quality' });
    expect(quality[0]).toMatchObject({ id: voice.id, status: 'ready' });
  });

  it('starts processing once it has enough speech, and accepts no samples meanwhile', async () => {
    const by = await fixture.caller();
    const desk = fixture.open({ objects: { ...fixture.objects, read: () => new Promise(() => {}) } });
    const voice = await desk.create(await fixture.request(by, null));
    const { samples } = await fixture.request(by, [Buffer.alloc(1_800 * 8_000, 0x55)]);
    const files = samples!.files.map((file) => ({ ...file, name: 'call.ulaw' }));
    const added = await desk.addSamples({ voiceId: voice.id, samples: { ...samples!, files }, isLast: false, by });
    expect(added.voice.status).toBe('processing');
    const more = await fixture.request(by, [SPEECH]);
    const late = desk.addSamples({ voiceId: voice.id, samples: more.samples!, isLast: false, by });
    await expect(late).rejects.toMatchObject({ code: 'VOICE_NOT_READY' });
  });

  it('can be repaired with better samples after a failure', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, null));
    const add = async (file: Buffer, name: string) => {
      const { samples } = await fixture.request(by, [file]);
      const files = samples!.files.map((one) => ({ ...one, name }));
      return await desk.addSamples({ voiceId: voice.id, samples: { ...samples!, files }, isLast: true, by });
    };
    // More silence than one analysis window, and longer than the speech.
    await add(Buffer.alloc(601 * 8_000, 0xff), 'silence.ulaw');
    await fixture.becomes(desk, voice, by, 'failed');
    await add(SPEECH, 'speech.wav');
    await fixture.becomes(desk, voice, by, 'ready');
    expect((await fixture.webhookEvents(by)).map(({ event }) => event).toSorted()).toEqual([
      'voice.created',
      'voice.failed',
      'voice.ready',
    ]);
  });

  it('belongs to its given categories and to the professional one, once each', async () => {
    const desk = fixture.open();
    const request = await fixture.request(await fixture.caller(), null);
    const labels = { ...request.labels, more: { use_case: 'professional cloning, Podcast, Nothing, podcast' } };
    expect((await desk.create({ ...request, labels })).categories).toEqual(['Podcast', 'Professional Cloning']);
  });

  it('rejects samples for a cloned voice', async () => {
    const desk = fixture.open();
    const by = await fixture.caller();
    const voice = await desk.create(await fixture.request(by, [SPEECH]));
    const { samples } = await fixture.request(by, [SPEECH]);
    const added = desk.addSamples({ voiceId: voice.id, samples: samples!, isLast: true, by });
    await expect(added).rejects.toMatchObject({ code: 'VOICE_NOT_EDITABLE' });
  });
});
