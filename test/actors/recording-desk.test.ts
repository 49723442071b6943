import { randomUUID } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRecordingDesk } from '../../actors/recording.actor.ts';
import type { RecordingExporter } from '../../actors/recordings/recording-exporter.ts';
import { createPlayableObjects } from '../../actors/recordings/recording-objects.ts';
import { SealedWavWriter } from '../../media/recording/sealed-wav.ts';
import { parseWav, wavHeader } from '../../media/wav.ts';
import { createSealingKeys, type SealingKeys } from '../../runtime/sealed-file/format.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects.ts';
import { getCallById } from '../../storage/queries/calls.ts';
import {
  createRecording,
  getRecording,
  type RecordingPatch,
  updateRecording,
} from '../../storage/queries/recordings.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { seedCaller } from './seeds.ts';

const STEREO = { channels: 2, sampleRateHz: 8000 };
const WIDEBAND = { channels: 2, sampleRateHz: 16_000 };
/** 0.1 s: 800 frames of 4 bytes. */
const AUDIO = Buffer.alloc(3_200, 1);
const WHOLE_WAV = Buffer.concat([wavHeader(STEREO, AUDIO.length), AUDIO]);

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'tandem-desk-'));
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

describe('recording desk', () => {
  it('uploads a finished recording, and updates its row and its call', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(WHOLE_WAV);
    desk.clock.advance(1_000);
    desk.store(recording);
    await desk.becomes(recording, 'uploaded');
    const key = `recordings/${recording.workspaceId}/${recording.recordingId}.wav`;
    expect(await getRecording(database.sql, recording.recordingId)).toMatchObject({
      objectKey: key,
      sizeBytes: 3_244,
      durationMs: 100,
      updatedAt: new Date(NOW.getTime() + 1_000),
    });
    expect((await getCallById(database.sql, recording.callId))?.recordingStatus).toBe('uploaded');
    expect(await readFile(join(desk.objectsDir, key))).toEqual(WHOLE_WAV);
    await expect(stat(recording.filePath)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('repairs a file whose writer was killed within a frame', async () => {
    const desk = await openDesk();
    const cut = Buffer.concat([wavHeader(STEREO, 0), AUDIO.subarray(0, 1_601)]);
    const recording = await desk.finish(cut);
    desk.store(recording);
    await desk.becomes(recording, 'uploaded');
    const row = await getRecording(database.sql, recording.recordingId);
    expect(row).toMatchObject({ sizeBytes: 1_644, durationMs: 50 });
    const wav = parseWav(await readFile(join(desk.objectsDir, row?.objectKey ?? '')));
    expect(wav).toMatchObject({ ...STEREO, durationMs: 50 });
  });

  it('stores the content of a file that a frozen node holds open, without later writes', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null);
    const theirs = await mkdtemp(join(folder, 'theirs-'));
    const file = await open(join(theirs, `${recording.recordingId}.wav`), 'w');
    await file.write(WHOLE_WAV);
    desk.store({ ...recording, folder: theirs });
    await desk.becomes(recording, 'uploaded');
    await file.write(AUDIO);
    await file.close();
    const key = `recordings/${recording.workspaceId}/${recording.recordingId}.wav`;
    expect(await readFile(join(desk.objectsDir, key))).toEqual(WHOLE_WAV);
    expect(await readdir(theirs)).toEqual([]);
  });

  it('does not fail a recording that another node has stored', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null, { status: 'uploaded', objectKey: 'theirs' });
    const patch = { status: 'failed' } as const;
    expect(
      await updateRecording(database.sql, { id: recording.recordingId, now: NOW, patch, unlessStored: true }),
    ).toBeNull();
    expect(await getRecording(database.sql, recording.recordingId)).toMatchObject({ status: 'uploaded' });
  });

  it('fails a recording without a file', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null);
    desk.store(recording);
    await desk.becomes(recording, 'failed');
    expect((await getCallById(database.sql, recording.callId))?.recordingStatus).toBe('failed');
    expect(desk.clock.waiting()).toEqual([]);
  });

  it('finds an uploaded recording whose row was not updated', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(WHOLE_WAV);
    const key = `recordings/${recording.workspaceId}/${recording.recordingId}.wav`;
    await desk.objects.putFile({ key, sourcePath: recording.filePath });
    desk.store(recording);
    await desk.becomes(recording, 'uploaded');
    expect(await getRecording(database.sql, recording.recordingId)).toMatchObject({ objectKey: key, sizeBytes: 3_244 });
  });

  it('ignores a stored recording', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null, { status: 'uploaded', objectKey: 'elsewhere.wav', sizeBytes: 9 });
    await desk.retry(recording);
    expect(await getRecording(database.sql, recording.recordingId)).toMatchObject({
      status: 'uploaded',
      objectKey: 'elsewhere.wav',
      sizeBytes: 9,
    });
  });

  it('retries with doubling delays until it succeeds', async () => {
    let failuresLeft = 3;
    const desk = await openDesk({
      beforePut: () => {
        failuresLeft -= 1;
        if (failuresLeft >= 0) throw new Error('the disk is full');
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    desk.store(recording);
    for (const delayMs of [1_000, 2_000, 4_000]) {
      await eventually(() => expect(desk.clock.waiting()).toEqual([delayMs]));
      expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('processing');
      desk.clock.advance(delayMs);
    }
    await desk.becomes(recording, 'uploaded');
    expect(desk.logger.messages('warn')).toEqual(Array.from({ length: 3 }, () => 'storing a recording failed'));
  });

  it('skips the delay on an explicit retry', async () => {
    let broken = true;
    const desk = await openDesk({
      beforePut: () => {
        if (broken) throw new Error('the disk is full');
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    desk.store(recording);
    await eventually(() => expect(desk.clock.waiting()).toEqual([1_000]));
    broken = false;
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('uploaded');
    expect(desk.clock.waiting()).toEqual([]);
  });

  it('completes an explicit retry even if it fails', async () => {
    const desk = await openDesk({
      beforePut: () => {
        throw new Error('the disk is full');
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('processing');
    expect(desk.clock.waiting()).toEqual([1_000]);
    await desk.retry(recording);
    expect(desk.clock.waiting()).toEqual([2_000]);
  });

  it('stores audio that appears after its recording failed', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null);
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('failed');
    await writeFile(recording.filePath, WHOLE_WAV);
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('uploaded');
  });

  it('stores a recording once for concurrent requests', async () => {
    const gate = Promise.withResolvers<void>();
    let puts = 0;
    const desk = await openDesk({
      beforePut: async () => {
        puts += 1;
        await gate.promise;
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    desk.store(recording);
    desk.store(recording);
    const retried = desk.retry(recording);
    gate.resolve();
    await retried;
    expect(puts).toBe(1);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('uploaded');
  });

  it('stores the peaks before the recording', async () => {
    const asked: unknown[] = [];
    const desk = await openDesk({
      exportPeaks: async (job) => {
        asked.push(job.form, job.sourcePath);
        await writeFile(job.targetPath, 'peaks');
        return 5;
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    await desk.retry(recording);
    expect(asked).toEqual([{ format: 'peaks' }, recording.filePath]);
    const peaks = `recordings/${recording.workspaceId}/${recording.recordingId}.peaks.json`;
    expect((await desk.objects.stat(peaks))?.sizeBytes).toBe(5);
  });

  it('stores a recording without computable peaks', async () => {
    const desk = await openDesk({
      exportPeaks: async () => {
        throw new Error('the thread is gone');
      },
    });
    const recording = await desk.finish(WHOLE_WAV);
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('uploaded');
    expect(desk.logger.messages('warn')).toEqual(['computing the peaks of a recording failed']);
  });

  it('completes an encrypted 16 kHz file of a killed writer, and stores it encrypted', async () => {
    const sealingKeys = createSealingKeys(Buffer.alloc(32, 1));
    const desk = await openDesk({ sealingKeys });
    const recording = await desk.finish(null);
    const writer = await SealedWavWriter.open(`${recording.filePath}.sealed`, WIDEBAND, sealOf(sealingKeys, recording));
    await writer.append(Buffer.alloc(40_000, 1));
    await writer.abandon();
    await desk.retry(recording);
    const row = await getRecording(database.sql, recording.recordingId);
    // Two chunks of 16 KiB were complete.
    expect(row).toMatchObject({ status: 'uploaded', sizeBytes: 32_768, durationMs: 511 });
    expect(row?.objectKey).toBe(`recordings/${recording.workspaceId}/${recording.recordingId}.wav.sealed`);
    const object = await createPlayableObjects(desk.objects, sealingKeys).open(row!.objectKey!);
    const wav = parseWav(await buffer(await object!.read({ start: 0, end: object!.sizeBytes - 1 })));
    expect(wav.samples[0]?.every((sample) => sample === 0x0101)).toBe(true);
    expect(wav).toMatchObject({ ...WIDEBAND, durationMs: 511.3125 });
    expect(await readFile(join(desk.objectsDir, row!.objectKey!))).not.toContain(Buffer.alloc(8, 1));
  });

  it('keeps an encrypted file until its key is available', async () => {
    const old = createSealingKeys(Buffer.alloc(32, 1));
    const desk = await openDesk({ sealingKeys: createSealingKeys(Buffer.alloc(32, 2)) });
    const recording = await desk.finish(null);
    const writer = await SealedWavWriter.open(`${recording.filePath}.sealed`, STEREO, sealOf(old, recording));
    await writer.finish();
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('processing');
    expect(desk.clock.waiting()).toEqual([1_000]);
    await expect(stat(`${recording.filePath}.sealed`)).resolves.toBeDefined();
  });

  it('fails a recording with a damaged encrypted file, and keeps the file', async () => {
    const sealingKeys = createSealingKeys(Buffer.alloc(32, 1));
    const desk = await openDesk({ sealingKeys });
    const recording = await desk.finish(null);
    await writeFile(`${recording.filePath}.sealed`, Buffer.alloc(500));
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('failed');
    expect(desk.logger.messages('error')).toEqual(['encrypted recording is damaged']);
    await expect(stat(`${recording.filePath}.sealed`)).resolves.toBeDefined();
  });

  it('ignores a deleted recording', async () => {
    const desk = await openDesk();
    const recording = await desk.finish(null, { status: 'deleted' });
    await desk.retry(recording);
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('deleted');
  });

  it('deletes what it stored of a recording that was deleted meanwhile', async () => {
    const desk = await openDesk({
      beforePut: async () => void (await database.sql`delete from recordings where id = ${recording.recordingId}`),
    });
    const recording = await desk.finish(WHOLE_WAV);
    await desk.retry(recording);
    const left = await readdir(desk.objectsDir, { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
    expect(desk.clock.waiting()).toEqual([]);
  });

  it('abandons a recording without a row', async () => {
    const desk = await openDesk();
    await desk.retry({ recordingId: randomUUID(), callId: 'call_x', workspaceId: randomUUID() });
    expect(desk.clock.waiting()).toEqual([]);
  });

  it('resolves waiting retries on close, and closes after the current attempt', async () => {
    const gate = Promise.withResolvers<void>();
    const desk = await openDesk({ beforePut: () => gate.promise });
    const recording = await desk.finish(WHOLE_WAV);
    const retried = desk.retry(recording);
    const closing = desk.close();
    await expect(retried).resolves.toBeUndefined();
    gate.resolve();
    expect(desk.clock.waiting()).toEqual([]);
    await closing;
    expect((await getRecording(database.sql, recording.recordingId))?.status).toBe('uploaded');
  });
});

function sealOf(keys: SealingKeys, { recordingId }: { recordingId: string }) {
  return keys.create(`${recordingId}.wav`)!;
}

interface DeskOptions {
  beforePut?: () => void | Promise<void>;
  sealingKeys?: SealingKeys;
  exportPeaks?: RecordingExporter['export'];
}

async function openDesk({
  beforePut,
  sealingKeys = createSealingKeys(null),
  exportPeaks = async ({ targetPath }) => {
    await writeFile(targetPath, 'peaks');
    return 5;
  },
}: DeskOptions = {}) {
  const { sql } = database;
  const caller = await seedCaller(sql);
  const objectsDir = await mkdtemp(join(folder, 'objects-'));
  const recordingsDir = await mkdtemp(join(folder, 'recordings-'));
  const tempDir = await mkdtemp(join(folder, 'tmp-'));
  const store = await openObjectStore({ folder: objectsDir });
  const objects: ObjectStore = {
    ...store,
    async putFile(options) {
      if (!options.key.endsWith('.peaks.json')) await beforePut?.();
      return await store.putFile(options);
    },
  };
  const clock = createTestClock();
  const logger = createTestLogger();
  const desk = createRecordingDesk({
    ...{ sql, node: 'node-1', objects, recordingsDir, clock, logger },
    sealingKeys,
    tempDir,
    exporter: { export: exportPeaks },
  });
  return {
    ...desk,
    clock,
    logger,
    objects: store,
    objectsDir,
    /** A settled call with the given recording file, or with none. */
    async finish(content: Buffer | null, patch: RecordingPatch = {}) {
      const { callId, workspaceId } = await caller.admit();
      const recordingId = randomUUID();
      await createRecording(sql, { id: recordingId, callId, workspaceId, node: 'node-1', now: NOW });
      await sql`update calls set state = 'completed', recording_id = ${recordingId} where call_id = ${callId}`;
      await updateRecording(sql, { id: recordingId, now: NOW, patch: { status: 'processing', ...patch } });
      const filePath = join(recordingsDir, `${recordingId}.wav`);
      if (content !== null) await writeFile(filePath, content);
      return { recordingId, callId, workspaceId, filePath };
    },
    async becomes({ recordingId }: { recordingId: string }, status: string) {
      await eventually(async () => expect((await getRecording(sql, recordingId))?.status).toBe(status));
    },
  };
}
