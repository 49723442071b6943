import { randomUUID } from 'node:crypto';
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { type RecordingInput, recordingMachine } from '../machines/recording.machine.ts';
import { repairRecording } from '../media/recording/sealed-wav.ts';
import { WAV_HEADER_BYTES, wavDurationMs } from '../media/wav.ts';
import type { Clock } from '../runtime/clock.ts';
import { exists } from '../runtime/exists.ts';
import { SealedFileError, type SealingKeys } from '../runtime/sealed-file/format.ts';
import { within } from '../runtime/waiting.ts';
import type { Sql } from '../storage/database.ts';
import type { ObjectStore } from '../storage/objects.ts';
import type { RecordingStatus } from '../storage/queries/call-row.ts';
import { getRecording, updateRecording } from '../storage/queries/recordings.ts';
import type { Logger } from './logger.ts';
import type { RecordingExporter } from './recordings/recording-exporter.ts';
import { audioKey, formKey, growingFile, keysOfRecording, sealedName } from './recordings/recording-names.ts';
import { createPlayableObjects } from './recordings/recording-objects.ts';

export interface RecordingDesk {
  /** Starts to store a recording, unless that is already in progress. */
  store(recording: RecordingInput): void;
  /** As `store`, but cuts a wait after a failure short. Resolves when this attempt ends. */
  retry(recording: RecordingInput): Promise<void>;
  /** Starts no further attempts. Waits up to five seconds for those in progress. */
  close(): Promise<void>;
}

export interface RecordingDeskOptions {
  sql: Sql;
  node: string;
  objects: ObjectStore;
  recordingsDir: string;
  sealingKeys: SealingKeys;
  /** Computes a recording's waveform peaks before it is stored. */
  exporter: Pick<RecordingExporter, 'export'>;
  /** Folder for peaks and other nodes' recordings until they are stored. */
  tempDir: string;
  clock: Clock;
  logger: Logger;
}

const CLOSE_TIMEOUT_MS = 5_000;

export function createRecordingDesk(options: RecordingDeskOptions): RecordingDesk {
  const attempts = new Set<Promise<unknown>>();
  const machine = recordingMachine.provide({
    actors: {
      store: fromPromise(({ input }) => {
        const attempt = storeRecording(options, input);
        attempts.add(attempt);
        return attempt.finally(() => attempts.delete(attempt));
      }),
    },
  });
  const actors = new Map<string, ActorRefFrom<typeof recordingMachine>>();

  function start(recording: RecordingInput): ActorRefFrom<typeof recordingMachine> {
    const running = actors.get(recording.recordingId);
    if (running) return running;
    const actor = createActor(machine, { input: recording, clock: options.clock });
    actors.set(recording.recordingId, actor);
    const forget = () => actors.delete(recording.recordingId);
    actor.subscribe({
      next: (snapshot) => {
        if (snapshot.matches('waiting')) options.logger.warn({ ...recording }, 'storing a recording failed');
      },
      error: forget,
      complete: forget,
    });
    actor.start();
    return actor;
  }

  return {
    store: (recording) => void start(recording),
    retry(recording) {
      const actor = start(recording);
      actor.send({ type: 'retry.requested' });
      return new Promise((resolve) => {
        const settled = (snapshot: ReturnType<typeof actor.getSnapshot>) => {
          if (snapshot.matches('storing')) return;
          subscription.unsubscribe();
          resolve();
        };
        const subscription = actor.subscribe({ next: settled, complete: resolve, error: () => resolve() });
        settled(actor.getSnapshot());
      });
    },
    async close() {
      for (const actor of actors.values()) actor.stop();
      actors.clear();
      // The next start repeats a failed attempt.
      await within(Promise.allSettled(attempts), { ms: CLOSE_TIMEOUT_MS });
    },
  };
}

