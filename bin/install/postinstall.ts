import { join } from 'node:path';
import { installWorker } from '../../media/webrtc/install-worker.ts';
import { findWorker, HOW_TO_INSTALL } from '../../media/webrtc/worker-binary.ts';
import { removeUnusedFiles } from './remove-unused-files.ts';

/**
 * npm runs this after it has installed the packages. A step that fails prints a line; the installation succeeds, because
 * Tandem runs without any of them.
 */

const WORKER_TIMEOUT_MS = 15_000;

await installWebRtcWorker();
await buildConsole();
trimPackages();

async function installWebRtcWorker(): Promise<void> {
  try {
    if (process.env.MEDIASOUP_WORKER_BIN || findWorker().path !== null) return;
    console.log(`Installed the WebRTC worker: ${await installWorker({ timeoutMs: WORKER_TIMEOUT_MS })}`);
  } catch (error) {
    console.log(`Browsers cannot take part in calls yet: ${messageOf(error)}. ${HOW_TO_INSTALL}`);
  }
}

/** Without development packages there is no builder. */
async function buildConsole(): Promise<void> {
  try {
    import.meta.resolve('vite');
  } catch {
    return;
  }
  try {
    const builder = await import('../../console/build.ts');
    await builder.buildConsole();
  } catch (error) {
    console.log(`The console could not be built: ${messageOf(error)}. Run: npm run console:build`);
  }
}

function trimPackages(): void {
  try {
    const bytes = removeUnusedFiles(join(import.meta.dirname, '../../node_modules'));
    if (bytes > 0) console.log(`Removed ${Math.round(bytes / 1e6)} MB of package files that Tandem never loads.`);
  } catch (error) {
    console.log(`Some package files that Tandem never loads remain: ${messageOf(error)}.`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
