import { parentPort } from 'node:worker_threads';
import type { ListeningNotice } from '../../../media/listening/worker-protocol.ts';
import '../../../media/listening/worker.ts';

/** A listening worker that crashes on certain audio. */
parentPort?.on('message', ({ notice }: { notice?: ListeningNotice }) => {
  if (notice?.type === 'session.write' && Buffer.from(notice.bytes).toString('latin1') === 'die now') {
    throw new Error('as asked');
  }
});
