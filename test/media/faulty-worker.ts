import { parentPort } from 'node:worker_threads';
import type { ToWorker } from '../../media/worker-protocol.ts';
import '../../media/worker.ts';

/** A media worker that dies of a request to record into a file of a certain name, and is stuck by another. */
parentPort?.on('message', (message: ToWorker) => {
  if (message.type === 'recording.start' && message.filePath.endsWith('deadly.wav')) {
    throw new Error('as asked');
  }
  if (message.type === 'recording.start' && message.filePath.endsWith('stuck.wav')) {
    for (;;);
  }
});
