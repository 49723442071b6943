import { defineConfig } from 'vitest/config';

/** More workers than cores, because most tests wait for audio, SIP timers, the database or a child process. */
const MAX_WORKERS = 4;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/global-setup.ts',
    setupFiles: 'test/setup.ts',
    // For tests that start servers on a busy machine. `test/eventually.ts` times out earlier and names its condition.
    testTimeout: process.env.PROPERTY_DEPTH === 'deep' ? 600_000 : 120_000,
    // Some hooks start seven processes. That took 100 s under a load of 26 on two cores.
    hookTimeout: 240_000,
    maxWorkers: MAX_WORKERS,
    // V8's new generation starts with 1 MB. Larger ones took a tenth less CPU time, and one helper thread instead of four
    // a thirtieth less, as the cores are busy anyway.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64', '--v8-pool-size=1'],
    // Files share processes, because starting one and loading the server costs a second of CPU time. So each test file
    // closes what it opens.
    isolate: false,
    // Node strips the types and caches the result. That takes less CPU time than Vite's transformations.
    experimental: { viteModuleRunner: false },
  },
});
