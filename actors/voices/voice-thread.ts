import { Worker } from 'node:worker_threads';
import type { AudioFile } from '../../media/audio-file/audio-file.ts';
import type { MonoWav } from '../../media/audio-file/mono-wav.ts';
import type { HeardVoice } from './voice-hearing.ts';

/** What is done with samples of voices, off the main thread. */
export interface VoiceTasks {
  /** Writes each as a mono WAV file. */
  convert: { input: { files: { source: AudioFile['source']; wavPath: string }[] }; output: MonoWav[] };
  /** Listens to mono WAV files of one speaker. */
  hear: { input: { wavPaths: string[] }; output: HeardVoice };
}

export type VoiceTask = {
  [Task in keyof VoiceTasks]: { task: Task; input: VoiceTasks[Task]['input'] };
}[keyof VoiceTasks];

/** Posted back when it is done; when it cannot be, the thread ends with the error. */
export interface VoiceTaskDone {
  output: unknown;
}

/** Samples of ten minutes at 48 kHz, several times. */
const MOST_MEMORY_MB = 1024;

/**
 * Runs one task in a thread of its own, which ends with it.
 * @throws what the task threw, the signal's reason
 */
export async function runVoiceTask<Task extends keyof VoiceTasks>(
  task: Task,
  input: VoiceTasks[Task]['input'],
  signal: AbortSignal,
): Promise<VoiceTasks[Task]['output']> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./voice-worker.ts', import.meta.url), {
    workerData: { task, input },
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
  });
  const { promise, resolve, reject } = Promise.withResolvers<VoiceTasks[Task]['output']>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  worker.once('message', ({ output }: VoiceTaskDone) => resolve(output as VoiceTasks[Task]['output']));
  worker.once('error', reject);
  worker.once('exit', (code) => reject(new Error(`the thread that works on voices ended with ${code}`)));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    worker.removeAllListeners();
    // An error that comes now is of nobody's interest.
    worker.on('error', () => {});
    await worker.terminate();
  }
}
