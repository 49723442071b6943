import { afterEach } from 'vitest';
import { reportSeed } from './properties.ts';

// Runs for each test file. Helpers are loaded once for many files, so hooks in them would run for the first file only.
afterEach(({ task }) => reportSeed(task.result?.state === 'fail'));
