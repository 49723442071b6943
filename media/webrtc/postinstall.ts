import { installWorker } from './install-worker.ts';
import { findWorker, HOW_TO_INSTALL } from './worker-binary.ts';

/** Runs after npm has installed the packages. Never fails, because only browser legs need the program. */
const TIMEOUT_MS = 15_000;

try {
  if (!process.env.MEDIASOUP_WORKER_BIN && findWorker().path === null) {
    const path = await installWorker({ timeoutMs: TIMEOUT_MS });
    console.log(`Installed the WebRTC worker: ${path}`);
  }
} catch (error) {
  console.log(`Browsers cannot take part in calls yet: ${(error as Error).message}. ${HOW_TO_INSTALL}`);
}
