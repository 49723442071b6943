import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { GateFullError } from '../../runtime/gate.ts';
import { SealedFileError, type SealingKeys } from '../../runtime/sealed-file/format.ts';
import { THREAD_CLOSED, ThreadError } from '../../runtime/supervised-thread.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import type { Logger } from '../logger.ts';
import type { ExportForm } from './export-audio.ts';
import type { RecordingExporter } from './recording-exporter.ts';
import type { RecordingLibrary, StoredRecording } from './recording-library.ts';
import { formKey } from './recording-names.ts';
import { asTandemError, createPlayableObjects } from './recording-objects.ts';

export interface RecordingLibraryOptions {
  sql: Sql;
  objects: ObjectStore;
  keys: SealingKeys;
  exporter: RecordingExporter;
  /** Folder for a recording and its encoding until that is stored. */
  tempDir: string;
  clock: Clock;
  logger: Logger;
  /** Longest that a request waits for an encoding. Default 15 000. */
  patienceMs?: number;
}

export function createRecordingLibrary(options: RecordingLibraryOptions): RecordingLibrary {
  const { objects, keys, clock, logger, patienceMs = 15_000 } = options;
  const { open } = createPlayableObjects(objects, keys);
  const running = new Map<string, Promise<{ key: string; sizeBytes: number }>>();

  function encode(recording: StoredRecording, form: ExportForm): Promise<{ key: string; sizeBytes: number }> {
    const key = formKey(recording.objectKey, form);
    const begun = running.get(key);
    if (begun) return begun;
    const encoding = encodeAndStore(options, { recording, form, key })
      .catch((error: unknown) => {
        if (!(error instanceof GateFullError)) {
          logger.warn({ recordingId: recording.id, form: form.format, err: error }, 'encoding a recording failed');
        }
        throw isMissing(error) ? missing(objects) : errorForClients(error);
      })
      .finally(() => running.delete(key));
    encoding.catch(() => {});
    running.set(key, encoding);
    return encoding;
  }

  /** Treats a damaged copy as missing, so that it is encoded again. */
  async function existing(key: string): Promise<{ key: string; sizeBytes: number } | null> {
    try {
      return await open(key);
    } catch (error) {
      if (!(error instanceof TandemError && error.code === 'RECORDING_DAMAGED')) throw error;
      logger.warn({ err: error }, 'encoded copy of a recording is damaged');
      return null;
    }
  }

  return {
    open,

    async inForm(recording, form) {
      if (form.format === 'wav' && form.channels === 'stereo') {
        const whole = await open(recording.objectKey);
        if (whole === null) throw missing(objects);
        return whole;
      }
      const found = await existing(formKey(recording.objectKey, form));
      if (found !== null) return found;
      const encoded = await within(encode(recording, form), { ms: patienceMs, clock });
      if (encoded !== LATE) return encoded;
      throw new TandemError(
        'RECORDING_ENCODING',
        'The recording is being encoded. Repeat the request in a few seconds.',
        { retryAfterS: 5 },
      );
    },

    async peaksOf(recording) {
      const form = { format: 'peaks' } as const;
      const key = formKey(recording.objectKey, form);
      if ((await objects.stat(key)) !== null) return key;
      encode(recording, form).catch(() => {});
      return null;
    },
  };
}

async function encodeAndStore(
  { sql, objects, exporter, tempDir }: RecordingLibraryOptions,
  { recording, form, key }: { recording: StoredRecording; form: ExportForm; key: string },
): Promise<{ key: string; sizeBytes: number }> {
  const name = randomUUID();
  const sourcePath = join(tempDir, `${name}.source`);
  const targetPath = join(tempDir, `${name}.target`);
  try {
    const sizeBytes = await exporter.export({
      recordingKey: recording.objectKey,
      fetchSource: () => objects.copyTo({ key: recording.objectKey, targetPath: sourcePath }),
      sourcePath,
      targetKey: key,
      targetPath,
      form,
    });
    await objects.putFile({ key, sourcePath: targetPath });
    // The recording may have been deleted meanwhile; deletion does not see copies stored after it.
    if ((await getRecording(sql, recording.id))?.status !== 'uploaded') {
      await objects.delete(key);
      throw gone();
    }
    return { key, sizeBytes };
  } finally {
    await rm(sourcePath, { force: true });
    await rm(targetPath, { force: true });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof TandemError && error.code === 'NOT_FOUND';
}

/** A server uploads its recordings to a shared store in the background, and until then others do not find them. */
function missing({ isShared }: Pick<ObjectStore, 'isShared'>): TandemError {
  if (!isShared) return gone();
  return new TandemError(
    'RECORDING_UNAVAILABLE',
    'The audio of the recording is not in the object store. The server that recorded it may still upload it. Try again later.',
  );
}

function gone(): TandemError {
  return new TandemError('RECORDING_UNAVAILABLE', 'The audio of the recording no longer exists.');
}

function errorForClients(error: unknown): unknown {
  if (error instanceof GateFullError) {
    return new TandemError('RECORDING_ENCODING', 'Too many recordings are being encoded. Try again later.', {
      cause: error,
      retryAfterS: 30,
    });
  }
  if (error instanceof TandemError) return error;
  if (error instanceof ThreadError) {
    if (error.code === THREAD_CLOSED) return new TandemError('SHUTTING_DOWN', 'The server is shutting down.');
    if (error.code === 'SEALED_FILE_DAMAGED') return asTandemError(new SealedFileError(error.code, error.message));
  }
  if (error instanceof SealedFileError) return asTandemError(error);
  return new TandemError('STORAGE_UNAVAILABLE', 'The recording could not be encoded. Try again later.', {
    cause: error,
  });
}
