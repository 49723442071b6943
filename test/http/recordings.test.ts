import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { tone } from '../../media/dsp/tones.ts';
import { SealedWavWriter } from '../../media/recording/sealed-wav.ts';
import { parseWav, wavHeader } from '../../media/wav.ts';
import { createSealingKeys } from '../../runtime/sealed-file/format.ts';
import { updateRecording } from '../../storage/queries/recordings.ts';
import * as fc from '../properties.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member, RECORDING_KEY } from './fixture.ts';
import { seedCall, seedRecordedCall } from './seed-calls.ts';

const FORMAT = { channels: 2, sampleRateHz: 8000 };
const SAMPLES = tone({ frequenciesHz: [700], durationMs: 3000 });
const DATA = Buffer.from(SAMPLES.buffer);
const WAV = Buffer.concat([wavHeader(FORMAT, DATA.length), DATA]);

let fixture: HttpFixture;
let folder: string;
let caller: Member;
beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: { plans: { enterprise: { perMinute: 1e6, perDay: 1e6 } }, anonymousPerMinute: 1_000_000 },
  });
  folder = await mkdtemp(join(tmpdir(), 'tandem-sealed-http-'));
});
beforeEach(async () => {
  caller = await newCaller();
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

let trunks = 0;

async function newCaller(): Promise<Member> {
  const { workspace } = await seedWorkspace(fixture.sql);
  trunks += 1;
  const numbers = [`+91114000${String(trunks).padStart(4, '0')}`];
  await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers });
  return await fixture.addMemberWith('member', workspace.id);
}

async function sealedWav(name: string, key: Buffer = RECORDING_KEY): Promise<Buffer> {
  const path = join(folder, randomUUID());
  const writer = await SealedWavWriter.open(path, FORMAT, createSealingKeys(key).create(name)!);
  await writer.append(DATA);
  await writer.finish();
  return await readFile(path);
}

