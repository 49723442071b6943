import { parentPort } from 'node:worker_threads';
import type { MediaCalls } from '../../media/worker-protocol.ts';
import '../../media/worker.ts';

/** A media worker that dies of a request to record into a file of a certain name, and is stuck by another. */
parentPort?.on('message', ({ call, request }: { call: string; request: MediaCalls['recording.start']['request'] }) => {
  if (call === 'recording.start' && request.filePath.endsWith('deadly.wav')) {
    throw new Error('as asked');
  }
  if (call === 'recording.start' && request.filePath.endsWith('stuck.wav')) {
    for (;;);
  }
});
