import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Location of mediasoup's worker program. The package is an optional dependency without the program for this machine;
 * `install-worker.ts` fetches it. Imports only Node, because it also runs during package installation.
 */

export const HOW_TO_INSTALL =
  'Run bin/tandem webrtc install, or set MEDIASOUP_WORKER_BIN to the worker program of mediasoup.';

export type FoundWorker = { path: string } | { path: null; reason: string };

export function findWorker(env: NodeJS.ProcessEnv = process.env): FoundWorker {
  const folder = mediasoupFolder();
  if (folder === null) return { path: null, reason: 'the package mediasoup is not installed' };
  const configured = env.MEDIASOUP_WORKER_BIN;
  const path = configured || defaultWorkerPath(folder);
  try {
    accessSync(path, constants.X_OK);
    return { path };
  } catch {
    const reason = configured
      ? 'MEDIASOUP_WORKER_BIN names no program'
      : 'the worker program of mediasoup is not installed';
    return { path: null, reason };
  }
}

/** Null if npm has not installed the package. */
export function mediasoupFolder(): string | null {
  try {
    let folder = dirname(fileURLToPath(import.meta.resolve('mediasoup')));
    while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
    return folder;
  } catch {
    return null;
  }
}

/** Where mediasoup itself looks. */
export function defaultWorkerPath(folder: string): string {
  return join(folder, 'worker', 'out', 'Release', 'mediasoup-worker');
}