/** A recording whose encrypted file can be altered. */
async function seedSealed({ key, change }: { key?: Buffer; change?: (file: Buffer) => Buffer } = {}) {
  const { call, recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
  const objectKey = `recordings/${caller.workspaceId}/${recordingId}.wav.sealed`;
  const file = await sealedWav(`${recordingId}.wav`, key);
  await fixture.putObject(objectKey, change?.(file) ?? file);
  await updateRecording(fixture.sql, { id: recordingId, now: fixture.now.current, patch: { objectKey } });
  return { call, recordingId, objectKey };
}

const mint = (id: string, query = '', as: Member = caller) =>
  fixture.call('POST', `/dialer/click2call/${id}/recording${query}`, { as });
const mintById = (id: string, query = '', as: Member = caller) =>
  fixture.call('POST', `/dialer/recordings/${id}/playback-url${query}`, { as });
const fetchMedia = (url: string, headers: Record<string, string> = {}) =>
  fixture.call('GET', url.replace('http://voice.test', ''), { as: null, headers });

describe('playback URL', () => {
  it.each([
    ['', 'wav', 'stereo', 'audio/wav'],
    ['?format=wav&channels=mono', 'wav', 'mono', 'audio/wav'],
    ['?format=mp3', 'mp3', 'stereo', 'audio/mpeg'],
    ['?format=mp3&channels=mono', 'mp3', 'mono', 'audio/mpeg'],
    ['?format=opus&channels=mono', 'opus', 'mono', 'audio/ogg'],
  ])('returns the recording with %s', async (query, format, channels, contentType) => {
    const { call, recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const { status, body } = await mint(call.callId, query);
    expect(status).toBe(200);
    expect(body.data.recording).toMatchObject({
      recording_id: recordingId,
      recording_format: format,
      recording_channels: channels,
    });
    const { headers, raw } = await fetchMedia(body.data.recording.playback_url);
    expect(headers['content-type']).toBe(contentType);
    expect(raw.length).toBe(body.data.recording.recording_size);
    const again = await mintById(recordingId, query);
    expect(again.body.data.playback_url.split('?')[0]).toBe(body.data.recording.playback_url.split('?')[0]);
  });

  it('encodes once for concurrent requests', async () => {
    const { recordingId, objectKey } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const minted = await Promise.all(Array.from({ length: 5 }, () => mintById(recordingId, '?format=mp3')));
    expect(minted.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const stored = await fixture.objects.stat(objectKey.replace('.wav', '.stereo.mp3'));
    await mintById(recordingId, '?format=mp3');
    expect(await fixture.objects.stat(stored!.key)).toEqual(stored);
  });

  it('accepts format and channels in the body too, which overrides the query', async () => {
    const { recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const minted = async (query: string, body: unknown) => {
      const url = `/dialer/recordings/${recordingId}/playback-url${query}`;
      return (await fixture.call('POST', url, { as: caller, body })).body.data.playback_url.split('?')[0];
    };
    expect(await minted('', { format: 'mp3', channels: 'mono' })).toMatch(/\.mono\.mp3$/);
    expect(await minted('?channels=mono', { format: 'opus' })).toMatch(/\.mono\.ogg$/);
    expect(await minted('?format=mp3', { format: 'wav', channels: 'mono' })).toMatch(/\.mono\.wav$/);
    expect(await minted('', {})).toMatch(/[0-9a-f]\.wav$/);
    for (const body of [{ format: 'flac' }, { channels: 2 }, [], 'mp3']) {
      const { status } = await fixture.call('POST', `/dialer/recordings/${recordingId}/playback-url`, {
        as: caller,
        body,
      });
      expect([400, 415]).toContain(status);
    }
    const { body: document } = await fixture.call('GET', '/openapi.json', { as: null });
    const operation = document.paths['/dialer/recordings/{id}/playback-url'].post;
    expect(operation.requestBody.required).toBe(false);
  });

  it('rejects unknown formats and channels', async () => {
    const { recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    for (const query of ['?format=flac', '?channels=5', '?format=mp3&format=wav']) {
      const { status, body } = await mintById(recordingId, query);
      expect([status, body.code], query).toEqual([400, 'VALIDATION_FAILED']);
    }
  });

  it('returns the peaks once computed', async () => {
    const { recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    expect((await mintById(recordingId)).body.data.peaks_url).toBeNull();
    let url: string | null = null;
    while (url === null) url = (await mintById(recordingId)).body.data.peaks_url;
    const { headers, body } = await fetchMedia(url);
    expect(headers['content-type']).toBe('application/json');
    expect(body).toMatchObject({ version: 2, channels: 2, samples_per_pixel: 80, bits: 8, length: 150 });
    expect(body.data.length).toBe(600);
  });

  it('belongs to the user who placed the call, in every format', async () => {
    const { call, recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const stranger = await newCaller();
    const teammate = await fixture.addMemberWith('admin', caller.workspaceId);
    for (const query of ['', '?format=mp3', '?format=opus&channels=mono']) {
      for (const request of [mint(call.callId, query, teammate), mintById(recordingId, query, teammate)]) {
        const { status, body } = await request;
        expect([status, body.code]).toEqual([404, 'RECORDING_NOT_OWNED']);
      }
      expect((await mintById(recordingId, query, stranger)).body.code).toBe('CALL_NOT_FOUND');
    }
    expect(await fixture.objects.stat(`recordings/${caller.workspaceId}/${recordingId}.stereo.mp3`)).toBeNull();
  });

  it('answers 410 for a deleted recording, in every format', async () => {
    const { call, recordingId } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const now = fixture.now.current;
    await updateRecording(fixture.sql, { id: recordingId, now, patch: { status: 'deleted' } });
    for (const answer of [await mint(call.callId), await mintById(recordingId, '?format=mp3')]) {
      expect([answer.status, answer.body.code]).toEqual([410, 'RECORDING_DELETED']);
      expect(answer.body.message).toContain('retention');
    }
    const { body } = await fixture.call('GET', `/dialer/click2call/${call.callId}`, { as: caller });
    expect(body.data.call).toMatchObject({ recording_status: 'deleted', recording_available: false });
  });

  it('answers 404 when the audio is missing', async () => {
    const { recordingId, objectKey } = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    await fixture.objects.delete(objectKey);
    for (const query of ['', '?format=mp3']) {
      const { status, body } = await mintById(recordingId, query);
      expect([status, body.code]).toEqual([404, 'RECORDING_UNAVAILABLE']);
    }
  });
});

describe('encrypted recording', () => {
  it('plays whole and in any range as the recorded WAV file', async () => {
    const { call, objectKey } = await seedSealed();
    expect((await fixture.objects.stat(objectKey))!.sizeBytes).toBeGreaterThan(WAV.length);
    const { body } = await mint(call.callId);
    const { playback_url: url, recording_size: size } = body.data.recording;
    expect(size).toBe(WAV.length);
    const whole = await fetchMedia(url);
    expect(whole.raw.equals(WAV)).toBe(true);
    expect(whole.headers['content-type']).toBe('audio/wav');
    expect(whole.headers['content-disposition']).toMatch(/^inline; filename="[0-9a-f-]+\.wav"$/);
    await fc.assert(
      fc.asyncProperty(fc.nat(WAV.length - 1), fc.nat(WAV.length + 10), async (start, length) => {
        const { status, headers, raw } = await fetchMedia(url, { range: `bytes=${start}-${start + length}` });
        const end = Math.min(start + length, WAV.length - 1);
        expect([status, headers['content-range']]).toEqual([206, `bytes ${start}-${end}/${WAV.length}`]);
        expect(raw.equals(WAV.subarray(start, end + 1))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('treats hostile Range headers as an unencrypted recording does', async () => {
    const clear = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const urls = await Promise.all(
      [clear, await seedSealed()].map(async ({ call }) => (await mint(call.callId)).body.data.recording.playback_url),
    );
    const digits = fc.oneof(
      fc.constantFrom('', '0', '-1', '1e3', '0x10', '99999999999999999999', '16384'),
      fc.string(),
    );
    const range = fc.oneof(
      fc.tuple(digits, digits).map(([start, end]) => `bytes=${start}-${end}`),
      fc.array(fc.nat(200_000), { maxLength: 8 }).map((starts) => `bytes=${starts.map((s) => `${s}-`).join(',')}`),
      fc.string(),
    );
    const printable = range.filter((text) => /^[\x20-\x7e]*$/.test(text));
    await fc.assert(
      fc.asyncProperty(printable, async (header) => {
        const [plain, sealed] = await Promise.all(urls.map((url) => fetchMedia(url, { range: header })));
        expect([200, 206, 416]).toContain(sealed!.status);
        expect(sealed!.status).toBe(plain!.status);
        expect(sealed!.headers['content-range']).toBe(plain!.headers['content-range']);
        if (sealed!.status !== 416) expect(sealed!.raw.equals(plain!.raw)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('uses a URL of this server even if the store presigns URLs', async () => {
    const presign = vi
      .spyOn(fixture.objects, 'presign')
      .mockImplementation(async ({ key }) => `https://s3.test/${key}`);
    const clear = await seedRecordedCall(fixture, { by: caller, bytes: WAV });
    const sealed = await seedSealed();
    const urls = await Promise.all(
      [clear, sealed].map(async ({ recordingId }) => (await mintById(recordingId)).body.data.playback_url),
    );
    presign.mockRestore();
    expect(urls[0]).toBe(`https://s3.test/${clear.objectKey}`);
    expect(urls[1]).toContain(`http://voice.test/media/${sealed.objectKey}?`);
    expect((await fetchMedia(urls[1]!)).raw.equals(WAV)).toBe(true);
    const head = await fixture.call('HEAD', urls[1]!.replace('http://voice.test', ''), { as: null });
    expect([head.status, head.headers['content-length'], head.raw.length]).toEqual([200, String(WAV.length), 0]);
  });

  it('leaves no plaintext in the store after encoding', async () => {
    const { recordingId, objectKey } = await seedSealed();
    const { body } = await mintById(recordingId, '?format=wav&channels=mono');
    const wav = parseWav((await fetchMedia(body.data.playback_url)).raw);
    expect(wav).toMatchObject({ channels: 1, durationMs: 1500 });
    const monoKey = objectKey.replace('.wav.sealed', '.mono.wav.sealed');
    expect(body.data.playback_url).toContain(monoKey);
    const stored = Buffer.concat(await (await fixture.objects.read({ key: monoKey })).toArray());
    expect(stored.includes('RIFF')).toBe(false);
  });

  it('reports the id of a missing key', async () => {
    const { recordingId } = await seedSealed({ key: Buffer.alloc(32, 99) });
    for (const query of ['', '?format=mp3']) {
      const { status, body } = await mintById(recordingId, query);
      expect([status, body.code]).toEqual([503, 'RECORDING_KEY_MISSING']);
      expect(body.message).toContain('RECORDING_KEY_PREVIOUS');
    }
  });

  it('reports damage instead of playing it', async () => {
    const flipped = (at: number) => (file: Buffer) => {
      const changed = Buffer.from(file);
      changed[at]! ^= 1;
      return changed;
    };
    for (const change of [flipped(20), flipped(100), (file: Buffer) => file.subarray(0, 20_000)]) {
      const { recordingId } = await seedSealed({ change });
      const minted = await mintById(recordingId);
      const answer = minted.status === 200 ? await fetchMedia(minted.body.data.playback_url) : minted;
      expect([500, 503]).toContain(answer.status);
      expect(['RECORDING_DAMAGED', 'RECORDING_KEY_MISSING']).toContain(answer.body.code);
      expect((await mintById(recordingId, '?format=mp3')).status).not.toBe(200);
    }
  });

  it('replaces a damaged encoded copy', async () => {
    const { recordingId, objectKey } = await seedSealed();
    const mp3Key = objectKey.replace('.wav.sealed', '.mono.mp3.sealed');
    await fixture.putObject(mp3Key, Buffer.alloc(200));
    const { body } = await mintById(recordingId, '?format=mp3&channels=mono');
    expect((await fetchMedia(body.data.playback_url)).raw.subarray(0, 1)).toEqual(Buffer.of(0xff));
  });
});

describe('recording settings', () => {
  const settings = (as: Member) => fixture.call('GET', '/dialer/recording-settings', { as });
  const change = (body: unknown, as: Member) => fixture.call('PATCH', '/dialer/recording-settings', { as, body });

  it('default to keeping recordings without a beep, and change by an admin', async () => {
    const owner = await fixture.addWorkspace();
    const [admin, member] = [
      await fixture.addMemberWith('admin', owner.workspaceId),
      await fixture.addMemberWith('member', owner.workspaceId),
    ];
    expect((await settings(member)).body.data).toEqual({ retention_days: null, recording_beep: false });
    const changed = await change({ retention_days: 30 }, admin);
    expect([changed.status, changed.body.data]).toEqual([200, { retention_days: 30, recording_beep: false }]);
    await change({ recording_beep: true }, admin);
    expect((await settings(member)).body.data).toEqual({ retention_days: 30, recording_beep: true });
    expect((await change({ retention_days: null }, admin)).body.data.retention_days).toBeNull();
    expect((await change({ retention_days: 1 }, member)).status).toBe(403);
    const { body } = await fixture.call('GET', '/audit', { as: owner });
    const actions = body.data.entries.map(({ action }: { action: string }) => action);
    expect(actions.filter((action: string) => action === 'recording_settings.updated').length).toBe(3);
  });

  it('reject invalid values', async () => {
    for (const body of [
      { retention_days: 0 },
      { retention_days: 3651 },
      { retention_days: 1.5 },
      { retention_days: '30' },
      { recording_beep: null },
      { days: 3 },
    ]) {
      const answer = await change(body, fixture.owner);
      expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, 'VALIDATION_FAILED']);
    }
  });

  it('decide about the beep unless the placement does', async () => {
    const owner = await fixture.addMemberWith('owner', caller.workspaceId);
    await change({ recording_beep: true }, owner);
    const beeps = async (more: object) =>
      (await seedCall(fixture, { by: owner, referenceId: randomUUID(), ...more })).recordingBeep;
    expect(await beeps({ record: true })).toBe(true);
    expect(await beeps({ record: true, recordingBeep: false })).toBe(false);
    expect(await beeps({ record: false })).toBe(false);
    await change({ recording_beep: false }, owner);
    expect(await beeps({ record: true })).toBe(false);
    expect(await beeps({ record: true, recordingBeep: true })).toBe(true);
  });
});
