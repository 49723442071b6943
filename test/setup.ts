import { afterEach } from 'vitest';
import { reportSeed } from './properties.ts';

// Runs for each test file. Hooks in shared helpers would run for the first file only.
afterEach(({ task }) => reportSeed(task.result?.state === 'fail'));
