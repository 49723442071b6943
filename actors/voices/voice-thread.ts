import type { AudioFile } from '../../media/audio-file/audio-file.ts';
import type { MonoWav } from '../../media/audio-file/mono-wav.ts';
import { SupervisedThread } from '../../runtime/supervised-thread.ts';
import type { AnswerOf, RequestOf } from '../../runtime/thread-protocol.ts';
import type { HeardVoice } from './voice-hearing.ts';

/** Work on voice samples, off the main thread. */
export interface VoiceThread {
  data: null;
  ready: null;
  calls: {
    /** Writes each as a mono WAV file. */
    convert: { request: { files: { source: AudioFile['source']; wavPath: string }[] }; answer: MonoWav[] };
    /** Measures the voice in mono WAV files of one speaker. */
    hear: { request: { wavPaths: string[] }; answer: HeardVoice };
  };
  reports: never;
  notices: never;
}

type VoiceTask = keyof VoiceThread['calls'];

/** Samples of ten minutes at 48 kHz, several times. */
const MOST_MEMORY_MB = 1024;

/**
 * Runs one task in a thread of its own, which ends with it.
 * @throws ThreadError with the message of what the task threw, or when the thread died; the signal's reason
 */
export async function runVoiceTask<Task extends VoiceTask>(
  task: Task,
  request: RequestOf<VoiceThread, Task>,
  signal: AbortSignal,
): Promise<AnswerOf<VoiceThread, Task>> {
  signal.throwIfAborted();
  const thread = new SupervisedThread<VoiceThread>({
    entry: new URL('./voice-worker.ts', import.meta.url),
    data: null,
    name: 'the thread that works on voices',
    isWatched: false,
    memoryMb: MOST_MEMORY_MB,
  });
  const abort = (): void => void thread.terminate();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await thread.call(task, request);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', abort);
    await thread.terminate();
  }
}
