import { installWorker } from './install-worker.ts';
import { findWorker, HOW_TO_INSTALL } from './worker-binary.ts';

/** npm runs this after it has installed the packages. Never fails: everything but browser legs works without it. */
const TIMEOUT_MS = 15_000;

try {
  if (!process.env.MEDIASOUP_WORKER_BIN && findWorker().path === null) {
    const path = await installWorker({ timeoutMs: TIMEOUT_MS });
    console.log(`Installed the WebRTC worker: ${path}`);
  }
} catch (error) {
  console.log(`Browsers cannot take part in calls yet: ${(error as Error).message}. ${HOW_TO_INSTALL}`);
}
