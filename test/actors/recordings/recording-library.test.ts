import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRecordingExporter, type RecordingExporter } from '../../../actors/recordings/recording-exporter.ts';
import { createRecordingLibrary } from '../../../actors/recordings/recording-library.actor.ts';
import { SealedWavWriter } from '../../../media/recording/sealed-wav.ts';
import { parseWav, wavHeader } from '../../../media/wav.ts';
import { GateFullError } from '../../../runtime/gate.ts';
import { createSealingKeys } from '../../../runtime/sealed-file/format.ts';
import { THREAD_CLOSED, THREAD_LOST, ThreadError } from '../../../runtime/supervised-thread.ts';
import { type ObjectStore, openObjectStore } from '../../../storage/objects.ts';
import { createRecording, updateRecording } from '../../../storage/queries/recordings.ts';
import { openBucket } from '../../../storage/s3/bucket.ts';
import { openS3ObjectStore } from '../../../storage/s3/object-store.ts';
import { eventually } from '../../eventually.ts';
import { hasS3Server, startS3Server } from '../../storage/s3/s3-server.ts';
import { NOW } from '../../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createTestClock, createTestLogger } from '../fakes.ts';
import { seedCaller } from '../seeds.ts';

const FORMAT = { channels: 2, sampleRateHz: 8000 };
const DATA = Buffer.alloc(32_000, 3);
const WAV = Buffer.concat([wavHeader(FORMAT, DATA.length), DATA]);
const MP3 = { format: 'mp3', channels: 'mono' } as const;
const keys = createSealingKeys(Buffer.alloc(32, 3));

let database: TestDatabase;
let folder: string;
let call: { callId: string; workspaceId: string };
beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'tandem-library-'));
  call = await (await seedCaller(database.sql)).admit();
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

async function openLibrary({ exporter, objects }: { exporter?: RecordingExporter; objects?: ObjectStore } = {}) {
  const tempDir = await mkdtemp(join(folder, 'tmp-'));
  const store = objects ?? (await openObjectStore({ folder: await mkdtemp(join(folder, 'objects-')) }));
  const clock = createTestClock();
  const logger = createTestLogger();
  const real = createRecordingExporter({ keys, logger });
  const library = createRecordingLibrary({
    ...{ sql: database.sql, objects: store, keys, tempDir, clock, logger },
    exporter: exporter ?? real,
  });
  return {
    ...{ library, clock, logger, store },
    tempFiles: () => readdir(tempDir),
    async recording({ isSealed = false } = {}) {
      const { callId, workspaceId } = call;
      const id = randomUUID();
      const objectKey = `recordings/${workspaceId}/${id}.wav${isSealed ? '.sealed' : ''}`;
      const sourcePath = join(folder, randomUUID());
      if (isSealed) {
        const writer = await SealedWavWriter.open(sourcePath, FORMAT, keys.create(`${id}.wav`)!);
        await writer.append(DATA);
        await writer.finish();
      } else await writeFile(sourcePath, WAV);
      await store.putFile({ key: objectKey, sourcePath });
      await createRecording(database.sql, { id, callId, workspaceId, node: 'node-1', now: NOW });
      await updateRecording(database.sql, { id, now: NOW, patch: { status: 'uploaded', objectKey } });
      return { id, objectKey };
    },
    [Symbol.asyncDispose]: () => real.close(),
  };
}

/** An exporter that the test completes. */
function scriptedExporter() {
  const jobs: { targetKey: string; end: PromiseWithResolvers<void> }[] = [];
  const exporter: RecordingExporter = {
    async export({ targetKey, targetPath, fetchSource }) {
      const end = Promise.withResolvers<void>();
      jobs.push({ targetKey, end });
      await fetchSource?.();
      await end.promise;
      await writeFile(targetPath, 'encoded');
      return 7;
    },
    close: async () => {},
  };
  return { exporter, jobs };
}

