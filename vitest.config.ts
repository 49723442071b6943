import { defineConfig } from 'vitest/config';

/** Folders whose test files leave nothing behind in their process, so that many of them share one. */
const SHARED_PROCESS = ['actors', 'callbacks', 'http', 'language', 'machines', 'packaging', 'storage', 'webhooks'].map(
  (folder) => `test/${folder}/**/*.test.ts`,
);
/** More than there are cores, as most tests wait for audio, SIP timers, the database or a child process. */
const MAX_WORKERS = 3;

export default defineConfig({
  test: {
    globalSetup: 'test/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: MAX_WORKERS,
    experimental: { viteModuleRunner: false },
    projects: [
      {
        extends: true,
        test: {
          name: 'shared-process',
          include: SHARED_PROCESS,
          // Loading the server anew costs each file more than a second of CPU time.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'own-process', include: ['test/**/*.test.ts'], exclude: SHARED_PROCESS },
      },
    ],
  },
});
