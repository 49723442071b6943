import { parentPort, workerData } from 'node:worker_threads';
import { writeMonoWav } from '../../media/audio-file/mono-wav.ts';
import { hearVoice } from './voice-hearing.ts';
import type { VoiceTask, VoiceTaskDone, VoiceTasks } from './voice-thread.ts';

/** The thread of one task, see `runVoiceTask`. */
const done: VoiceTaskDone = { output: await run(workerData as VoiceTask) };
parentPort!.postMessage(done);

async function run(task: VoiceTask): Promise<VoiceTasks[keyof VoiceTasks]['output']> {
  switch (task.task) {
    case 'convert': {
      const written: VoiceTasks['convert']['output'] = [];
      for (const { source, wavPath } of task.input.files) written.push(await writeMonoWav(source, wavPath));
      return written;
    }
    case 'hear':
      return await hearVoice(task.input.wavPaths);
  }
}
