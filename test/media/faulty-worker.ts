import { parentPort, workerData } from 'node:worker_threads';
import { IDLE, monotonicMs, WorkerLoad } from '../../media/worker-load.ts';
import type { MediaCalls, MediaThread } from '../../media/worker-protocol.ts';
import '../../media/worker.ts';

/** A media worker that crashes, hangs or reports overload when asked to record to certain file names. */
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
    // Prevents real measurements from replacing the simulated load.
    WorkerLoad.prototype.write = () => {};
  }
});