/** Idempotent: finds a file in the store that was moved before its row was updated. */
async function storeRecording(
  options: RecordingDeskOptions,
  { recordingId: id, workspaceId, folder = null }: RecordingInput,
): Promise<{ stored: boolean }> {
  const { sql, clock } = options;
  const recording = await getRecording(sql, id);
  if (!recording || isSettled(recording.status)) return { stored: recording !== null };
  const file = { id, workspaceId, folder: folder ?? options.recordingsDir };
  const stored =
    (await storeFile(options, { ...file, isSealed: true })) ?? (await storeFile(options, { ...file, isSealed: false }));
  const patch = stored
    ? ({
        status: 'uploaded',
        node: options.node,
        objectKey: stored.key,
        sizeBytes: stored.sizeBytes,
        durationMs: Math.round(stored.durationMs),
      } as const)
    : ({ status: 'failed' } as const);
  // Two nodes may look for the file of a node that restarts during its takeover. Only one finds it.
  const updated = await updateRecording(sql, { id, now: new Date(clock.now()), patch, unlessStored: stored === null });
  if (stored === null) return { stored: false };
  // The call was deleted meanwhile, which does not wait for a recording taken over from a lost node.
  if (updated === null) for (const key of keysOfRecording(stored.key)) await options.objects.delete(key);
  return { stored: updated !== null };
}

function isSettled(status: RecordingStatus): boolean {
  return status === 'uploaded' || status === 'deleted';
}

/** Returns the object with its size for players. Null if neither file nor object exists. */
async function storeFile(
  options: RecordingDeskOptions,
  recording: { id: string; workspaceId: string; folder: string; isSealed: boolean },
): Promise<{ key: string; sizeBytes: number; durationMs: number } | null> {
  const { objects, sealingKeys, logger } = options;
  const key = audioKey(recording);
  const foundPath = growingFile(recording.folder, recording);
  if (!(await exists(foundPath))) return await storedBefore(options, key);
  const unlock = (header: Uint8Array) => sealingKeys.open(header, sealedName(key));
  const isOurs = recording.folder === options.recordingsDir;
  const sourcePath = isOurs ? foundPath : join(options.tempDir, `${randomUUID()}.taken`);
  try {
    // A frozen node still has its file open and writes to it when it wakes up, so copy.
    if (!isOurs) await copyFile(foundPath, sourcePath);
    const length = await repairRecording(sourcePath, recording.isSealed ? unlock : null);
    await storePeaks(options, { id: recording.id, key, sourcePath });
    const stored = await objects.putFile({ key, sourcePath });
    if (!isOurs) await rm(foundPath, { force: true });
    return { key, sizeBytes: length?.bytes ?? stored.sizeBytes, durationMs: length?.durationMs ?? 0 };
  } catch (error) {
    if (!isOurs) await rm(sourcePath, { force: true });
    if (!(error instanceof SealedFileError) || error.code !== 'SEALED_FILE_DAMAGED') throw error;
    // Retrying does not help. Keep the file for manual repair.
    logger.error({ recordingId: recording.id, err: error }, 'encrypted recording is damaged');
    return null;
  }
}

/** Best effort: missing peaks are computed on request. */
async function storePeaks(
  { objects, exporter, tempDir, logger }: RecordingDeskOptions,
  { id, key, sourcePath }: { id: string; key: string; sourcePath: string },
): Promise<void> {
  const form = { format: 'peaks' } as const;
  const targetKey = formKey(key, form);
  const targetPath = join(tempDir, `${randomUUID()}.peaks`);
  try {
    await exporter.export({ recordingKey: key, sourcePath, targetKey, targetPath, form });
    await objects.putFile({ key: targetKey, sourcePath: targetPath });
  } catch (error) {
    logger.warn({ recordingId: id, err: error }, 'computing the peaks of a recording failed');
    await rm(targetPath, { force: true });
  }
}

/** An earlier attempt moved the file. */
async function storedBefore(
  { objects, sealingKeys }: RecordingDeskOptions,
  key: string,
): Promise<{ key: string; sizeBytes: number; durationMs: number } | null> {
  const stored = await createPlayableObjects(objects, sealingKeys).open(key);
  if (stored === null) return null;
  const { sizeBytes } = stored;
  const header = await buffer(await stored.read({ start: 0, end: WAV_HEADER_BYTES - 1 }));
  return { key, sizeBytes, durationMs: wavDurationMs(header, sizeBytes) };
}
