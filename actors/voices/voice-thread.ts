import { SupervisedThread } from '../../runtime/supervised-thread.ts';
import type { AnswerOf, RequestOf } from '../../runtime/thread-protocol.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import type { VoiceThread } from './voice-worker.ts';

type VoiceTask = keyof VoiceThread['calls'];

/** Several copies of ten minutes at 48 kHz. */
const MOST_MEMORY_MB = 1024;

/**
 * Runs one task in its own thread.
 * @throws ThreadError with the task's error message, or if the thread died; the signal's reason
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
  try {
    return await raceAbort(thread.call(task, request), signal);
  } finally {
    await thread.terminate();
  }
}
