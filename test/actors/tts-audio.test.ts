import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startEraser } from '../../actors/privacy/eraser.actor.ts';
import { type AudioExpiry, expireAudio } from '../../actors/tts/audio-expiry.ts';
import { KeptAudio } from '../../actors/tts/kept-audio.ts';
import { openObjectStore } from '../../storage/objects.ts';
import { eventually } from '../eventually.ts';
import { later, NOW, USD } from '../storage/seed.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { createTtsDeskFixture, drain, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

describe('stored synthesis audio', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tandem-kept-'));
    return () => rm(folder, { recursive: true });
  });

  async function keep(encoding: 'LINEAR16' | 'MULAW' | 'ALAW' | 'MP3', chunks: string[], maxBytes?: number) {
    const tempDir = await mkdtemp(join(folder, 'temp-'));
    const objects = await openObjectStore({ folder: join(folder, 'objects') });
    const format = { encoding, sampleRateHz: 8000 };
    const audio = new KeptAudio({ key: 'speech/a.wav', format, objects, tempDir, ...(maxBytes && { maxBytes }) });
    for (const chunk of chunks) await audio.append(Buffer.from(chunk));
    const stored = async () => await buffer(await objects.read({ key: 'speech/a.wav' }));
    return { audio, stored, files: () => readdir(tempDir) };
  }

  it.each([
    ['MULAW', 7],
    ['ALAW', 6],
  ] as const)('becomes a valid WAV file with all samples from %s', async (encoding, code) => {
    const { audio, stored } = await keep(encoding, ['abc', '', 'de']);
    expect(await audio.store()).toBe(true);
    const file = await stored();
    expect(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ');
    expect(file.readUInt32LE(4)).toBe(file.byteLength - 8);
    expect([file.readUInt32LE(16), file.readUInt16LE(20), file.readUInt16LE(22)]).toEqual([18, code, 1]);
    expect([file.readUInt32LE(24), file.readUInt32LE(28)]).toEqual([8000, 8000]);
    expect([file.readUInt16LE(32), file.readUInt16LE(34), file.readUInt16LE(36)]).toEqual([1, 8, 0]);
    expect([file.toString('latin1', 38, 42), file.readUInt32LE(42), file.readUInt32LE(46)]).toEqual(['fact', 4, 5]);
    expect([file.toString('latin1', 50, 54), file.readUInt32LE(54)]).toEqual(['data', 5]);
    // Chunks start at even offsets: five bytes and one of padding.
    expect(file.subarray(58)).toEqual(Buffer.from('abcde\0'));
  });

  it('survives repeated storing and later discarding, without temporary files', async () => {
    const { audio, stored, files } = await keep('MP3', ['abc', 'de']);
    expect(await files()).toEqual(['a.wav']);
    expect([await audio.store(), await audio.store()]).toEqual([true, true]);
    await audio.discard();
    expect(await audio.store()).toBe(true);
    expect((await stored()).toString()).toBe('abcde');
    expect(await files()).toEqual([]);
  });

  it('gets discarded when it exceeds its limit', async () => {
    const { audio, files } = await keep('MP3', ['abc', 'de'], 5);
    await expect(audio.append(Buffer.from('f'))).rejects.toThrow(RangeError);
    expect(await files()).toEqual([]);
    await audio.append(Buffer.from('g'));
    expect(await audio.store()).toBe(false);
    expect(await files()).toEqual([]);
  });

  it('disappears when discarded, even during a write', async () => {
    const { audio, files } = await keep('LINEAR16', ['ab']);
    const [, , stored] = await Promise.all([audio.append(Buffer.from('cd')), audio.discard(), audio.store()]);
    expect(stored).toBe(false);
    expect(await files()).toEqual([]);
  });

  it('gets discarded when empty', async () => {
    const { audio } = await keep('LINEAR16', []);
    expect(await audio.store()).toBe(false);
  });
});

