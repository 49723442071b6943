import { defineConfig } from 'vitest/config';

/** Folders whose test files leave nothing behind in their process, so that many of them share one. */
const SHARED_PROCESS = ['actors', 'callbacks', 'http', 'language', 'machines', 'packaging', 'storage', 'webhooks'].map(
  (folder) => `test/${folder}/**/*.test.ts`,
);

export default defineConfig({
  test: {
    globalSetup: 'test/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'shared-process',
          include: SHARED_PROCESS,
          // Loading the server anew costs each file more than a second of CPU time.
          isolate: false,
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: 'own-process',
          include: ['**/*.test.ts'],
          exclude: ['node_modules/**', '.data/**', ...SHARED_PROCESS],
          // Most of these wait for audio, SIP timers or a child process.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
