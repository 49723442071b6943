import { defineConfig } from 'vitest/config';

/** More than there are cores, as most tests wait for audio, SIP timers, the database or a child process. */
const MAX_WORKERS = 4;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/global-setup.ts',
    setupFiles: 'test/setup.ts',
    // For tests that start servers on a busy machine. `test/eventually.ts` gives up earlier, and says what it waited for.
    testTimeout: process.env.PROPERTY_DEPTH === 'deep' ? 600_000 : 120_000,
    hookTimeout: 120_000,
    maxWorkers: MAX_WORKERS,
    // Test files share a few processes, because starting a process and loading the server costs a second of CPU time. So a
    // test file closes what it opens.
    isolate: false,
    // Node strips the types and caches the result, which takes less CPU time than Vite's transformations.
    experimental: { viteModuleRunner: false },
  },
});
