import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { GivenSamples } from '../../actors/voices/voice-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { eventually } from '../eventually.ts';
import { FAKE_VOICE, FakeVoiceDesk } from './fake-voice-desk.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { type FormPart, field, formOf } from './multipart-body.ts';

let fixture: HttpFixture;
let elsewhere: Member;
beforeAll(async () => {
  fixture = await createHttpFixture({ rateLimits: { plans: { enterprise: { perMinute: 1e6, perDay: 1e6 } } } });
  elsewhere = await fixture.addWorkspace();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(fixture.voices, new FakeVoiceDesk());
});

const FILE: FormPart = { name: 'files', value: Buffer.from('RIFF'), filename: 'one.wav', type: 'audio/wav' };
const USUAL = [field('name', 'Asha'), field('language', 'en'), field('consent', 'true'), FILE];

function post(parts: readonly FormPart[], path = '/voices', as?: Member) {
  const { body, headers } = formOf(parts);
  return fixture.call('POST', path, { body, headers, ...(as && { as }) });
}

async function professional(as = fixture.owner): Promise<string> {
  const { body } = await fixture.call('POST', '/voices/professional', { body: { name: 'Asha', language: 'hi' }, as });
  return body.data.voice_id;
}

describe('GET /voices', () => {
  it('lists professional voices by default and fast ones on request, in the specified shape', async () => {
    const { status, body } = await fixture.call('GET', '/voices');
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      message: '0 quality voices.',
      data: [],
      meta: { model: 'quality', pagination: { page: 1, limit: 20, total: 0, pages: 0 } },
    });
    const fast = await fixture.call('GET', '/voices?model=fast');
    expect(fast.body.meta).toEqual({ model: 'fast', pagination: { page: 1, limit: 20, total: 1, pages: 1 } });
    expect(fast.body.data).toEqual([
      {
        voice_id: FAKE_VOICE.id,
        name: 'English (United States)',
        model: 'svc Fast',
        labels: { language: 'en', language_name: 'English', gender: 'male', accent: 'American' },
        wpm: 150,
        description: 'As the engine has it.',
        categories: ['Conversational'],
        is_custom: false,
        status: 'ready',
      },
    ]);
  });

  it('includes unfinished voices with status=all, and never voices of other workspaces', async () => {
    const id = await professional();
    await professional(elsewhere);
    expect((await fixture.call('GET', '/voices')).body.data).toEqual([]);
    const { body } = await fixture.call('GET', '/voices?status=all');
    expect(body.data).toMatchObject([{ voice_id: id, model: 'svc Quality', status: 'pending', is_custom: true }]);
  });

  it('supports pages', async () => {
    const paged = await fixture.call('GET', '/voices?model=fast&page=2&limit=1');
    expect(paged.body).toMatchObject({ data: [], meta: { pagination: { page: 2, limit: 1, total: 1, pages: 1 } } });
  });

  it('rejects unknown models', async () => {
    const { status, body } = await fixture.call('GET', '/voices?model=best');
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('GET /voices/:id', () => {
  it('returns one voice with a playable sample', async () => {
    await fixture.putObject('voice-samples/0a1b2c.mp3', Buffer.from('ID3'));
    const { status, body } = await fixture.call('GET', `/voices/${FAKE_VOICE.id}`);
    expect(status).toBe(200);
    const { sample_url: url, ...rest } = body.data;
    expect(rest).toEqual({
      id: FAKE_VOICE.id,
      name: 'English (United States)',
      description: 'As the engine has it.',
      language: 'en',
      gender: 'male',
      age: null,
      accent: 'American',
      use_case: ['Conversational'],
      is_custom: false,
      created_at: '2026-01-01T00:00:00.000Z',
      model: 'svc Fast',
      wpm: 150,
      status: 'ready',
      approximate: null,
      error: null,
    });
    const played = await fixture.call('GET', url.replace('http://voice.test', ''), { as: null });
    expect([played.status, played.raw.toString()]).toEqual([200, 'ID3']);
  });

  it('accepts short names of platform voices', async () => {
    expect((await fixture.call('GET', '/voices/en-us')).body.data.id).toBe(FAKE_VOICE.id);
  });

  it('returns a null sample_url when no sample can be made', async () => {
    fixture.voices.sampleKey = null;
    expect((await fixture.call('GET', '/voices/en-us')).body.data.sample_url).toBeNull();
    fixture.voices.refusal = new Error('the disk is full');
    const { status, body } = await fixture.call('GET', '/voices/en-us');
    expect([status, body.data.sample_url]).toEqual([200, null]);
  });

  it('answers 404 for unknown voices and voices of other workspaces', async () => {
    const id = await professional(elsewhere);
    for (const other of [id, 'nothing', '0b5c1c1e-6d1f-4f0e-9a53-0f6a2f6a7a11']) {
      const { status, body } = await fixture.call('GET', `/voices/${other}`);
      expect([status, body.code]).toEqual([404, 'VOICE_NOT_FOUND']);
    }
  });
});

describe('PUT /voices/:id', () => {
  it('changes name and description, and returns both', async () => {
    const id = await professional();
    const { status, body } = await fixture.call('PUT', `/voices/${id}`, {
      body: { name: ' Meera ', description: 'X' },
    });
    expect(status).toBe(200);
    const updatedAt = FAKE_VOICE.updatedAt.toISOString();
    expect(body).toEqual({ success: true, data: { id, name: 'Meera', description: 'X', updated_at: updatedAt } });
    await fixture.call('PUT', `/voices/${id}`, { body: { description: null } });
    expect(fixture.voices.updated.map(({ patch }) => patch)).toEqual([
      { name: 'Meera', description: 'X' },
      { description: null },
    ]);
  });

  it.each([
    ['nothing', {}],
    ['an empty name', { name: '' }],
    ['a name of white space', { name: '  ' }],
    ['a name too long', { name: 'a'.repeat(101) }],
    ['a name with a line feed', { name: 'a\nb' }],
    ['a description that cannot be stored', { description: 'a\u0000b' }],
    ['another field', { name: 'a', language: 'hi' }],
  ])('rejects %s', async (_what, body) => {
    const { status, body: answer } = await fixture.call('PUT', `/voices/${await professional()}`, { body });
    expect([status, answer.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('refuses voices of the platform and of other workspaces', async () => {
    const body = { name: 'Mine' };
    expect((await fixture.call('PUT', `/voices/${FAKE_VOICE.id}`, { body })).body.code).toBe('VOICE_NOT_EDITABLE');
    const id = await professional(elsewhere);
    expect((await fixture.call('PUT', `/voices/${id}`, { body })).status).toBe(404);
  });
});

describe('DELETE /voices/:id', () => {
  it('deletes a voice once', async () => {
    const id = await professional();
    const { status, body } = await fixture.call('DELETE', `/voices/${id}`);
    expect([status, body]).toEqual([200, { success: true, data: { id, deleted: true } }]);
    expect((await fixture.call('DELETE', `/voices/${id}`)).body.code).toBe('VOICE_NOT_FOUND');
    expect((await fixture.call('DELETE', '/voices/en-us')).body.code).toBe('VOICE_NOT_EDITABLE');
  });
});

describe('POST /voices', () => {
  it('passes the form with all files and the origin of the request', async () => {
    const contents: string[] = [];
    const create = fixture.voices.create.bind(fixture.voices);
    vi.spyOn(fixture.voices, 'create').mockImplementationOnce(async (request) => {
      for (const { path } of request.samples!.files) contents.push(readFileSync(path, 'utf8'));
      return await create(request);
    });
    const { status, body, headers } = await post([
      { ...FILE, name: 'files[]', value: 'first' },
      field('description', 'Calm and clear.'),
      field('labels', '{"gender":"female","accent":"Indian","use_case":"Podcast","mood":"calm"}'),
      ...USUAL,
      { name: 'files', value: 'third', filename: '', type: 'audio/mpeg' },
    ]);
    expect(status).toBe(201);
    const [{ samples, by, ...rest }] = fixture.voices.created as [(typeof fixture.voices.created)[0]];
    expect(body).toEqual({ success: true, data: { voice_id: expect.any(String), status: 'processing' } });
    expect(rest).toEqual({
      name: 'Asha',
      description: 'Calm and clear.',
      language: 'en',
      labels: { gender: 'female', accent: 'Indian', age: null, more: { use_case: 'Podcast', mood: 'calm' } },
    });
    expect(contents).toEqual(['first', 'RIFF', 'third']);
    expect(samples!.files.map(({ name, mediaType }) => [name, mediaType])).toEqual([
      ['one.wav', 'audio/wav'],
      ['one.wav', 'audio/wav'],
      [null, 'audio/mpeg'],
    ]);
    const { workspaceId, userId, keyId: apiKeyId } = fixture.owner;
    expect(by).toEqual({ workspaceId, userId, apiKeyId, requestId: headers['x-request-id'], address: '127.0.0.1' });
    await eventually(() => expect(fixture.voices.uploads).toBe(0));
  });

  it('ignores empty fields', async () => {
    await post([field('description', ''), field('labels', ''), ...USUAL]);
    const labels = { gender: null, accent: null, age: null, more: {} };
    expect(fixture.voices.created).toMatchObject([{ description: null, labels }]);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['false', 'false'],
    ['other than true', 'True'],
  ])('rejects the consent of the speaker: %s', async (_what, consent) => {
    const parts = USUAL.filter(({ name }) => name !== 'consent');
    const { status, body } = await post(consent === undefined ? parts : [...parts, field('consent', consent)]);
    expect([status, body.code]).toEqual([400, 'VOICE_CONSENT_REQUIRED']);
    expect(fixture.voices.created).toEqual([]);
  });

  const without = (name: string) => USUAL.filter((part) => part.name !== name);
  it.each<[string, FormPart[], string]>([
    ['no name', without('name'), 'name'],
    ['no language', without('language'), 'language'],
    ['no file', without('files'), 'files'],
    ['a text instead of files', [...without('files'), field('files', 'x')], 'files'],
    ['an unknown field', [...USUAL, field('voice', 'x')], 'voice'],
    ['a file of another name', [...USUAL, { ...FILE, name: 'file' }], 'file'],
    ['a repeated name', [...USUAL, field('name', 'x')], 'name'],
    ['too many files', [...USUAL, ...Array.from({ length: 25 }, () => FILE)], 'files'],
    ['labels with invalid JSON', [...USUAL, field('labels', '{')], 'labels'],
    ['labels as a list', [...USUAL, field('labels', '["female"]')], 'labels'],
    ['a numeric label', [...USUAL, field('labels', '{"gender":1}')], 'labels.gender'],
    ['an unknown gender', [...USUAL, field('labels', '{"gender":"Female"}')], 'labels.gender'],
    ['an unknown accent', [...USUAL, field('labels', '{"accent":"Martian"}')], 'labels.accent'],
    ['labels with odd names', [...USUAL, field('labels', '{"__proto__":"x"}')], 'labels.__proto__'],
    ['labels that cannot be stored', [...USUAL, field('labels', '{"mood":"a\\u0000"}')], 'labels.mood'],
  ])('rejects %s', async (_what, parts, path) => {
    const { status, body } = await post(parts);
    expect([status, body.code, body.details?.[0]?.path]).toEqual([400, 'VALIDATION_FAILED', path]);
    expect(fixture.voices.created).toEqual([]);
    await eventually(() => expect(fixture.voices.uploads).toBe(0));
  });

  it('accepts 25 files, and none over 25 MB', async () => {
    const many = await post([...without('files'), ...Array.from({ length: 25 }, () => FILE)]);
    expect(many.status).toBe(201);
    const { status, body } = await post([...USUAL, { ...FILE, value: Buffer.alloc(25 * 2 ** 20 + 1) }]);
    expect([status, body.code, body.details]).toEqual([413, 'PAYLOAD_TOO_LARGE', { limit_bytes: 25 * 2 ** 20 }]);
  });

  it('accepts only complete forms', async () => {
    const json = await fixture.call('POST', '/voices', { body: { name: 'Asha' } });
    expect([json.status, json.body.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    const { body, headers } = formOf(USUAL);
    const cut = await fixture.call('POST', '/voices', { body: body.subarray(0, body.length - 40), headers });
    expect([cut.status, cut.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    const none = await fixture.call('POST', '/voices', { body: Buffer.alloc(0), headers });
    expect([none.status, none.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('forwards errors of the desk', async () => {
    const unreadable = new TandemError('AUDIO_NOT_READABLE', 'File 2: The file is no audio.');
    vi.spyOn(fixture.voices, 'create').mockRejectedValueOnce(unreadable);
    const { status, body } = await post(USUAL);
    expect([status, body.code]).toEqual([422, 'AUDIO_NOT_READABLE']);
    fixture.voices.refusal = new TandemError('RATE_LIMITED', '2 uploads are under way.', { retryAfterS: 5 });
    const limited = await post(USUAL);
    expect([limited.status, limited.headers['retry-after']]).toEqual([429, '5']);
  });
});

describe('POST /voices/professional', () => {
  it('creates a voice that waits for samples', async () => {
    const labels = { age: 'young' };
    const body = { name: ' Asha ', language: 'HI', description: 'Calm.', labels };
    const { status, body: answer } = await fixture.call('POST', '/voices/professional', { body });
    expect(status).toBe(201);
    expect(answer).toEqual({ success: true, data: { voice_id: expect.any(String), status: 'pending' } });
    expect(fixture.voices.created).toMatchObject([
      { name: 'Asha', language: 'hi', description: 'Calm.', samples: null, labels: { age: 'young', more: {} } },
    ]);
  });

  it.each([
    ['no name', { language: 'en' }],
    ['no language', { name: 'Asha' }],
    ['consent to nothing', { name: 'Asha', language: 'en', consent: true }],
    ['an unknown gender', { name: 'Asha', language: 'en', labels: { gender: 'x' } }],
    ['labels too many', { name: 'Asha', language: 'en', labels: manyLabels(21) }],
  ])('rejects %s', async (_what, body) => {
    const { status, body: answer } = await fixture.call('POST', '/voices/professional', { body });
    expect([status, answer.code]).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('POST /voices/professional/:id/samples', () => {
  const consent = field('consent', 'true');
  it('adds samples until the last one is marked', async () => {
    const id = await professional();
    const path = `/voices/professional/${id}/samples`;
    const first = await post([consent, FILE], path);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({ success: true, data: { voice_id: id, status: 'pending', sample_seconds: 94.2 } });
    const last = await post([consent, field('complete', 'true')], path);
    expect(last.body.data.status).toBe('processing');
    expect(fixture.voices.added).toMatchObject([
      { voiceId: id, isLast: false, samples: { files: [{ name: 'one.wav' }] } },
      { voiceId: id, isLast: true, samples: { files: [] } },
    ]);
  });

  it('requires consent with each sample, and a boolean complete', async () => {
    const path = `/voices/professional/${await professional()}/samples`;
    expect((await post([FILE], path)).body.code).toBe('VOICE_CONSENT_REQUIRED');
    expect((await post([FILE, consent, field('complete', 'yes')], path)).body.code).toBe('VALIDATION_FAILED');
    expect((await post([FILE, consent, field('name', 'x')], path)).body.code).toBe('VALIDATION_FAILED');
    expect(fixture.voices.added).toEqual([]);
  });

  it('answers 404 for a voice of another workspace', async () => {
    const path = `/voices/professional/${await professional(elsewhere)}/samples`;
    expect((await post([FILE, consent], path)).body.code).toBe('VOICE_NOT_FOUND');
  });
});

it('viewers can read voices and change none', async () => {
  const viewer = await fixture.addMemberWith('viewer');
  const id = await professional();
  expect((await fixture.call('GET', '/voices', { as: viewer })).status).toBe(200);
  expect((await fixture.call('GET', `/voices/${id}`, { as: viewer })).status).toBe(200);
  const refused = [
    await post(USUAL, '/voices', viewer),
    await fixture.call('POST', '/voices/professional', { body: { name: 'A', language: 'en' }, as: viewer }),
    await fixture.call('PUT', `/voices/${id}`, { body: { name: 'A' }, as: viewer }),
    await fixture.call('DELETE', `/voices/${id}`, { as: viewer }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  expect(fixture.voices.uploads).toBe(0);
});

function manyLabels(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`label_${index}`, 'x']));
}

it('cancels the intake of samples when the API key is deleted meanwhile', async () => {
  const voiceId = await professional();
  let begun = Promise.withResolvers<void>();
  const held = async ({ samples }: { samples: GivenSamples | null }) => {
    begun.resolve();
    await once(samples!.signal, 'abort');
    throw samples!.signal.reason;
  };
  vi.spyOn(fixture.voices, 'create').mockImplementationOnce(held);
  vi.spyOn(fixture.voices, 'addSamples').mockImplementationOnce(held);
  for (const [parts, path] of [
    [USUAL, '/voices'],
    [[field('consent', 'true'), FILE], `/voices/professional/${voiceId}/samples`],
  ] as const) {
    begun = Promise.withResolvers<void>();
    const leaver = await fixture.addMemberWith('member');
    const answer = post(parts, path, leaver);
    await begun.promise;
    expect((await fixture.call('DELETE', `/developer/api/${leaver.keyId}`)).status).toBe(200);
    const { status, body } = await answer;
    expect([status, body.code]).toEqual([401, 'UNAUTHORIZED']);
  }
  await eventually(() => expect(fixture.voices.uploads).toBe(0));
});
