import { parentPort, workerData } from 'node:worker_threads';
import { printableFault } from '../printable-fault.ts';
import { openSipServer, type SipServer } from './sip-server.ts';
import type { FromWorker, ToWorker, WorkerData } from './worker-protocol.ts';

const port = parentPort;
if (!port) throw new Error('sip/embedded/worker.ts runs in a worker thread only');
const post = (message: FromWorker): void => port.postMessage(message);

let server: SipServer;
try {
  server = await openSipServer(workerData as WorkerData, (error) =>
    post({ type: 'fault', error: printableFault(error) }),
  );
} catch (error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  post({ type: 'failed', message: error instanceof Error ? error.message : String(error), code });
  throw error;
}

port.on('message', (message: ToWorker) => {
  if (message.type === 'dump') post({ type: 'dumped', id: message.id, state: server.dump() });
  // With its sockets and this port closed, the thread has nothing left to live for.
  else void server.close().then(() => port.close());
});
post({ type: 'ready', controlPort: server.controlPort, sipPort: server.sipPort });
