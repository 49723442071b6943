import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    exclude: ['node_modules/**', '.data/**'],
    globalSetup: 'test/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores: more forks only make real-time media tests late.
    maxWorkers: 2,
  },
});
