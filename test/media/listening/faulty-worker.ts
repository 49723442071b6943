import { parentPort } from 'node:worker_threads';
import type { ToListeningWorker } from '../../../media/listening/worker-protocol.ts';
import '../../../media/listening/worker.ts';

/** A listening worker that dies of certain audio. */
parentPort?.on('message', (message: ToListeningWorker) => {
  if (message.type === 'session.write' && Buffer.from(message.bytes).toString('latin1') === 'die now') {
    throw new Error('as asked');
  }
});