describe('recording library', () => {
  it('encodes once for concurrent requests, and leaves no temporary file', async () => {
    const { exporter, jobs } = scriptedExporter();
    await using bench = await openLibrary({ exporter });
    const recording = await bench.recording();
    const asked = [1, 2, 3].map(() => bench.library.inForm(recording, MP3));
    await eventually(() => expect(jobs.length).toBe(1));
    jobs[0]!.end.resolve();
    const key = recording.objectKey.replace('.wav', '.mono.mp3');
    for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ key, sizeBytes: 7 });
    expect(await bench.library.inForm(recording, MP3)).toMatchObject({ key, sizeBytes: 7 });
    expect([jobs.length, await bench.tempFiles()]).toEqual([1, []]);
  });

  it.each([{ format: 'wav', channels: 'stereo' }, MP3] as const)(
    'does not call a recording as $format gone that another server may still upload',
    async (form) => {
      await using own = await openLibrary();
      const recording = await own.recording();
      const empty = await openObjectStore({ folder: await mkdtemp(join(folder, 'objects-')) });
      await using alone = await openLibrary({ objects: empty });
      await using other = await openLibrary({ objects: { ...empty, isShared: true } });
      const code = 'RECORDING_UNAVAILABLE';
      const gone = { code, message: expect.stringContaining('no longer exists') };
      const awaited = { code, message: expect.stringContaining('may still upload it') };
      await expect(alone.library.inForm(recording, form)).rejects.toMatchObject(gone);
      await expect(other.library.inForm(recording, form)).rejects.toMatchObject(awaited);
    },
  );

  it('answers RECORDING_ENCODING after fifteen seconds, and continues to encode', async () => {
    const { exporter, jobs } = scriptedExporter();
    await using bench = await openLibrary({ exporter });
    const recording = await bench.recording();
    const asked = bench.library.inForm(recording, MP3);
    await eventually(() => expect([jobs.length, bench.clock.waiting()]).toEqual([1, [15_000]]));
    bench.clock.advance(15_000);
    await expect(asked).rejects.toMatchObject({ code: 'RECORDING_ENCODING', retryAfterS: 5 });
    const again = bench.library.inForm(recording, MP3);
    jobs[0]!.end.resolve();
    expect(await again).toMatchObject({ sizeBytes: 7 });
    expect(jobs.length).toBe(1);
  });

  it.each([
    [new GateFullError('full'), 'RECORDING_ENCODING'],
    [new ThreadError(THREAD_LOST, 'died'), 'STORAGE_UNAVAILABLE'],
    [new ThreadError(THREAD_CLOSED, 'closed'), 'SHUTTING_DOWN'],
    [Object.assign(new Error('full'), { code: 'ENOSPC' }), 'STORAGE_UNAVAILABLE'],
  ])('maps %s to an error, and retries at the next request', async (error, code) => {
    let isBroken = true;
    const exporter: RecordingExporter = {
      async export({ targetPath }) {
        if (isBroken) throw error;
        await writeFile(targetPath, 'encoded');
        return 7;
      },
      close: async () => {},
    };
    await using bench = await openLibrary({ exporter });
    const recording = await bench.recording();
    await expect(bench.library.inForm(recording, MP3)).rejects.toMatchObject({ code });
    isBroken = false;
    expect(await bench.library.inForm(recording, MP3)).toMatchObject({ sizeBytes: 7 });
  });

  it('keeps no copy of a recording that was deleted during encoding', async () => {
    const { exporter, jobs } = scriptedExporter();
    await using bench = await openLibrary({ exporter });
    const recording = await bench.recording();
    const asked = bench.library.inForm(recording, MP3);
    await eventually(() => expect(jobs.length).toBe(1));
    await updateRecording(database.sql, { id: recording.id, now: NOW, patch: { status: 'deleted' } });
    jobs[0]!.end.resolve();
    await expect(asked).rejects.toMatchObject({ code: 'RECORDING_UNAVAILABLE' });
    expect(await bench.store.stat(jobs[0]!.targetKey)).toBeNull();
  });

  it('encodes two recordings at a time, and rejects requests beyond its queue', async () => {
    await using bench = await openLibrary();
    const recordings = await Promise.all(Array.from({ length: 70 }, () => bench.recording()));
    const answers = await Promise.allSettled(recordings.map((recording) => bench.library.inForm(recording, MP3)));
    const rejected = answers.filter(({ status }) => status === 'rejected');
    expect(rejected.length).toBe(4);
    for (const answer of rejected) {
      expect((answer as PromiseRejectedResult).reason).toMatchObject({ code: 'RECORDING_ENCODING', retryAfterS: 30 });
    }
  });
});

describe.skipIf(!hasS3Server)('recording library over an S3 bucket', () => {
  it('encodes plain and encrypted recordings, and stores no plaintext of encrypted ones', async () => {
    await using server = await startS3Server();
    const settings = await server.createBucket();
    const silent = () => {};
    const objects = await openS3ObjectStore({
      folder: await mkdtemp(join(folder, 's3-')),
      bucket: openBucket({ ...settings, maxAttempts: 1 }),
      logger: { info: silent, warn: silent, error: silent },
      firstRetryMs: 10,
    });
    try {
      await using bench = await openLibrary({ objects });
      for (const isSealed of [false, true]) {
        const recording = await bench.recording({ isSealed });
        await objects.settled();
        const { key, sizeBytes } = await bench.library.inForm(recording, { format: 'wav', channels: 'mono' });
        expect(key.endsWith('.sealed')).toBe(isSealed);
        await objects.settled();
        expect(await server.keysIn(settings.bucket)).toEqual(expect.arrayContaining([recording.objectKey, key]));
        const object = (await bench.library.open(key))!;
        expect(object.sizeBytes).toBe(sizeBytes);
        const middle = await buffer(await object.read({ start: 10_000, end: 10_099 }));
        expect(middle.length).toBe(100);
        const wav = parseWav(await buffer(await object.read({ start: 0, end: sizeBytes - 1 })));
        expect(wav).toMatchObject({ channels: 1, durationMs: 1000 });
        expect(wav.samples[0]!.every((sample) => sample === 2 * 0x0303)).toBe(true);
        const stored = await buffer(await objects.read({ key }));
        expect(stored.includes('RIFF')).toBe(!isSealed);
        const peaks = await eventually(async () => {
          const found = await bench.library.peaksOf(recording);
          expect(found).not.toBeNull();
          return found!;
        });
        const points = await bench.library.open(peaks);
        const text = String(await buffer(await points!.read({ start: 0, end: points!.sizeBytes - 1 })));
        expect(JSON.parse(text)).toMatchObject({ length: 100, channels: 2 });
      }
      await eventually(async () => expect(await bench.tempFiles()).toEqual([]));
    } finally {
      await objects.close();
    }
  });
});
