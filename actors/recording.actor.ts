import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { type RecordingInput, recordingMachine } from '../machines/recording.machine.ts';
import { repairWav, WAV_HEADER_BYTES } from '../media/wav.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Sql } from '../storage/database.ts';
import type { ObjectStore } from '../storage/objects.ts';
import { getRecording, updateRecording } from '../storage/queries/recordings.ts';
import type { Logger } from './logger.ts';

/** Brings finished recordings into the object store, one actor each, for as long as that takes. */
export interface RecordingDesk {
  /** Starts storing it unless that is under way. */
  store(recording: RecordingInput): void;
  /** As `store`, now: a wait after a failure is cut short. Resolves when this attempt is over. */
  retry(recording: RecordingInput): Promise<void>;
  close(): void;
}

export interface RecordingDeskOptions {
  sql: Sql;
  objects: ObjectStore;
  /** Where recordings grow while their call runs. */
  recordingsDir: string;
  clock: Clock;
  logger: Logger;
}

export function createRecordingDesk(options: RecordingDeskOptions): RecordingDesk {
  const machine = recordingMachine.provide({
    actors: { store: fromPromise(({ input }) => storeRecording(options, input)) },
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
    close() {
      for (const actor of actors.values()) actor.stop();
      actors.clear();
    },
  };
}

/** Idempotent: a file that was moved before the row could say so is found in the store. */
async function storeRecording(
  { sql, objects, recordingsDir, clock }: RecordingDeskOptions,
  { recordingId, workspaceId }: RecordingInput,
): Promise<{ stored: boolean }> {
  const recording = await getRecording(sql, recordingId);
  if (!recording || recording.status === 'uploaded') return { stored: recording !== null };
  const key = `recordings/${workspaceId}/${recordingId}.wav`;
  const sourcePath = join(recordingsDir, `${recordingId}.wav`);
  const stored = (await exists(sourcePath)) ? await repairAndPut() : await objects.stat(key);
  const now = new Date(clock.now());
  const patch = stored
    ? ({ status: 'uploaded', objectKey: key, ...sizeOf(stored.sizeBytes) } as const)
    : ({ status: 'failed' } as const);
  await updateRecording(sql, { id: recordingId, now, patch });
  return { stored: stored !== null };

  async function repairAndPut() {
    await repairWav(sourcePath);
    return await objects.putFile({ key, sourcePath });
  }
}

/** Stereo, 16 bit, 8 kHz: 32 bytes a millisecond after the header. */
function sizeOf(sizeBytes: number): { sizeBytes: number; durationMs: number } {
  return { sizeBytes, durationMs: Math.max(0, Math.round((sizeBytes - WAV_HEADER_BYTES) / 32)) };
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