describe('expired synthesis audio', () => {
  let fixture: TtsDeskFixture;
  const open: AudioExpiry[] = [];
  beforeAll(async () => {
    fixture = await createTtsDeskFixture();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());
  beforeEach(async () => {
    await fixture.fund(USD);
    await fixture.subscribe();
    return () => {
      for (const expiry of open.splice(0)) expiry.close();
    };
  });

  const DAY_MS = 24 * 3_600_000;
  const start = (at: Date, objects = fixture.objects) => {
    const clock = createTestClock(at);
    const logger = createTestLogger();
    const expiry = expireAudio({ sql: fixture.database.sql, objects, node: fixture.node, clock, logger });
    open.push(expiry);
    return { clock, logger, expiry };
  };
  async function speak(options: { node?: string } = {}): Promise<string> {
    const { desk } = fixture.deskOf(async function* () {
      yield part('one!');
    }, options);
    const { streamId, parts } = await desk.speak(fixture.request, new AbortController().signal);
    await drain(parts);
    await desk.close();
    return `speech/${fixture.request.workspaceId}/${streamId}.wav`;
  }
  const isThere = async (key: string) => (await fixture.objects.stat(key)) !== null;

  it('disappears with its key a day after the synthesis', async () => {
    const key = await speak();
    const { clock } = start(later(DAY_MS - 1));
    await eventually(() => expect(clock.waiting()).toEqual([600_000]));
    expect(await isThere(key)).toBe(true);
    clock.advance(600_000);
    await eventually(async () => expect(await isThere(key)).toBe(false));
    await eventually(async () => {
      expect(await fixture.rows()).toMatchObject([{ state: 'completed', audioKey: null, audioExpiresAt: null }]);
    });
  });

  it('disappears at the next start after a downtime', async () => {
    const key = await speak();
    start(later(30 * DAY_MS));
    await eventually(async () => expect(await isThere(key)).toBe(false));
  });

  it('stays if the clock of the node is far ahead', async () => {
    const key = await speak();
    await fixture.database.sql`update tts_streams set audio_expires_at = now() + interval '1 day'`;
    const { expiry } = start(new Date(Date.now() + 30 * DAY_MS));
    await expiry.deleteExpired();
    expect(await isThere(key)).toBe(true);
  });

  it('disappears at the next attempt after a failed deletion, without delaying other deletions', async () => {
    const stuck = await speak();
    const key = await speak();
    let isStuck = true;
    const { expiry, clock, logger } = start(NOW, {
      ...fixture.objects,
      async delete(wanted) {
        if (isStuck && wanted === stuck) throw new Error('busy');
        await fixture.objects.delete(wanted);
      },
    });
    await eventually(() => expect(clock.waiting()).toEqual([600_000]));
    clock.jumpTo(later(DAY_MS));
    await expiry.deleteExpired();
    expect([await isThere(stuck), await isThere(key)]).toEqual([true, false]);
    expect(logger.messages('warn')).toEqual(['expired audio could not be deleted']);
    isStuck = false;
    await expiry.deleteExpired();
    expect(await isThere(stuck)).toBe(false);
  });

  it('stays with the node whose store contains it', async () => {
    const key = await speak({ node: 'node-2' });
    const { clock } = start(later(DAY_MS));
    await eventually(() => expect(clock.waiting()).toEqual([600_000]));
    expect(await isThere(key)).toBe(true);
    expect(await fixture.rows()).toMatchObject([{ audioKey: key }]);
  });

  it('disappears from a store of all nodes, even if its node is gone', async () => {
    const key = await speak({ node: 'node-2' });
    const { clock } = start(later(DAY_MS), { ...fixture.objects, isShared: true });
    await eventually(() => expect(clock.waiting()).toEqual([600_000]));
    expect(await isThere(key)).toBe(false);
    expect(await fixture.rows()).toMatchObject([{ audioKey: null }]);
  });

  it('disappears from the node that has not uploaded it, after another node expired it in the store', async () => {
    const { sql } = fixture.database;
    await sql`delete from erased_recordings`;
    const key = await speak({ node: 'node-2' });
    const store = { ...fixture.objects, isShared: true };
    const { expiry, clock, logger } = start(later(DAY_MS), { ...store, delete: async () => {} });
    await expiry.deleteExpired();
    expect(await isThere(key)).toBe(true);
    const parts = { sql, node: 'node-2', recordingsDir: tmpdir(), clock, logger };
    const busy = { ...store, delete: () => Promise.reject(new Error('busy')) };
    using failing = startEraser({ ...parts, objects: busy });
    await failing.work();
    expect(logger.lines[0]).toMatchObject({ level: 'warn', fields: { objectKey: key } });
    using eraser = startEraser({ ...parts, objects: store });
    await eraser.work();
    expect(await isThere(key)).toBe(false);
  });

  it('disappears in batches of a hundred', async () => {
    const { sql } = fixture.database;
    const key = await speak();
    await sql`insert into tts_streams (id, workspace_id, voice_id, characters, state, error, audio_key, audio_expires_at,
        owner_node, owner_boot, created_at, ended_at)
      select 'tts_' || n, workspace_id, voice_id, 1, 'failed', 'INTERRUPTED', 'speech/none/' || n || '.wav', ${NOW},
        owner_node, owner_boot, created_at, ended_at
      from tts_streams, generate_series(1, 250) n where audio_key = ${key}`;
    const { clock } = start(later(1000));
    await eventually(() => expect(clock.waiting()).toEqual([600_000]));
    const left = (await fixture.rows()).filter(({ audioKey }) => audioKey !== null);
    expect(left.map(({ audioKey }) => audioKey)).toEqual([key]);
  });
});
