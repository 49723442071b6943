import { parentPort, workerData } from 'node:worker_threads';
import { IDLE, monotonicMs, WorkerLoad } from '../../media/worker-load.ts';
import type { MediaCalls, MediaThread } from '../../media/worker-protocol.ts';
import '../../media/worker.ts';

/** A media worker that dies of a request to record into a file of a certain name, is stuck by another, and overloaded by a third. */
parentPort?.on('message', ({ call, request }: { call: string; request: MediaCalls['recording.start']['request'] }) => {
  if (call === 'recording.start' && request.filePath.endsWith('deadly.wav')) {
    throw new Error('as asked');
  }
  if (call === 'recording.start' && request.filePath.endsWith('stuck.wav')) {
    for (;;);
  }
  if (call === 'recording.start' && request.filePath.endsWith('overloaded.wav')) {
    const reading = { ...IDLE, utilization: 1, measuredAtMs: monotonicMs() };
    new WorkerLoad((workerData as MediaThread['data']).loadMemory).write(reading);
    // What it measures itself is not to replace that.
    WorkerLoad.prototype.write = () => {};
  }
});
