import { open } from 'node:fs/promises';
import { Gate } from '../../runtime/gate.ts';
import { type FileSeal, SEALED_HEADER_BYTES, type SealingKeys } from '../../runtime/sealed-file/format.ts';
import { StandingThread } from '../../runtime/standing-thread.ts';
import { isSealedKey } from '../../storage/objects.ts';
import type { Logger } from '../logger.ts';
import type { ExportForm } from './export-audio.ts';
import type { ExportThread } from './export-worker.ts';
import { sealedName } from './recording-names.ts';

/** Converts recordings in a separate thread. */
export interface RecordingExporter {
  /**
   * Resolves with the size of the plaintext.
   * @throws GateFullError if too many exports wait; SealedFileError; ThreadError
   */
  export(job: ExportJob): Promise<number>;
  close(): Promise<void>;
}

export interface ExportJob {
  /** Object key of the recording. It shows whether the recording is sealed. */
  recordingKey: string;
  /** Brings the source to its path when the job's turn comes. Default: it is already there. */
  fetchSource?: () => Promise<void>;
  sourcePath: string;
  targetKey: string;
  targetPath: string;
  form: ExportForm;
}

/**
 * Two at a time, so that a long recording does not delay all others. Peaks take a second and calls wait for them at
 * their end, so they have a separate gate.
 */
const AUDIO_GATE = { inAll: 2, waiting: 64 };
const PEAKS_GATE = { inAll: 1, waiting: 1000 };

export function createRecordingExporter({ keys, logger }: { keys: SealingKeys; logger: Logger }): RecordingExporter {
  const gates = { audio: new Gate(AUDIO_GATE), peaks: new Gate(PEAKS_GATE) };
  let thread: StandingThread<ExportThread> | null = null;

  function startedThread(): StandingThread<ExportThread> {
    thread ??= new StandingThread<ExportThread>({
      entry: new URL('./export-worker.ts', import.meta.url),
      data: null,
      name: 'the recording export thread',
      keepsProcess: 'while-busy',
      onLost: (detail) => logger.warn({ detail }, 'recording export thread lost'),
    });
    return thread;
  }

  return {
    export({ recordingKey, fetchSource, sourcePath, targetKey, targetPath, form }) {
      return gates[form.format === 'peaks' ? 'peaks' : 'audio'].run(async () => {
        await fetchSource?.();
        const seals = isSealedKey(recordingKey)
          ? await sealsOf(keys, { sourcePath, sourceName: sealedName(recordingKey), targetName: sealedName(targetKey) })
          : { sourceSeal: null, targetSeal: null };
        const running = await startedThread().get();
        return await running.call('export', { sourcePath, targetPath, form, ...seals });
      });
    },
    async close() {
      await thread?.close();
    },
  };
}

async function sealsOf(
  keys: SealingKeys,
  { sourcePath, sourceName, targetName }: { sourcePath: string; sourceName: string; targetName: string },
): Promise<{ sourceSeal: FileSeal; targetSeal: FileSeal }> {
  const file = await open(sourcePath, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SEALED_HEADER_BYTES), 0, SEALED_HEADER_BYTES, 0);
    const header = buffer.subarray(0, bytesRead);
    return { sourceSeal: keys.open(header, sourceName), targetSeal: keys.createLike(header, targetName) };
  } finally {
    await file.close();
  }
}
